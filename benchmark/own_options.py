"""The options for data of the user's own, and the profile that they lead to."""

import argparse

from rich.console import Console

from benchmark.commandline import add_output_option, listed_names, next_command, parse_seeds, read_registry
from benchmark.data import check_corpus
from benchmark.declarations import BuiltSource
from benchmark.errors import UserError
from benchmark.inputs import places
from benchmark.own_data import SEEDS, own_files, write_own_entries
from benchmark.schedule import Device

# What fits most languages and a small machine; three layers are what a CPU trains in minutes.
_OWN_ENCODERS = {"cpu": "multilingual_e5_small_3_layers", "cuda": "multilingual_e5_small"}


def add_own_data_options(parser: argparse.ArgumentParser) -> None:
    """A file or a data set of the hub, and how to read it."""
    own = parser.add_argument_group(
        "data of your own",
        "Compare methods on it (default: the paper's six and four calibrators); ends with tables, figures, page and "
        "a recommendation.",
    )
    own.add_argument(
        "--data",
        metavar="FILE",
        help="training rows: .csv, .tsv, .jsonl, .json or .parquet; or a data set of the hub, owner/name or "
        "owner/name/configuration",
    )
    own.add_argument("--text-column", metavar="NAME", help="column or key of the text (default: text)")
    own.add_argument("--label-column", metavar="NAME", help="of the label (default: label)")
    own.add_argument(
        "--test-data", metavar="FILE", help="test rows, or a split of the hub's (default: a fifth of --data, by label)"
    )
    own.add_argument(
        "--validation-data", metavar="FILE", help="validation rows, likewise (default: a tenth of --data, by label)"
    )
    own.add_argument("--delimiter", help="between the values of a CSV file (default: a comma, in .tsv a tab)")
    own.add_argument(
        "--encoder", metavar="NAME", help="an entry of encoders.yaml (default: multilingual-e5-small, on CPU 3 layers)"
    )
    own.add_argument("--name", help="of the results' folder and the entries (default: from the file's name)")
    add_output_option(own)


def own_profile(console: Console, arguments: argparse.Namespace, device: Device) -> str | None:
    """The profile of the user's own data, its entries written; None where none are given."""
    if arguments.data is None:
        for option in ("test_data", "validation_data", "text_column", "label_column", "delimiter", "encoder", "name"):
            if getattr(arguments, option) is not None:
                raise UserError(f"--{option.replace('_', '-')} goes with --data, the file of training rows.")
        return None
    for option in ("data", "test_data", "validation_data", "text_column", "label_column", "encoder", "name"):
        if getattr(arguments, option) == "":
            raise UserError(f"--{option.replace('_', '-')}: nothing was given; a name is needed, or leave it out.")
    if arguments.list:
        raise UserError("--list says what there is; leave out --data.")
    if arguments.profile is not None:
        raise UserError("--data makes a profile of its own: leave out --profile (or --data, to go on).")
    if arguments.search is not None:
        raise UserError("--data writes the entries of a comparison: make it first, then --search by its --profile.")
    if arguments.table != ["all"] or arguments.datasets is not None:
        given = "--table" if arguments.table != ["all"] else "--datasets"
        raise UserError(f"--data makes a table of its own, of this data alone: leave out {given}.")
    files = own_files(
        arguments.data,
        arguments.validation_data,
        arguments.test_data,
        arguments.text_column or "text",
        arguments.label_column or "label",
        arguments.delimiter,
        places(arguments.data_dir, arguments.encoder_dir).fetched_data,
    )
    encoder = arguments.encoder or _OWN_ENCODERS[device.kind]
    methods = listed_names("--methods", arguments.methods) or ()
    chosen = parse_seeds(arguments.seeds, SEEDS)
    try:
        written = write_own_entries(arguments.experiments, files, arguments.name, encoder, methods, chosen)
    except UserError:
        read_registry(arguments.experiments)  # says which own entries were left out, which may be why
        raise
    same = next_command("run", f"--profile {written.name}", arguments)
    console.print(f"{written.path}: the entries for this data; from here on {same} does the same.")
    if written.no_more:
        console.print(
            f"  not compared any more: {', '.join(written.no_more)} (results are kept; to compare them, too, name them "
            "again, or give this comparison another --name)"
        )
    report = check_corpus(written.corpus)
    console.print(f"  {report.sizes()}")
    for remark in report.remarks():
        console.print(f"  {remark}")
    if isinstance(written.encoder.source, BuiltSource):
        console.print(
            f"  {encoder} has random weights and knows the words of one data set only: it is there to try things out"
        )
    if len(methods) == 1:
        console.print("  one method: there is nothing to compare it with, so there will be no recommendation")
    return written.name

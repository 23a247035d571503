"""``python -m benchmark.run``: make the runs that tables need."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from tabulate import tabulate

from benchmark.backends import add_backend_options, choose_backend
from benchmark.commandline import (
    DONE,
    SOME_FAILED,
    add_common_options,
    add_input_options,
    add_output_option,
    add_table_option,
    choose_profile,
    first_line,
    new_parser,
    read_registry,
    run_command,
    seeds,
    words,
)
from benchmark.data import check_corpus, load_corpus
from benchmark.declarations import Table
from benchmark.environment import cpu_name
from benchmark.errors import UserError
from benchmark.estimates import Estimator, Work, duration, work_of
from benchmark.execution import score_again, train
from benchmark.inputs import find_inputs, places
from benchmark.listing import listing
from benchmark.own_data import SEEDS, own_files, write_own_entries
from benchmark.plan import Finished, PlannedRun, make_plan
from benchmark.registry import OWN, encoder_name, load_registry, select_tables, table_subjects
from benchmark.reporting import write_all
from benchmark.schedule import CannotStart, Device, Outcome, Slot, run_labels
from benchmark.store import Result, ResultFolder
from benchmark.tables import GridBuilder

# What fits most languages and a small machine; three layers are what a CPU trains in minutes.
_OWN_ENCODERS = {"cpu": "multilingual_e5_small_3_layers", "cuda": "multilingual_e5_small"}


def _parser() -> argparse.ArgumentParser:
    parser = new_parser("run", "Make the runs that tables need; finished ones are skipped.")
    add_table_option(parser)
    add_common_options(parser)
    add_input_options(parser)
    parser.add_argument("--seeds", nargs="+", metavar="N", help="0 1 2, or 0-4 (default: the profile's)")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these data sets of the tables")
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help="only these methods of the tables; with --data: these and no others",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what would be done, why, and how long it would take"
    )
    parser.add_argument("--list", action="store_true", help="only say what there is to run, and what of it is done")
    parser.add_argument("--redo", action="store_true", help="train finished runs again")
    parser.add_argument(
        "--jobs-per-device",
        type=_positive,
        metavar="N",
        help="worker processes a GPU (default: 1) or on the CPU (default: one a core, as far as memory goes)",
    )
    add_backend_options(parser)
    _add_own_data_options(parser)
    return parser


def _add_own_data_options(parser: argparse.ArgumentParser) -> None:
    own = parser.add_argument_group(
        "data of your own", "Compare all methods on it; ends with tables, figures, the page and a recommendation."
    )
    own.add_argument(
        "--data",
        metavar="FILE",
        help="training rows: .csv, .tsv, .jsonl, .json or .parquet; or owner/name, a data set of the hub",
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


def _command(arguments: argparse.Namespace) -> int:
    console = Console(highlight=False, soft_wrap=True, markup=False)
    backend = choose_backend(arguments)
    devices = backend.devices
    own = _own_profile(console, arguments, devices[0])
    registry = read_registry(arguments.experiments)
    profile_name, why = choose_profile(own or arguments.profile, lambda: devices[0].kind == "cuda")
    profile = registry.profile(profile_name)
    if arguments.list:
        every = {name: ResultFolder(arguments.results_dir, name) for name in registry.profiles}
        console.print(listing(registry, profile_name, lambda name: _finished(every[name], every[name].read_all()[0])))
        return DONE
    datasets, methods = words(arguments.datasets), words(arguments.methods)
    tables = select_tables(registry, profile_name, words(arguments.table) or ["all"], datasets, methods)
    where = places(arguments.data_dir, arguments.encoder_dir)
    own_functions = arguments.experiments.resolve() / OWN
    folder = ResultFolder(arguments.results_dir, profile_name)

    subjects = [subject for table in tables.values() for subject in table_subjects(registry, table)]
    found = find_inputs(
        registry,
        [profile.datasets[subject.dataset] for subject in subjects],
        [name for subject in subjects if (name := encoder_name(profile, subject)) is not None],
        where,
    )
    results, unusable = folder.read_all()
    finished = _finished(folder, results)
    wanted_seeds = seeds(arguments.seeds, profile.seeds)
    plan = make_plan(registry, profile_name, tables, wanted_seeds, found.inputs, finished, arguments.redo)

    works = {planned.run_id: work_of(planned.run, planned.dataset, planned.encoder) for planned in plan}
    to_train = [planned for planned in plan if planned.action == "train"]
    slots = backend.slots(arguments.jobs_per_device, len(to_train))
    estimator = Estimator(devices[0].kind, _recorded_name(devices[0]))
    estimator.learn(results, works)
    console.print(first_line(registry, profile_name, why, _time(to_train, works, estimator, slots)))
    for problem in unusable:
        console.print(f"{problem.path}: not counted, because {problem.reason}")
    if arguments.dry_run:
        _print_plan(console, plan, works, estimator, found.missing)
        return DONE
    if missing := _missing(to_train, found.missing):
        remedy = f"python -m benchmark.prepare --profile {profile_name} fetches what can be fetched."
        raise UserError("\n".join([*missing, remedy]))

    for problem in unusable:
        console.print(f"moved aside: {folder.set_aside(problem)}")
    all_scored = _score_again(console, folder, plan, finished, own_functions)
    try:
        outcome = train(console, folder, plan, works, estimator, slots, where, own_functions, arguments.redo, backend)
    except CannotStart as error:
        console.print(str(error))
        return SOME_FAILED
    code = _print_end(console, profile_name, len(plan) - len(to_train), outcome)
    code = code if all_scored else SOME_FAILED
    if (own_functions / f"{profile_name}.yaml").is_file():  # a comparison on the user's own data
        finished = _finished(folder, folder.read_all()[0])
        builder = GridBuilder(registry, profile_name, finished, found.inputs, wanted_seeds)
        _report(console, builder, tables, arguments.tables_dir / profile_name)
    return code


def _own_profile(console: Console, arguments: argparse.Namespace, device: Device) -> str | None:
    """The profile of the user's own data, its entries written; None where none are given."""
    if arguments.data is None:
        for option in ("test_data", "validation_data", "text_column", "label_column", "delimiter", "encoder", "name"):
            if getattr(arguments, option) is not None:
                raise UserError(f"--{option.replace('_', '-')} goes with --data, the file of training rows.")
        return None
    if arguments.list:
        raise UserError("--list says what there is; leave out --data.")
    if arguments.profile is not None:
        raise UserError("--data makes a profile of its own: leave out --profile (or --data, to go on).")
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
    methods = words(arguments.methods) or ()
    if arguments.methods is not None and not methods:
        raise UserError("--methods: at least one name is needed.")
    chosen = seeds(arguments.seeds, SEEDS)
    name, path = write_own_entries(arguments.experiments, files, arguments.name, encoder, methods, chosen)
    console.print(f"{path}: the entries for this data; from here on --profile {name} does the same.")
    registry = load_registry(arguments.experiments)
    corpus = load_corpus(name, registry.datasets[name], ())
    for remark in check_corpus(corpus).remarks():
        console.print(f"  {remark}")
    return name


def _report(console: Console, builder: GridBuilder, tables: Mapping[str, Table], folder: Path) -> None:
    """What a comparison on the user's own data ends with."""
    texts = write_all(builder, tables, folder)
    for name, text in texts.items():
        if name.endswith(".md"):
            console.print(f"\n{text.strip()}")
    console.print(f"\nTables, figures and the page (open {folder / 'report.html'} in a browser): {folder}")


def _score_again(
    console: Console, folder: ResultFolder, plan: list[PlannedRun], finished: Finished, own_functions: Path
) -> bool:
    """Give finished runs the views that they lack; whether all could be made."""
    scored, failures = score_again(folder, plan, finished, own_functions)
    if scored:
        console.print(f"{scored} finished runs scored again from their logits")
    for failure in failures:
        console.print(f"failed: {failure} (what was trained is kept)")
    return not failures


def _finished(folder: ResultFolder, results: list[Result]) -> Finished:
    return Finished.of(results, [result.run_id for result in results if folder.has_logits(result)])


def _missing(to_train: list[PlannedRun], missing: dict[str, str]) -> list[str]:
    """A sentence for each input that a training needs and that is not here; finished runs need none."""
    needed = {f"data set {planned.run.data.dataset}" for planned in to_train}
    needed |= {f"encoder {planned.run.encoder.encoder}" for planned in to_train}
    return [sentence for name, sentence in missing.items() if name in needed]


def _time(to_train: list[PlannedRun], works: dict[str, Work], estimator: Estimator, slots: Sequence[Slot]) -> str:
    if not to_train:
        return "nothing to train"
    seconds = sum(estimator.seconds(works[planned.run_id]) for planned in to_train) / len(slots)
    basis = "as measured here" if estimator.measured else "a rough guess"
    time = duration(seconds + estimator.start_seconds)
    plural = "" if len(to_train) == 1 else "s"
    return f"{len(to_train)} training{plural}, about {time} on {_names(slots)} ({basis})"


def _print_plan(
    console: Console,
    plan: list[PlannedRun],
    works: dict[str, Work],
    estimator: Estimator,
    missing: dict[str, str],
) -> None:
    labels = run_labels((planned.run, planned.methods) for planned in plan)
    rows = [
        (
            labels[planned.run_id],
            planned.action,
            planned.reason,
            duration(estimator.seconds(works[planned.run_id])) if planned.action == "train" else "",
            ", ".join(planned.tables),
        )
        for planned in plan
    ]
    console.print(tabulate(rows, headers=("run", "action", "why", "time", "tables"), tablefmt="plain"))
    for sentence in missing.values():
        console.print(f"missing: {sentence}")
    planned_count = sum(planned.action == "train" for planned in plan)
    console.print(f"{planned_count} trainings planned, {len(plan) - planned_count} already done")


def _print_end(console: Console, profile_name: str, done_before: int, outcome: Outcome) -> int:
    for label, ended in outcome.failed:
        console.print(f"failed: {label}: {ended.reason}; log: {ended.log}")
    console.print(
        f"{outcome.succeeded + outcome.already_done} trained, {len(outcome.failed)} failed, {done_before} done before. "
        f"Tables: python -m benchmark.report --profile {profile_name}"
    )
    return SOME_FAILED if outcome.failed else DONE


def _names(slots: Sequence[Slot]) -> str:
    names: dict[str, int] = {}
    for slot in slots:
        names[slot.device.name] = names.get(slot.device.name, 0) + 1
    return ", ".join(f"{name} ({count} worker{'s' if count > 1 else ''})" for name, count in names.items())


def _recorded_name(device: Device) -> str:
    """The device's name as results record it."""
    return device.name if device.kind == "cuda" else cpu_name()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    run_command(_command, _parser())

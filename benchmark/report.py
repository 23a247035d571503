"""``python -m benchmark.report``: tables and figures from the results at hand. Trains nothing, without torch."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmark.commandline import (
    DONE,
    add_common_options,
    add_input_options,
    add_output_option,
    add_search_option,
    add_table_option,
    asked_searches,
    choose_profile,
    listed_names,
    new_parser,
    next_command,
    parse_seeds,
    read_registry,
    run_command,
)
from benchmark.declarations import Table
from benchmark.errors import UserError
from benchmark.figures import draw_figures
from benchmark.inputs import Since, changed_since, places
from benchmark.recommendation import DECIDING_MEASURES
from benchmark.registry import Registry, methods_of, narrowed, require_known, select_tables
from benchmark.render import to_csv
from benchmark.reporting import advice_in, claims_in, differences_in, page_in, ranking_in, searches_in, tables_in, write
from benchmark.schedule import find_devices
from benchmark.search import select_searches
from benchmark.shown_inputs import not_shown, shown_inputs
from benchmark.store import Failure, KnownResults, Result, ResultFolder, ViewRecord
from benchmark.tables import (
    Grid,
    GridBuilder,
    ResultFinder,
    consecutive,
    is_about,
    of_tables,
    seeds_at_hand,
)

_LONGEST_SEEDS = 60  # in a file's name
_NOT_PRINTED = {"scores_by_label.csv"}  # more of what is
_REASONS = 3  # why runs failed, at most


def _parser() -> argparse.ArgumentParser:
    parser = new_parser("report", "Render the tables from the results at hand.")
    add_table_option(parser)
    add_common_options(parser)
    add_input_options(parser)
    parser.add_argument(
        "--format",
        choices=("markdown", "latex", "csv", "html"),
        default="markdown",
        help="csv: all scores, a row each, and those of each label; html: one page with tables, the paper's numbers "
        "and reliability diagrams",
    )
    parser.add_argument(
        "--compare", action="store_true", help="beside the paper's own numbers: ours, paper, difference"
    )
    parser.add_argument(
        "--differences",
        nargs="?",
        const="",
        metavar="METHOD",
        help="instead of values: how far each row is from METHOD's (default: the first), with 95 %% intervals",
    )
    parser.add_argument("--claims", action="store_true", help="instead of tables: do the paper's claims hold here?")
    parser.add_argument(
        "--recommend", action="store_true", help="instead of tables: which method to use on each data set, and why"
    )
    parser.add_argument(
        "--by",
        choices=DECIDING_MEASURES,
        help="with --recommend: the measure that decides (default: ece, the paper's, summed over labels)",
    )
    parser.add_argument(
        "--ranking", action="store_true", help="instead of tables: the methods' ranks under every measure, and ECE's"
    )
    add_search_option(parser)
    parser.add_argument(
        "--figures", action="store_true", help="draw all figures, too (PDF and PNG, into figures/ beside the tables)"
    )
    parser.add_argument(
        "--seeds", nargs="+", metavar="N", help="only these seeds, in files named after them (default: all at hand)"
    )
    add_output_option(parser)
    return parser


def _command(arguments: argparse.Namespace) -> int:
    _check(arguments)
    registry = read_registry(arguments.experiments)
    profile_name, _ = choose_profile(arguments.profile, lambda: find_devices()[0].kind == "cuda")
    if arguments.by and arguments.by not in registry.metrics:
        raise UserError(f"--by {arguments.by}: metrics.yaml has no such measure; put it there, or leave out --by.")
    searches = select_searches(registry, profile_name, asked_searches(arguments))
    names = listed_names("--table", arguments.table) or []
    of_tables_alone = not (searches or arguments.claims or arguments.format == "csv")
    tables = select_tables(registry, profile_name, names) if of_tables_alone else {}
    results, unusable = ResultFolder(arguments.results_dir, profile_name).read_all()
    for problem in unusable:
        remedy = "delete it; where no other file holds its run, benchmark.run makes it again"
        print(f"{problem.path}: not counted, because {problem.reason}; {remedy}", file=sys.stderr)
    ours = of_tables(registry, profile_name, results)
    looked_at = results if searches or arguments.format == "csv" else ours
    where = places(arguments.data_dir, arguments.encoder_dir)
    inputs = shown_inputs(registry, looked_at if searches else ours, where)
    if arguments.format != "csv":  # which has the results of all contents
        looked_at = [result for result in looked_at if is_about(result.run, inputs)]
    at_hand = seeds_at_hand(looked_at)
    chosen_seeds = parse_seeds(arguments.seeds, at_hand)
    shown = [result for result in looked_at if result.run.seed in chosen_seeds]
    if not shown:
        failures = [result.failure for result in looked_at if result.failure is not None]
        _say_none(registry, arguments, profile_name, list(searches), failures, len(results) - len(failures))
        return DONE
    finished = KnownResults.of(results)
    for sentence in not_shown(ours, inputs) if arguments.format != "csv" else []:
        print(sentence, file=sys.stderr)
    registry = _noted(registry, profile_name, changed_since(registry, inputs, where), arguments)
    builder = GridBuilder(registry, profile_name, finished, inputs, chosen_seeds)
    suffix = _table_suffix(registry, profile_name, tables)
    if arguments.format == "csv":
        about = {result.run_id for result in ours if is_about(result.run, inputs)}
        methods = partial(_methods, builder.finder, about)
        texts = dict(zip(("scores.csv", "scores_by_label.csv"), to_csv(shown, methods), strict=True))
    else:
        texts = _texts(arguments, builder, tables, searches, suffix)
    if texts and arguments.format != "html":
        print("\n".join(text for name, text in texts.items() if name not in _NOT_PRINTED and not _of_all_tables(name)))
    folder, part = arguments.tables_dir / profile_name, _seed_suffix(chosen_seeds, at_hand)
    named = {
        f"{Path(name).stem}{suffix if _of_all_tables(name) else ''}{part}{Path(name).suffix}": text
        for name, text in texts.items()
    }
    _say([write(folder / name, text) for name, text in named.items()])
    if arguments.figures:
        drawn, remarks = draw_figures(registry, profile_name, finished, inputs, chosen_seeds, folder / f"figures{part}")
        _say(drawn, remarks)
    return DONE


def _texts(
    arguments: argparse.Namespace,
    builder: GridBuilder,
    tables: Mapping[str, Table],
    searches: Mapping[str, Table],
    table_suffix: str,
) -> dict[str, str]:
    """What is asked for, in words, by the name of its file."""
    registry, profile_name = builder.registry, builder.finder.profile_name
    if arguments.claims:
        if not narrowed(registry, profile_name, {claim.table for claim in registry.claims.values()}):
            print(f"The paper claims nothing about the data of profile {profile_name}.", file=sys.stderr)
            return {}
        return claims_in(builder, arguments.format)
    if arguments.recommend:
        return advice_in(builder, tables, table_suffix, arguments.by or "ece")
    if searches:
        return searches_in(builder, searches)
    if arguments.ranking:
        return ranking_in(builder, tables, table_suffix)
    grids = [builder.build(name, table) for name, table in tables.items()]
    if arguments.compare and not any(grid.has_paper for grid in grids):
        raise UserError(f"The paper has no numbers for {', '.join(tables)}; leave out --compare.")
    if arguments.differences is not None:
        return _differences(registry, arguments, tables, grids)
    if arguments.format == "html":
        return page_in(builder, tables, grids)
    return tables_in(grids, arguments.format, arguments.compare)


def _differences(
    registry: Registry, arguments: argparse.Namespace, tables: Mapping[str, Table], grids: list[Grid]
) -> dict[str, str]:
    """Of the tables that have any; says of the others why not."""
    method = arguments.differences or None
    if method is not None:
        require_known([method], registry.methods.methods, "method")
    texts, without = differences_in(tables, grids, arguments.format, arguments.compare, method)
    for name, why in without.items():
        print(f"no differences in {name}: {why}", file=sys.stderr)
    if method is not None and not texts:
        raise UserError(f"--differences {method}: there are none in {', '.join(tables)}; name other tables by --table.")
    return texts


def _noted(registry: Registry, profile_name: str, since: Since, arguments: argparse.Namespace) -> Registry:
    """The registry whose profile says of which of the user's data sets these are not results any more, so that whatever
    is made of it says so; what is to be done about it is for the terminal.
    """
    for name in since.absent:
        print(f'data set "{name}" is not here, so whether it has changed since is not known', file=sys.stderr)
    for name, why in since.unreadable.items():
        print(f'data set "{name}" cannot be read any more: {why}', file=sys.stderr)
    for name in since.changed:
        remedy = f"{next_command('run', f'--profile {profile_name}', arguments)} makes results of what it holds now"
        print(f'data set "{name}" has changed since these results were made; {remedy}', file=sys.stderr)
    sentences = [f'Data set "{name}" has changed since these results were made.' for name in since.changed]
    sentences += [
        f'Whether data set "{name}" has changed since these results were made is not known: it cannot be read any more.'
        for name in since.unreadable
    ]
    profile = registry.profile(profile_name)
    noted = profile.model_copy(update={"note": " ".join(filter(None, [profile.note, *sentences])) or None})
    return replace(registry, profiles={**registry.profiles, profile_name: noted})


def _of_all_tables(name: str) -> bool:
    """Whether a file has all tables in it: the page, or the document of those that are written beside it."""
    return name.partition(".")[0] in {"report", "tables"}


def _seed_suffix(chosen: Sequence[int], at_hand: Sequence[int]) -> str:
    """In a file's name, the seeds that it is made of, where these are not all at hand: what is made of all stays."""
    shown = [seed for seed in at_hand if seed in set(chosen)]
    if len(shown) == len(at_hand):
        return ""
    words = "_".join(str(first) if first == last else f"{first}-{last}" for first, last in consecutive(shown))
    return f".seed{words if len(words) <= _LONGEST_SEEDS else f'{shown[0]}-{shown[-1]}_{len(shown)}_of_them'}"


def _say_none(
    registry: Registry,
    arguments: argparse.Namespace,
    profile: str,
    searches: list[str],
    failures: list[Failure],
    n_others: int,
) -> None:
    """That there is nothing to show, how to make it, and which profiles have results. In the folder are runs that
    failed and ``n_others`` results that no table asks for.
    """
    which = "" if arguments.seeds is None else " of these seeds"
    what = f" --search {' '.join(searches)}" if searches else ""
    seeds = f" --seeds {' '.join(arguments.seeds)}" if arguments.seeds else ""
    command = next_command("run", f"--profile {profile}{what}{seeds}", arguments)
    remedy = f"so there is nothing to show or write: {command}"
    print(f"No results{which} in {arguments.results_dir / profile}, {remedy}", file=sys.stderr)
    if failures and not which:
        several = f"{len(failures)} runs" if len(failures) > 1 else "One run"
        reasons = dict.fromkeys(f"{failure.reason.rstrip('.')} ({failure.kind})" for failure in failures)
        print(f"{several} failed: {'; '.join(list(reasons)[:_REASONS])}", file=sys.stderr)
    if n_others and not which:
        several = f"are {n_others} results" if n_others > 1 else "is one result"
        print(
            f"There {several}, of other settings than the tables now have (changed since, a search's)", file=sys.stderr
        )
    others = [name for name in registry.profiles if any((arguments.results_dir / name).glob("*.json"))]
    if others and profile not in others:
        print(f"There are results of: {', '.join(f'--profile {name}' for name in others)}", file=sys.stderr)


def _table_suffix(registry: Registry, profile_name: str, tables: Mapping[str, Table]) -> str:
    """In a file's name, the tables that its content is made from, where these are not those made by default: what is
    made from others stays.
    """
    names = [name for name in registry.tables if name in tables]
    default = list(narrowed(registry, profile_name, ["all"]))
    return "" if names == default else f".{'+'.join(names)}"


def _methods(finder: ResultFinder, about: set[str], result: Result, view: ViewRecord) -> str:
    """The methods of a view, by name; none of one that no table shows, such as of a search's candidate, or of an
    ensemble one of whose runs was made again.
    """
    shown = result.run_id in about and not finder.is_stale(view)
    return methods_of(finder.registry, result.run, view.view) if shown else ""


def _check(arguments: argparse.Namespace) -> None:
    """UserError for options that do not go together."""
    options = ("claims", "recommend", "ranking", "search", "differences")
    instead = [f"--{name}" for name in options if getattr(arguments, name) not in (None, False)]
    if len(instead) > 1:
        raise UserError(f"{' and '.join(instead)} each stand in place of the tables; give one of them.")
    whole = [*instead, *(["--compare"] if arguments.compare else [])]
    if arguments.by and not arguments.recommend:
        raise UserError("--by says by which measure --recommend decides; give both, or neither.")
    if arguments.format == "html" and arguments.by:
        raise UserError("--recommend --by does not go with html: the page's advice is by ECE; leave out --format.")
    if arguments.format == "html" and whole:
        on_it = (
            "it is on the page"
            if whole[0] in {"--claims", "--compare", "--recommend", "--differences"}
            else "the page has none"
        )
        raise UserError(f"{whole[0]} does not go with html: {on_it}; leave it out.")
    if arguments.format == "csv" and (whole or arguments.table != ["all"]):
        raise UserError(f"{(whole or ['--table'])[0]} does not go with csv, which has all scores of all results.")
    if arguments.claims and arguments.table != ["all"]:
        raise UserError("--claims looks at whole tables, those that the claims are about; leave out --table.")
    if instead and instead != ["--differences"] and arguments.compare:
        raise UserError(f"--compare goes with the tables, in whose place {instead[0]} stands.")
    if instead and instead[0] not in {"--claims", "--differences"} and arguments.format != "markdown":
        raise UserError(f"{instead[0]} is written in Markdown only; leave out --format.")


def _say(written: list[Path], remarks: Sequence[str] = ()) -> None:
    for remark in remarks:
        print(remark, file=sys.stderr)
    if written:
        print(f"written: {', '.join(str(path) for path in written)}", file=sys.stderr)


if __name__ == "__main__":
    run_command(_command, _parser())

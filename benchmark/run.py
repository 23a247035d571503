"""``python -m benchmark.run``: make the runs that tables need."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from tabulate import tabulate

from benchmark.backend_options import add_backend_options, choose_backend
from benchmark.commandline import (
    DONE,
    SOME_FAILED,
    add_common_options,
    add_input_options,
    add_search_option,
    add_table_option,
    asked_searches,
    choose_profile,
    headline,
    listed_names,
    new_console,
    new_parser,
    next_command,
    parse_seeds,
    read_registry,
    run_command,
)
from benchmark.declarations import Table
from benchmark.durations import duration
from benchmark.ensembles import Ensemble, ensemble_sizes, ensembles, score_ensembles
from benchmark.errors import UserError
from benchmark.estimates import Estimator, Work, work_of, work_of_results
from benchmark.execution import Placed, carry_out, recorded_name
from benchmark.inputs import FoundInputs, Places, find_table_inputs, places
from benchmark.listing import listing
from benchmark.own_data import declares_profile
from benchmark.own_options import add_own_data_options, own_profile
from benchmark.own_report import report_comparison
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import OWN, Registry, select_tables
from benchmark.rescoring import score_again
from benchmark.schedule import Outcome, Slot, run_labels
from benchmark.search import plan_searches, select_searches
from benchmark.store import KnownResults, Outline, ResultFolder, Unusable
from benchmark.tracking import add_track_option, chosen_trackers, listening


def _parser() -> argparse.ArgumentParser:
    parser = new_parser("run", "Make the runs that tables need; finished ones are skipped.")
    add_table_option(parser)
    add_search_option(parser)
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
        "--dry-run",
        action="store_true",
        help="only say what would be done, why, and how long it would take (entries for --data are written even so)",
    )
    parser.add_argument("--list", action="store_true", help="only say what there is to run, and what of it is done")
    parser.add_argument("--redo", action="store_true", help="train finished runs again")
    parser.add_argument(
        "--jobs-per-device",
        type=_positive,
        metavar="N",
        help="worker processes a GPU (default: 1) or on the CPU (default: one a core, as far as memory goes)",
    )
    add_track_option(parser)
    add_backend_options(parser)
    add_own_data_options(parser)
    return parser


def _command(arguments: argparse.Namespace) -> int:
    console = new_console()
    trackers = chosen_trackers(arguments.track)
    backend = choose_backend(arguments)
    devices = backend.devices
    own = own_profile(console, arguments, devices[0])
    registry = read_registry(arguments.experiments)
    profile_name, why = choose_profile(own or arguments.profile, lambda: devices[0].kind == "cuda")
    if arguments.list:
        _check_alone(arguments)
        where = places(arguments.data_dir, arguments.encoder_dir)
        console.print(listing(registry, profile_name, arguments.results_dir, where))
        return DONE
    asked = _ask(arguments, registry, profile_name)
    to_train, folder = asked.to_train, asked.folder

    works = {planned.run_id: work_of(planned.run, planned.dataset, planned.encoder) for planned in asked.plan}
    slots = backend.slots(arguments.jobs_per_device, len(to_train))
    estimator = Estimator(devices[0].kind, recorded_name(devices[0]))
    estimator.learn(asked.outlines, work_of_results(asked.outlines, registry.datasets, registry.encoders))
    time = _time(to_train, works, estimator, slots) if to_train else ""
    what = f"{len(to_train)} training{'' if len(to_train) == 1 else 's'}, {time}" if to_train else "nothing to train"
    console.print(headline(registry, profile_name, why, what))
    for problem in asked.unusable:
        console.print(f"{problem.path}: not counted, because {problem.reason}")
    wanted_ensembles = _ensembles(console, asked)
    if arguments.dry_run:
        _print_plan(console, asked, works, estimator, time)
        return DONE
    if missing := _missing(to_train, asked.found.missing):
        raise UserError("\n".join(missing))

    folder.make()
    for problem in asked.unusable:
        if moved := folder.set_aside(problem):
            console.print(f"moved aside: {moved}")
    all_scored = _score_again(console, asked)
    with listening(trackers, folder, asked.plan, console.print) as heard:
        placed = Placed(backend, slots, asked.where, asked.own_folder)
        outcome = carry_out(console, folder, asked.plan, works, estimator, placed, arguments.redo, heard)
    all_scored = _score_ensembles(console, asked, wanted_ensembles) and all_scored and not outcome.unscored
    code = _print_end(console, asked, outcome, all_scored, arguments)
    if declares_profile(asked.own_folder, profile_name) and not asked.searches:
        report_comparison(console, registry, profile_name, asked.tables, folder, asked.where, arguments.tables_dir)
    return code if all_scored else SOME_FAILED


@dataclass(frozen=True)
class _Asked:
    """What a command asks for, what there is of it, and what is to be done."""

    registry: Registry
    profile_name: str
    tables: Mapping[str, Table]  # or searches
    seeds: tuple[int, ...]
    searches: bool
    where: Places
    own_folder: Path
    found: FoundInputs
    folder: ResultFolder
    outlines: list[Outline]
    unusable: list[Unusable]
    finished: KnownResults[Outline]
    plan: list[PlannedRun]

    @property
    def to_train(self) -> list[PlannedRun]:
        return [planned for planned in self.plan if planned.action == "train"]


def _ask(arguments: argparse.Namespace, registry: Registry, profile_name: str) -> _Asked:
    profile = registry.profile(profile_name)
    datasets, methods = listed_names("--datasets", arguments.datasets), listed_names("--methods", arguments.methods)
    if searches := asked_searches(arguments):
        tables = select_searches(registry, profile_name, searches, datasets, methods)
    else:
        tables = select_tables(
            registry, profile_name, listed_names("--table", arguments.table) or [], datasets, methods
        )
    plan = plan_searches if searches else make_plan
    where = places(arguments.data_dir, arguments.encoder_dir)
    found = find_table_inputs(registry, profile_name, tables.values(), where)
    folder = ResultFolder(arguments.results_dir, profile_name)
    outlines, unusable = folder.outlines()
    finished, wanted = folder.known(outlines), tuple(parse_seeds(arguments.seeds, profile.seeds))
    return _Asked(
        registry=registry,
        profile_name=profile_name,
        tables=tables,
        seeds=wanted,
        searches=bool(searches),
        where=where,
        own_folder=arguments.experiments.resolve() / OWN,
        found=found,
        folder=folder,
        outlines=outlines,
        unusable=unusable,
        finished=finished,
        plan=plan(registry, profile_name, tables, wanted, found.inputs, finished, arguments.redo),
    )


def _check_alone(arguments: argparse.Namespace) -> None:
    """UserError for options beside --list that choose what is to be made."""
    given = ("search", "seeds", "datasets", "methods", "dry_run", "redo", "jobs_per_device", "track")
    others = [f"--{name.replace('_', '-')}" for name in given if getattr(arguments, name)]
    others += ["--table"] if arguments.table != ["all"] else []
    if others:
        raise UserError(f"--list says all that there is in a profile; leave out {', '.join(others)}.")


def _score_again(console: Console, asked: _Asked) -> bool:
    """Give finished runs the views that they lack; whether all could be made."""
    scored, failures = score_again(asked.folder, asked.plan, asked.finished, asked.own_folder)
    if scored:
        console.print(f"{scored} finished runs scored again from their logits")
    for failure in failures:
        console.print(f"failed: {failure} (what was trained is kept)")
    return not failures


def _ensembles(console: Console, asked: _Asked) -> list[Ensemble]:
    """Those of the tables; where the seeds suffice for none, that is said before anything is trained."""
    wanted = list(ensembles(asked.registry, asked.profile_name, asked.tables, asked.seeds, asked.found.inputs))
    if not wanted:
        for members in ensemble_sizes(asked.registry, asked.tables):
            console.print(f"no ensemble: one of {members} takes seeds 0 to {members - 1} (or the next {members}, ...)")
    return wanted


def _score_ensembles(console: Console, asked: _Asked, wanted: list[Ensemble]) -> bool:
    """Score the ensembles; whether the logits of all that are done were at hand."""
    if not wanted:
        return True
    finished = asked.finished
    if any(planned.action != "skip" for planned in asked.plan):
        finished = asked.folder.known(asked.folder.outlines()[0])
    scored = score_ensembles(asked.folder, wanted, finished)
    if scored.count:
        console.print(
            f"{scored.count} ensemble{'s' if scored.count > 1 else ''} scored from the logits of finished runs"
        )
    for failure in scored.failures:
        console.print(f"failed: {failure} (what was trained is kept)")
    for path in dict.fromkeys(str(asked.folder.path(result.run)) for result in scored.lacking):
        console.print(
            f"failed: {path}: its logits are not here, so its ensemble was not scored; --redo trains it again"
        )
    return not scored.lacking and not scored.failures


def _missing(to_train: list[PlannedRun], missing: dict[str, str]) -> list[str]:
    """A sentence for each input that a training needs and that is not here; finished runs need none."""
    needed = {f"data set {planned.run.data.dataset}" for planned in to_train}
    needed |= {f"encoder {planned.run.encoder.encoder}" for planned in to_train}
    return [sentence for name, sentence in missing.items() if name in needed]


def _time(to_train: list[PlannedRun], works: dict[str, Work], estimator: Estimator, slots: Sequence[Slot]) -> str:
    seconds = sum(estimator.seconds(works[planned.run_id]) for planned in to_train) / len(slots)
    basis = "as measured here" if estimator.measured else "a rough guess"
    return f"about {duration(seconds + estimator.start_seconds)} on {_names(slots)} ({basis})"


def _print_plan(console: Console, asked: _Asked, works: dict[str, Work], estimator: Estimator, time: str) -> None:
    plan = asked.plan
    labels = run_labels((planned.run, planned.methods, planned.settings) for planned in plan)
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
    console.print(
        tabulate(rows, headers=("run", "action", "why", "time", "tables"), tablefmt="plain", disable_numparse=True)
    )
    for sentence in asked.found.missing.values():
        console.print(f"missing: {sentence}")
    if _missing(asked.to_train, asked.found.missing):
        console.print("not ready to start: what is missing comes first")
    several = "" if len(asked.to_train) == 1 else "s"
    count = f"{len(asked.to_train)} training{several} planned, {len(plan) - len(asked.to_train)} already done"
    console.print(f"{count}; {time}" if asked.to_train else count)


def _print_end(
    console: Console, asked: _Asked, outcome: Outcome, all_scored: bool, arguments: argparse.Namespace
) -> int:
    for label, ended in outcome.failed:
        console.print(f"failed: {label}: {ended.in_words}")
    for label, ended in outcome.unscored:
        console.print(f"failed: a view of {label} (the training is kept): {ended.in_words}")
    if outcome.cut_short:
        console.print(outcome.cut_short)
    elsewhere = f", {outcome.already_done} meanwhile by another command" if outcome.already_done else ""
    done_before = len(asked.plan) - len(asked.to_train)
    what, which = ("What was found", f" --search {' '.join(asked.tables)}") if asked.searches else ("Tables", "")
    unscored = "" if all_scored else ", of which not all could be scored as asked (why: above)"
    console.print(
        f"{outcome.succeeded} trained{elsewhere}, {len(outcome.failed)} failed, {done_before} done before{unscored}. "
        f"{what}: {next_command('report', f'--profile {asked.profile_name}{which}', arguments)}"
    )
    return SOME_FAILED if outcome.failed or outcome.cut_short else DONE


def _names(slots: Sequence[Slot]) -> str:
    names: dict[str, int] = {}
    for slot in slots:
        names[slot.device.name] = names.get(slot.device.name, 0) + 1
    return ", ".join(f"{name} ({count} worker{'s' if count > 1 else ''})" for name, count in names.items())


def _positive(text: str) -> int:
    if not text.isdecimal() or len(text) > 4 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]} is not a whole number from 1 to 9999")
    return int(text)


if __name__ == "__main__":
    run_command(_command, _parser())

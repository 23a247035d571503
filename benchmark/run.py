"""``python -m benchmark.run``: make the runs that tables need."""

import argparse
import asyncio
import signal

import joblib
from rich.console import Console
from tabulate import tabulate

from benchmark.commandline import (
    DONE,
    SOME_FAILED,
    add_common_options,
    add_input_options,
    add_table_option,
    choose_profile,
    run_command,
    seeds,
    words,
)
from benchmark.errors import UserError
from benchmark.estimates import Estimator, Work, duration, work_of
from benchmark.inputs import Places, find_inputs, places
from benchmark.jobs import Job, WorkerSetup
from benchmark.plan import Finished, PlannedRun, make_plan
from benchmark.registry import (
    Registry,
    encoder_name,
    load_registry,
    select_tables,
    table_subjects,
)
from benchmark.schedule import Device, Display, Outcome, Pool, Slot, find_devices, make_slots, run_labels
from benchmark.scoring import score
from benchmark.store import Result, ResultFolder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.run", description="Make the runs that tables need; finished ones are skipped."
    )
    add_table_option(parser)
    add_common_options(parser)
    add_input_options(parser)
    parser.add_argument("--seeds", nargs="+", metavar="N", help="0 1 2, or 0-4 (default: the profile's)")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these data sets of the tables")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these methods of the tables")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done, why and for how long")
    parser.add_argument("--redo", action="store_true", help="train finished runs again")
    parser.add_argument(
        "--jobs-per-device",
        type=_positive,
        metavar="N",
        help="worker processes a GPU (default 1) or on the CPU (default: by cores and memory)",
    )
    return parser


def _command(arguments: argparse.Namespace) -> int:
    console = Console(highlight=False)
    registry = load_registry(arguments.experiments)
    devices = find_devices()
    profile_name, why = choose_profile(arguments.profile, lambda: devices[0].kind == "cuda")
    profile = registry.profile(profile_name)
    tables = select_tables(
        registry, profile_name, words(arguments.table) or ["all"], words(arguments.datasets), words(arguments.methods)
    )
    where = places(arguments.data_dir, arguments.encoder_dir)
    folder = ResultFolder(arguments.results_dir, profile_name)

    subjects = [subject for table in tables.values() for subject in table_subjects(registry, table)]
    found = find_inputs(
        registry,
        [profile.datasets[subject.dataset] for subject in subjects],
        [name for subject in subjects if (name := encoder_name(profile, subject)) is not None],
        where,
    )
    results, unusable = folder.read_all()
    for problem in unusable:
        console.print(f"{problem.path}: not counted, because {problem.reason}", soft_wrap=True)
    finished = Finished.of(results, [result.run_id for result in results if folder.has_logits(result)])
    plan = make_plan(
        registry, profile_name, tables, seeds(arguments.seeds, profile.seeds), found.inputs, finished, arguments.redo
    )

    works = {planned.run_id: work_of(planned.run, planned.dataset, planned.encoder) for planned in plan}
    to_train = [planned for planned in plan if planned.action == "train"]
    slots = make_slots(devices, arguments.jobs_per_device, len(to_train))
    estimator = Estimator(devices[0].kind, _device_name(devices[0]))
    estimator.learn(results, works)
    _print_first_line(console, profile_name, why, to_train, works, estimator, slots, registry)
    if arguments.dry_run:
        _print_plan(console, plan, works, estimator)
        return DONE
    if to_train and found.missing:
        raise UserError("\n".join(found.missing.values()))

    for problem in unusable:
        console.print(f"moved aside: {folder.set_aside(problem)}", soft_wrap=True)
    _score_again(console, folder, plan, finished)
    outcome = _train(console, folder, to_train, works, estimator, slots, where, arguments.redo)
    return _print_end(console, profile_name, plan, outcome)


def _print_first_line(
    console: Console,
    profile_name: str,
    why: str,
    to_train: list[PlannedRun],
    works: dict[str, Work],
    estimator: Estimator,
    slots: list[Slot],
    registry: Registry,
) -> None:
    seconds = sum(estimator.seconds(works[planned.run_id]) for planned in to_train) / len(slots)
    if to_train:
        seconds += estimator.start_seconds
        basis = "measured here" if estimator.measured else "a rough guess"
        time = f"{len(to_train)} trainings, about {duration(seconds)} on {_names(slots)} ({basis})"
    else:
        time = "nothing to train"
    others = ", ".join(name for name in registry.profiles if name != profile_name)
    console.print(f"Profile {profile_name} ({why}): {time}. Choose another with --profile: {others}.", soft_wrap=True)


def _print_plan(console: Console, plan: list[PlannedRun], works: dict[str, Work], estimator: Estimator) -> None:
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
    console.print(
        tabulate(rows, headers=("run", "action", "why", "time", "tables"), tablefmt="plain"),
        soft_wrap=True,
        markup=False,
    )
    planned_count = sum(planned.action == "train" for planned in plan)
    console.print(f"{planned_count} trainings planned, {len(plan) - planned_count} already done")


def _score_again(console: Console, folder: ResultFolder, plan: list[PlannedRun], finished: Finished) -> None:
    """Score stored logits anew where another view is asked for; the old views stay."""
    todo = [
        (planned, result) for planned in plan if planned.action == "score" and (result := finished.find(planned.run))
    ]
    if not todo:
        return
    joblib.Parallel(n_jobs=-1)(joblib.delayed(_score_one)(folder, planned, result) for planned, result in todo)
    console.print(f"{len(todo)} finished runs scored again from their logits")


def _score_one(folder: ResultFolder, planned: PlannedRun, result: Result) -> None:
    logits = folder.read_logits(result)
    if logits is None:
        raise UserError(f"The logits of {folder.path(result.run)} are damaged; train it again with --redo.")
    new = [score(view, logits) for view in planned.views if result.view(view) is None]
    folder.save(result.model_copy(update={"views": [*result.views, *new]}))


def _train(
    console: Console,
    folder: ResultFolder,
    to_train: list[PlannedRun],
    works: dict[str, Work],
    estimator: Estimator,
    slots: list[Slot],
    where: Places,
    redo: bool,
) -> Outcome:
    if not to_train:
        return Outcome()
    labels = run_labels((planned.run, planned.methods) for planned in to_train)
    jobs = [
        Job(run=planned.run, views=planned.views, dataset=planned.dataset, encoder=planned.encoder, redo=redo)
        for planned in _longest_first(to_train, works)
    ]

    def setup(slot: Slot) -> WorkerSetup:
        return WorkerSetup(
            results_root=folder.folder.parent,
            profile=folder.folder.name,
            data_folders=where.all_data_folders(),
            encoder_folders=where.encoder_folders,
            built_encoders=where.built_encoders,
            device="cuda" if slot.device.kind == "cuda" else "cpu",
            threads=slot.threads,
        )

    chosen = {planned.run_id: works[planned.run_id] for planned in to_train}
    with Display(console, chosen, labels, estimator, len(slots)) as display:
        pool = Pool(slots, setup, folder.folder / "logs", display.update)
        asyncio.run(_until_signalled(pool.run(jobs)))
    return display.outcome


async def _until_signalled(work) -> None:  # type: ignore[no-untyped-def]
    """Await ``work``; SIGTERM cancels it as Ctrl-C does, so that workers are ended first."""
    task = asyncio.ensure_future(work)
    interrupted = False

    def cancel() -> None:
        nonlocal interrupted
        interrupted = True
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, cancel)
    try:
        await task
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise


def _longest_first(to_train: list[PlannedRun], works: dict[str, Work]) -> list[PlannedRun]:
    """Seed by seed, the longest first within a seed, so that no long run is left for the end; equal ones keep their
    order.
    """
    return sorted(to_train, key=lambda planned: (planned.run.seed, -works[planned.run_id].operations))


def _print_end(console: Console, profile_name: str, plan: list[PlannedRun], outcome: Outcome) -> int:
    for job, ended in outcome.failed:
        label = run_labels([(job.run, ())])
        console.print(
            f"failed:{next(iter(label.values()))}: {ended.reason}; log: {ended.log}", soft_wrap=True, markup=False
        )
    done = outcome.succeeded + outcome.already_done
    skipped = sum(planned.action != "train" for planned in plan)
    console.print(
        f"{done} trained, {len(outcome.failed)} failed, {skipped} done before. "
        f"Tables: python -m benchmark.report --profile {profile_name}",
        soft_wrap=True,
    )
    return SOME_FAILED if outcome.failed else DONE


def _names(slots: list[Slot]) -> str:
    names: dict[str, int] = {}
    for slot in slots:
        names[slot.device.name] = names.get(slot.device.name, 0) + 1
    return ", ".join(f"{name} ({count} worker{'s' if count > 1 else ''})" for name, count in names.items())


def _device_name(device: Device) -> str:
    """The device's name as results record it."""
    from benchmark.environment import cpu_name

    return device.name if device.kind == "cuda" else cpu_name()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    run_command(_command, _parser())

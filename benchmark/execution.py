"""Carrying out a plan: training on the devices of a backend."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmark.environment import cpu_name, describe_environment
from benchmark.estimates import Estimator, Work
from benchmark.inputs import Places
from benchmark.jobs import Job, JobEnded, WorkerSetup
from benchmark.plan import PlannedRun
from benchmark.schedule import Backend, CannotStart, Device, Display, Outcome, Pool, Slot, Update, run_labels
from benchmark.store import CannotClaim, Failure, Result, ResultFolder, claim, is_held


@dataclass(frozen=True)
class Placed:
    """Where runs are made, and where a worker there finds its inputs."""

    backend: Backend
    slots: Sequence[Slot]
    where: Places
    own_folder: Path


def carry_out(
    console: Console,
    folder: ResultFolder,
    plan: Sequence[PlannedRun],
    works: dict[str, Work],
    estimator: Estimator,
    placed: Placed,
    redo: bool,
    listeners: Sequence[Callable[[Update], None]] = (),
) -> Outcome:
    """Train the planned runs that need it and show how it goes; ``listeners`` hear of all that the display does.

    Seed by seed, the longest first; before them all one of each encoder and data set of which nothing is known, so that
    the time left soon rests on what was measured.

    Where no worker is left that could start or find a place, the outcome is that of the runs made before, and says so.
    Raises KeyboardInterrupt on Ctrl-C or SIGTERM, after all workers have ended.
    """
    to_train = [planned for planned in plan if planned.action == "train"]
    if not to_train:
        return Outcome()
    jobs = [
        Job(
            run=planned.run,
            views=planned.views,
            dataset=planned.dataset,
            encoder=planned.encoder,
            redo=redo,
            summary_of="validation" if planned.settings else "test",  # candidates are chosen by the former
        )
        for planned in in_order(to_train, works, estimator)
    ]

    def setup(slot: Slot) -> WorkerSetup:
        return WorkerSetup(
            results_root=folder.folder.parent,
            profile=folder.folder.name,
            data_folders=placed.where.all_data_folders,
            encoder_folders=placed.where.encoder_folders,
            built_encoders=placed.where.built_encoders,
            file_hashes=placed.where.file_hashes,
            own_folder=placed.own_folder,
            device=slot.device.kind,
            threads=slot.threads,
        )

    chosen = {planned.run_id: works[planned.run_id] for planned in to_train}
    labels = run_labels((planned.run, planned.methods, planned.settings) for planned in to_train)
    with Display(console, chosen, labels, estimator, len(placed.slots)) as display:
        heard = _all_of(display.update, lambda update: record_death(folder, placed.slots, update), *listeners)
        hire = placed.backend.workers(placed.slots, setup, folder)
        pool = Pool(len(placed.slots), hire, heard, display.retired, lambda job: is_held(folder.claims, job.run))
        try:
            asyncio.run(_until_signalled(pool.run(jobs)))
        except BaseExceptionGroup as group:
            error = group.exceptions[0]
            if not isinstance(error, CannotStart):
                raise error from None
            display.outcome.cut_short = str(error)
    return display.outcome


def in_order(to_train: Sequence[PlannedRun], works: Mapping[str, Work], estimator: Estimator) -> list[PlannedRun]:
    """The order of ``carry_out``. Equal runs keep theirs, in which inputs are shared."""
    longest_first = sorted(to_train, key=lambda planned: (planned.run.seed, -works[planned.run_id].operations))
    first: dict[str, PlannedRun] = {}
    total: dict[str, float] = {}
    for planned in longest_first:
        work = works[planned.run_id]
        total[work.inputs] = total.get(work.inputs, 0.0) + estimator.guess(work)
        if not estimator.knows(work.inputs):
            first.setdefault(work.inputs, planned)
    ahead = [first[inputs] for inputs in sorted(first, key=lambda inputs: -total[inputs])]
    taken = {planned.run_id for planned in ahead}
    return [*ahead, *(planned for planned in longest_first if planned.run_id not in taken)]


def record_death(folder: ResultFolder, slots: Sequence[Slot], update: Update) -> None:
    """Write down why a run failed where its workers died over it without a word (killed for their memory, say); a good
    result stays.
    """
    run, ended = update.job.run, update.event
    if not isinstance(ended, JobEnded) or not ended.over_deaths:
        return
    slot = slots[update.slot]
    environment = describe_environment(recorded_name(slot.device), None, slot.threads)
    # a full disk may be the failure itself
    with contextlib.suppress(OSError, CannotClaim), claim(folder.claims, run) as ours:
        if ours:
            failure = Failure(kind="died", reason=ended.reason, log=Path(ended.log).name if ended.log else None)
            folder.save_failure(Result.failed(run, failure, environment))


def recorded_name(device: Device) -> str:
    """The device's name as results record it."""
    return device.name if device.kind == "cuda" else cpu_name()


def _all_of(*listeners: Callable[[Update], None]) -> Callable[[Update], None]:
    def tell(update: Update) -> None:
        for listener in listeners:
            listener(update)

    return tell


async def _until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Await ``work``; Ctrl-C and SIGTERM cancel it, so that workers are ended first. Afterwards they mean what they
    meant before.
    """
    task = asyncio.ensure_future(work)
    signalled = False

    def cancel() -> None:
        nonlocal signalled
        signalled = True
        task.cancel()

    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        loop.add_signal_handler(number, cancel)
    try:
        await task
    except asyncio.CancelledError:
        if signalled:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)  # which leaves the system's own behind
            signal.signal(number, handler)

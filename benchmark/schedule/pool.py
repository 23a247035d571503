"""The queue: workers at slots take one job after another until all have ended, wherever the workers are."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from benchmark.jobs import EpochDone, Job, JobEnded
from benchmark.specs import identity

_SECONDS_BETWEEN_LOOKS = 5.0
_MOST_ATTEMPTS = 3  # at a job over which workers die without a word (killed, say)
_PIECES_AFTER_DEATHS = 4  # for the last of them: where memory runs out, the kernel kills without a word


class CannotStart(Exception):
    """No slot is left: its worker could not start, or found no place. What is not done cannot be done here."""


class NoPlace(Exception):
    """A slot is to be given up: its worker cannot start, or there is no place for it, nor will be soon."""


class PoolWorker(Protocol):
    """A worker at a slot, not started yet. ``end`` may be called at any time, also while being cancelled."""

    async def start(self) -> None:
        """Return once a job can be handed over. Raises NoPlace where the slot should be given up."""

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        """Follow a job to its end, also where that end is the worker's."""

    async def end(self) -> None:
        """End whatever runs, a job included."""


@dataclass(frozen=True)
class Update:
    """Something happened to a job on a slot."""

    job: Job
    slot: int
    event: EpochDone | JobEnded | None  # None: the job was handed out


class Pool:
    """Runs jobs on slots, in the order given. ``hire`` makes the worker of a slot, by the slot's number.

    ``on_update`` hears of everything that happens to jobs, ``on_retired`` of a slot that is given up, and why. A job
    that a worker died over is tried again in a fresh one, up to three times, the last time with batches in four times
    as many pieces; one for which memory ran out, in twice as many, as then are others that take as much. A slot takes
    a job only once its worker has started, and one without a job waits, its worker ended, while others are at work:
    theirs may come back. So may a job that another command held: it is looked at again once ``is_held`` says that it
    is free, which costs no worker.
    """

    def __init__(
        self,
        n_slots: int,
        hire: Callable[[int], PoolWorker],
        on_update: Callable[[Update], None],
        on_retired: Callable[[str], None],
        is_held: Callable[[Job], bool] = lambda job: False,
    ) -> None:
        self.n_slots = n_slots
        self.hire = hire
        self.on_update = on_update
        self.on_retired = on_retired
        self.is_held = is_held
        self.pending: list[Job] = []
        self.at_work = 0
        self.deaths: Counter[str] = Counter()
        self.pieces: dict[Hashable, int] = {}  # that batches were cut into when memory had run out, by what takes it
        self.elsewhere: list[Job] = []  # held by another command; looked at again when nothing else is left
        self.retired = 0
        self.starting: set[asyncio.Task[None]] = set()
        self.settled = asyncio.Event()  # set, and replaced by a fresh one, whenever a job was settled

    async def run(self, jobs: Sequence[Job]) -> None:
        """Work through all jobs; returns when each has ended. Cancelling it ends the workers. Raises CannotStart, in a
        group, where the last slot is given up before.
        """
        self.pending = list(jobs)
        async with asyncio.TaskGroup() as group:
            for index in range(self.n_slots):
                group.create_task(self._serve(index))

    async def _serve(self, index: int) -> None:
        worker = None
        try:
            while self._something_is_left():
                if not self.pending:
                    await self._wait(worker)
                    worker = None
                elif worker is None:
                    worker = self.hire(index)
                    if not await self._has_started(worker):
                        return
                else:  # looked at anew: while the worker started, another slot may have taken the job
                    worker = await self._work(index, worker, self.pending.pop(0))
        finally:
            if worker is not None:
                await worker.end()

    def _something_is_left(self) -> bool:
        return bool(self.pending or self.at_work or self.elsewhere)

    async def _has_started(self, worker: PoolWorker) -> bool:
        """Whether the worker has started; else the slot is given up. Raises CannotStart where it is the last."""
        task = asyncio.current_task()
        assert task is not None, "slots are served in tasks"
        self.starting.add(task)
        try:
            await worker.start()
        except NoPlace as error:
            self.retired += 1
            if self.retired == self.n_slots:
                left = len(self.pending) + len(self.elsewhere)
                raise CannotStart(f"No worker is left; runs not done: {left}. {error}") from None
            self.on_retired(str(error))
            return False
        finally:
            self.starting.discard(task)
        return True

    async def _work(self, index: int, worker: PoolWorker, job: Job) -> PoolWorker | None:
        """Have a job done; returns the worker where it can do another one."""
        job = job.model_copy(update={"pieces": max(job.pieces, self.pieces.get(_memory_of(job), 1))})
        self.at_work += 1
        self.on_update(Update(job, index, None))
        ended = await worker.do(job, partial(self._heard, job, index))
        if ended.was_the_last:
            await worker.end()
        self.on_update(Update(job, index, self._settle(job, ended)))
        return None if ended.was_the_last else worker

    def _heard(self, job: Job, index: int, event: EpochDone) -> None:
        self.on_update(Update(job, index, event))

    def _settle(self, job: Job, ended: JobEnded) -> JobEnded:
        """Put a job back that has not really ended; one that keeps killing its workers has failed."""
        if ended.outcome == "claimed":
            self.elsewhere.append(job)
        if ended.outcome == "out_of_memory":
            known = self.pieces.get(_memory_of(job), 1)  # of a job that began when less was known, perhaps
            self.pieces[_memory_of(job)] = max(known, 2 * job.pieces)
            self.pending.insert(0, job)
        run_id = identity(job.run)
        if ended.outcome == "success" and self.deaths[run_id]:  # so many pieces it took, perhaps
            self.pieces[_memory_of(job)] = max(self.pieces.get(_memory_of(job), 1), job.pieces)
        if ended.outcome == "died":
            self.deaths[run_id] += 1
            if self.deaths[run_id] >= _MOST_ATTEMPTS:
                ended = ended.model_copy(update={"outcome": "failed", "over_deaths": True})
            else:
                times = _PIECES_AFTER_DEATHS if self.deaths[run_id] == _MOST_ATTEMPTS - 1 else 1
                self.pending.insert(0, job.model_copy(update={"pieces": times * job.pieces}))
        self.at_work -= 1
        self.settled.set()
        self.settled = asyncio.Event()
        if not self._something_is_left():
            for task in self.starting:  # a worker that still waits for its place is not needed any more
                task.cancel()
        return ended

    async def _wait(self, worker: PoolWorker | None) -> None:
        """Nothing is to be taken now: look again, after a while, at what others hold, or wait for a job to settle."""
        settled = self.settled
        if worker is not None:
            await worker.end()  # another one may need the memory that it holds
        if self.elsewhere:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            self._look_again()
        else:
            await settled.wait()

    def _look_again(self) -> None:
        jobs, self.elsewhere = self.elsewhere, []
        for job in jobs:
            (self.elsewhere if self.is_held(job) else self.pending).append(job)


def _memory_of(job: Job) -> Hashable:
    """What decides how much memory a batch takes: jobs that share it take much the same."""
    run = job.run
    return run.encoder.encoder, run.encoder.max_length, run.data.dataset, run.optimisation.batch_size

"""Local worker processes: each takes one job after another until none is left. Spawned, never forked."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from benchmark.jobs import EpochDone, Job, JobEnded, WorkerSetup, parse_event
from benchmark.schedule.devices import Slot
from benchmark.specs import identity

WORKER = (sys.executable, "-m", "benchmark.worker")
_PROJECT = Path(__file__).resolve().parents[2]
_LINE_LIMIT = 2**22
_SECONDS_TO_END = 10.0
_SECONDS_BETWEEN_LOOKS = 5.0
_MOST_ATTEMPTS = 3  # at a job over which workers die without a word (killed, say)


class CannotStart(Exception):
    """Workers die before they take a job: no run can be made here."""


@dataclass(frozen=True)
class Update:
    """Something happened to a job on a slot."""

    job: Job
    slot: int
    event: EpochDone | JobEnded | None  # None: the job was handed out


class Pool:
    """Runs jobs on slots, in the order given. ``on_update`` hears of everything; ``command`` starts a worker.

    A job that a worker died over is tried again in a fresh one, up to three times; one for which memory ran out, with
    batches in twice as many pieces.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        setup: Callable[[Slot], WorkerSetup],
        log_folder: Path,
        on_update: Callable[[Update], None],
        command: Sequence[str] = WORKER,
    ) -> None:
        self.slots = slots
        self.setup = setup
        self.log_folder = log_folder
        self.on_update = on_update
        self.command = command
        self.pending: list[Job] = []
        self.deaths: Counter[str] = Counter()
        self.elsewhere: list[Job] = []  # held by another scheduler; looked at again when nothing else is left

    async def run(self, jobs: Sequence[Job]) -> None:
        """Work through all jobs; returns when each has ended. Cancelling it ends the workers."""
        self.pending = list(jobs)
        async with asyncio.TaskGroup() as group:
            for index, slot in enumerate(self.slots):
                group.create_task(self._serve(index, slot))

    async def _serve(self, index: int, slot: Slot) -> None:
        worker = None
        try:
            while (job := await self._next()) is not None:
                if worker is None:
                    log = self.log_folder / f"worker{index}.log"
                    worker = await _WorkerProcess.start(self.command, slot, self.setup(slot), log)
                self.on_update(Update(job, index, None))
                ended = await worker.do(job, partial(self._heard, job, index))
                if ended.outcome in ("failed", "out_of_memory", "died"):
                    await worker.end()
                    worker = None
                self.on_update(Update(job, index, self._settle(job, ended)))
        finally:
            if worker is not None:
                await worker.end()

    def _heard(self, job: Job, index: int, event: EpochDone) -> None:
        self.on_update(Update(job, index, event))

    def _settle(self, job: Job, ended: JobEnded) -> JobEnded:
        """Put a job back that has not really ended; one that keeps killing its workers has failed."""
        if ended.outcome == "claimed":
            self.elsewhere.append(job)
        if ended.outcome == "out_of_memory":
            self.pending.insert(0, job.model_copy(update={"pieces": 2 * job.pieces}))
        if ended.outcome == "died":
            run_id = identity(job.run)
            self.deaths[run_id] += 1
            if self.deaths[run_id] >= _MOST_ATTEMPTS:
                return ended.model_copy(update={"outcome": "failed"})
            self.pending.insert(0, job)
        return ended

    async def _next(self) -> Job | None:
        if self.pending:
            return self.pending.pop(0)
        if self.elsewhere:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            return self.elsewhere.pop(0) if self.elsewhere else None
        return None


class _WorkerProcess:
    """A worker and the pipes to it."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log
        self.ready = False

    @classmethod
    async def start(cls, command: Sequence[str], slot: Slot, setup: WorkerSetup, log: Path) -> "_WorkerProcess":
        environment = os.environ | slot.device.environment(slot.threads)
        environment |= {
            "HF_HUB_OFFLINE": "1",  # everything was prepared before: nothing here may wait for, or race on, a network
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TOKENIZERS_PARALLELISM": "true" if slot.threads > 1 else "false",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH")])),
        }
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as log_file:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log_file,
                env=environment,
                limit=_LINE_LIMIT,
                start_new_session=True,
            )
        worker = cls(process, log)
        worker._say(setup.model_dump_json())
        return worker

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        """Hand over a job and follow it to its end, also where that end is the worker's.

        Raises ``CannotStart`` where the worker ended by itself before it was ready; killed, it may do better next time.
        """
        try:
            self._say(job.model_dump_json())
            while line := await self._line():
                event = parse_event(line)
                if isinstance(event, EpochDone):
                    on_epoch(event)
                elif isinstance(event, JobEnded):
                    return event
                else:
                    self.ready = True
            code = await self.process.wait()
        except (ConnectionError, ValidationError) as error:
            reason = f"the worker could not be talked to ({type(error).__name__})"
            return JobEnded(outcome="died", seconds=0.0, reason=reason, log=str(self.log))
        if code < 0:
            reason = f"the worker was killed by signal {signal.Signals(-code).name}"
        else:
            reason = f"the worker ended with exit code {code}"
            if not self.ready:
                raise CannotStart(f"A worker could not start: {reason}; why stands at the end of {self.log}.")
        return JobEnded(outcome="died", seconds=0.0, reason=reason, log=str(self.log))

    async def end(self) -> None:
        """Close the worker's input, upon which it ends; if it does not, kill it. Safe to call while being cancelled."""
        if self.process.returncode is not None:
            return
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(self.process.wait()), _SECONDS_TO_END)
        except (TimeoutError, asyncio.CancelledError):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    async def _line(self) -> bytes:
        assert self.process.stdout is not None
        return await self.process.stdout.readline()

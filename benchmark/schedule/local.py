"""Local worker processes: spawned, never forked, and told what to do line by line."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmark.jobs import EpochDone, Job, JobEnded, WorkerSetup, parse_event
from benchmark.schedule.devices import Device, Slot, find_devices, make_slots
from benchmark.schedule.pool import NoPlace, PoolWorker
from benchmark.store import ResultFolder

WORKER = (sys.executable, "-m", "benchmark.worker")
_PROJECT = Path(__file__).resolve().parents[2]
_LINE_LIMIT = 2**22
_SECONDS_TO_END = 10.0
_LAST_WORDS, _LOOKED_AT = 300, 2**16  # characters of the last line, bytes of the log
_MOST_STARTS = 3  # of a process that is killed before it is ready (for its memory, say)


class LocalBackend:
    """The devices of this machine."""

    def __init__(self) -> None:
        self.devices: list[Device] = find_devices()

    def slots(self, jobs_per_device: int | None, n_jobs: int) -> list[Slot]:
        """Places for at most ``n_jobs`` workers."""
        return make_slots(self.devices, jobs_per_device, n_jobs)

    def workers(
        self, slots: Sequence[Slot], setup: Callable[[Slot], WorkerSetup], folder: ResultFolder
    ) -> Callable[[int], PoolWorker]:
        """What makes the worker of a slot."""
        return local_workers(slots, setup, folder.folder / "logs")


def local_workers(
    slots: Sequence[Slot],
    setup: Callable[[Slot], WorkerSetup],
    log_folder: Path,
    command: Sequence[str] = WORKER,
) -> Callable[[int], PoolWorker]:
    """What makes the worker of a slot on this machine; ``command`` starts its process."""

    def hire(index: int) -> PoolWorker:
        return _LocalWorker(slots[index], setup, log_folder / f"worker{index}.log", command)

    return hire


class _LocalWorker:
    """A worker of the pool on this machine: a process that is made anew where it is killed before it is ready."""

    def __init__(self, slot: Slot, setup: Callable[[Slot], WorkerSetup], log: Path, command: Sequence[str]) -> None:
        self.slot = slot
        self.setup = setup
        self.log = log
        self.command = command
        self.process: WorkerProcess | None = None

    async def start(self) -> None:
        """Make the process and wait until it takes jobs. Raises NoPlace where it ends by itself instead, or is killed
        time and again; killed once, it may do better next time.
        """
        for left in reversed(range(_MOST_STARTS)):
            try:
                self.process = await WorkerProcess.start(self.command, self.slot, self.setup(self.slot), self.log)
                return await self.process.until_ready()
            except OSError as error:  # no memory for another process, or a full disk
                raise NoPlace(f"A worker could not start: {error}.") from None
            except NoPlace:
                if not left or self.process is None or not self.process.was_killed():
                    raise

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        """Follow a job to its end."""
        assert self.process is not None, "the worker was started"
        return await self.process.do(job, on_epoch)

    async def end(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            await self.process.end()


class WorkerProcess:
    """A worker and the pipes to it."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path, log_begins: int) -> None:
        self.process = process
        self.log = log
        self.log_begins = log_begins  # bytes in it from earlier workers

    @classmethod
    async def start(cls, command: Sequence[str], slot: Slot, setup: WorkerSetup, log: Path) -> "WorkerProcess":
        environment = os.environ | slot.device.environment(slot.threads)
        environment |= {
            "HF_HUB_OFFLINE": "1",  # everything was prepared before: nothing here may wait for, or race on, a network
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TOKENIZERS_PARALLELISM": "true" if slot.threads > 1 else "false",
            "PYTHONUNBUFFERED": "1",
            "PYTHONIOENCODING": "utf-8",  # in which jobs are said, whatever the terminal knows
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH")])),
        }
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as log_file:
            log_begins = log_file.tell()
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log_file,
                env=environment,
                limit=_LINE_LIMIT,
                start_new_session=True,
            )
        worker = cls(process, log, log_begins)
        worker._say(setup.model_dump_json())
        return worker

    async def until_ready(self) -> None:
        """Wait until the worker takes jobs. Raises ``NoPlace`` where it ends instead, in whatever way."""
        if not await self._line():  # that it is ready is what a worker says first
            how = _in_words(await self.process.wait())
            said = self._last_words()
            words = f' (its last words: "{said}")' if said else ""
            raise NoPlace(f"A worker could not start: {how}{words}; why stands at the end of {self.log}.")

    def _last_words(self) -> str:
        """The last line that the process wrote into its log, cut to what fits a sentence; nothing for none."""
        try:
            with self.log.open("rb") as log_file:
                log_file.seek(max(self.log_begins, self.log.stat().st_size - _LOOKED_AT))
                lines = log_file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        printable = ("".join(filter(str.isprintable, line)).strip() for line in reversed(lines))
        return next((line.rstrip(".")[:_LAST_WORDS] for line in printable if line), "")

    def was_killed(self) -> bool:
        """Whether the process was ended by a signal."""
        return self.process.returncode is not None and self.process.returncode < 0

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        """Hand over a job and follow it to its end, also where that end is the worker's."""
        try:
            self._say(job.model_dump_json())
            while line := await self._line():
                event = parse_event(line)
                if isinstance(event, EpochDone):
                    on_epoch(event)
                elif isinstance(event, JobEnded):
                    return event
            code = await self.process.wait()
        except (ConnectionError, ValueError) as error:  # no event, or a line without end
            reason = f"the worker could not be talked to ({type(error).__name__})"
            return JobEnded(outcome="died", seconds=0.0, reason=reason, log=str(self.log))
        return JobEnded(outcome="died", seconds=0.0, reason=_in_words(code), log=str(self.log))

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


def _in_words(code: int) -> str:
    """How a process ended."""
    if code < 0:
        return f"the worker was killed by signal {signal.Signals(-code).name}"
    return f"the worker ended with exit code {code}"

"""What runs on a node: an actor that keeps one worker process, hands it jobs, and sends back what it wrote."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.jobs import EpochDone, Job, JobEnded, WorkerSetup
from benchmark.schedule import Device, NoPlace, Slot, WorkerProcess
from benchmark.store import Parcel, ResultFolder

OWN_FUNCTIONS = "own"  # the folder in the shipped code


@dataclass(frozen=True)
class Returned:
    """The last that comes of a job: how it ended, its files, and what its worker's process has printed."""

    ended: JobEnded
    parcel: Parcel
    output: bytes


class NodeWorker:
    """The actor. Its process is a child that ends when the actor does, however that ends: its standard input closes.

    Results are written to a temporary folder of the node and leave it with the end of each job.
    """

    def __init__(self, setup: WorkerSetup, slot: Slot, command: Sequence[str]) -> None:
        self.temporary = tempfile.TemporaryDirectory(prefix="benchmark_", ignore_cleanup_errors=True)
        root = Path(self.temporary.name)
        self.setup = setup.model_copy(update={"results_root": root, "own_folder": Path.cwd() / OWN_FUNCTIONS})
        # the GPUs that this actor may use are chosen with the actor, so only here they are known
        token = os.environ.get("CUDA_VISIBLE_DEVICES", "") if slot.device.kind == "cuda" else ""
        self.slot = replace(slot, device=Device(slot.device.kind, slot.device.name, token))
        self.command = command
        self.folder = ResultFolder(root, setup.profile)
        self.log = root / "worker.log"
        self.process: WorkerProcess | None = None

    async def is_there(self) -> bool:
        """Comes back once the actor has its place."""
        return True

    async def start(self) -> str:
        """Start the process and wait until it takes jobs; what it printed if it ended instead, else nothing."""
        self.process = await WorkerProcess.start(self.command, self.slot, self.setup, self.log)
        try:
            await self.process.until_ready()
        except NoPlace as error:
            return f"{error}\n{self._output().decode(errors='replace')}"
        return ""

    async def do(self, job: Job) -> AsyncIterator[EpochDone | Returned]:
        """Follow a job to its end: an event for each epoch, last what it left."""
        assert self.process is not None, "the actor was started"
        epochs: asyncio.Queue[EpochDone | None] = asyncio.Queue()
        work = asyncio.create_task(self.process.do(job, epochs.put_nowait))
        work.add_done_callback(lambda _: epochs.put_nowait(None))
        while (epoch := await epochs.get()) is not None:
            yield epoch
        yield Returned(work.result(), self.folder.take_out(job.run), self._output())

    async def end(self) -> None:
        """End the process and leave nothing on the node."""
        if self.process is not None:
            await self.process.end()
        self.temporary.cleanup()

    def _output(self) -> bytes:
        return self.log.read_bytes() if self.log.is_file() else b""

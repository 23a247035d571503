"""The driver's side of a worker on a node: it holds the run's claim, follows the actor, and stores what comes back."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from benchmark.claimed_jobs import claimed
from benchmark.cluster.node import NodeWorker, Returned
from benchmark.cluster.slots import NodeSlot
from benchmark.environment import code_state
from benchmark.errors import first_line
from benchmark.jobs import EpochDone, Job, JobEnded, WorkerSetup
from benchmark.schedule import NoPlace
from benchmark.store import Damaged, ResultFolder

_SECONDS_FOR_A_PLACE = 120.0  # long enough for a node that comes back, and for the shipped code to be unpacked
_SECONDS_BETWEEN_TRIES = 1.0
_SECONDS_TO_END = 15.0


class RayWorker:
    """A worker of the pool on a node of the cluster; on another node where its own is gone and there is room."""

    def __init__(
        self, slot: NodeSlot, setup: WorkerSetup, folder: ResultFolder, log: Path, command: Sequence[str]
    ) -> None:
        self.slot = slot
        self.setup = setup
        self.folder = folder
        self.log = log
        self.command = tuple(command)
        self.actor: Any = None
        self.alive = False

    async def start(self) -> None:
        """Find a place, start the worker's process there. Raises NoPlace where none is found in two minutes, or the
        process cannot start on that node.
        """
        last = ""
        give_up = time.monotonic() + _SECONDS_FOR_A_PLACE
        while True:
            self._make()
            try:
                await asyncio.wait_for(self.actor.is_there.remote(), max(give_up - time.monotonic(), 0.0))
                self.alive = True
                problem = await self.actor.start.remote()
                break
            except TimeoutError:
                minutes = _SECONDS_FOR_A_PLACE / 60
                reason = (
                    f"in {minutes:.0f} minutes no node of the cluster had room for the worker of {self._where()}{last}."
                )
                raise NoPlace(reason) from None
            except RayError as error:  # the node has just died, perhaps; the cluster may not know yet
                self.alive = False
                last = f" ({type(error).__name__}: {first_line(error)})"
                await self.end()
                if time.monotonic() > give_up:
                    raise NoPlace(f"{self._where()}: {type(error).__name__}: {first_line(error)}") from None
                await asyncio.sleep(_SECONDS_BETWEEN_TRIES)
        if problem:
            self._write_log(problem.encode())
            sentence = problem.splitlines()[0].partition("; why stands")[0]
            raise NoPlace(f"{self._where()}: {sentence}; why stands at the end of {self.log}.")

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        """Have a job done on the node and store its files here, unless another command holds it or has done it."""
        started = time.monotonic()
        outcome: Literal["died", "failed"]
        with claimed(self.folder, job) as found:
            if isinstance(found, JobEnded):
                return found
            try:
                return self._stored(job, await self._followed(job, on_epoch), started)
            except RayError as error:
                self.alive = False
                outcome, reason = "died", f"{self._where()} or the worker on it is gone ({type(error).__name__})"
            except Damaged as error:
                outcome, reason = "died", f"what {self._where()} sent back cannot be used: {error}"
            except OSError as error:
                outcome, reason = "failed", f"its result could not be stored here: {error}"
        seconds = time.monotonic() - started
        return JobEnded(outcome=outcome, seconds=seconds, reason=reason, log=str(self.log))

    async def end(self) -> None:
        """End the process on the node, then the actor; an actor that is killed takes its process with it."""
        if self.actor is None:
            return
        actor, self.actor = self.actor, None
        try:
            if self.alive:
                with contextlib.suppress(RayError, TimeoutError):
                    await asyncio.wait_for(actor.end.remote(), _SECONDS_TO_END)
        finally:
            with contextlib.suppress(RayError):
                ray.kill(actor)

    def _make(self) -> None:
        options = {
            "num_cpus": self.slot.cpus,
            "num_gpus": self.slot.gpus,
            "max_restarts": 0,  # the pool decides what becomes of a job
            "scheduling_strategy": NodeAffinitySchedulingStrategy(self.slot.node, soft=True),
        }
        self.actor = ray.remote(NodeWorker).options(**options).remote(self.setup, self.slot, self.command)

    async def _followed(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> Returned:
        async for reference in self.actor.do.options(num_returns="streaming").remote(job):
            message = await reference
            if isinstance(message, Returned):
                return message
            on_epoch(message)
        raise Damaged("the end of the run is missing")

    def _stored(self, job: Job, returned: Returned, started: float) -> JobEnded:
        """Store the files of a job and say where its log stands now. A failure never replaces a good result.

        Where the worker ended over scoring what it had trained, the training is done: another attempt, which finds
        nothing on its node, would make it anew, and the next command scores what is stored here.
        """
        ended, parcel = returned.ended, returned.parcel
        result = parcel.opened(job.run)
        if ended.outcome == "success" and result is None:
            raise Damaged("the result is missing")
        if result is not None:
            commit, changed = code_state()  # there is no checkout on the node: the code came from here
            state = {"code_commit": commit, "code_changed": changed}
            result = result.model_copy(update={"environment": result.environment.model_copy(update=state)})
            if result.status == "failed":
                self.folder.save_failure(result)
            else:
                self.folder.put(result, parcel.logits)
        if ended.outcome == "died":
            self._write_log(returned.output)
            ended = ended.model_copy(update={"reason": f"{ended.reason} on {self._where()}", "log": str(self.log)})
        else:
            log = None if parcel.log is None else str(self.folder.put_log(job.run, parcel.log))
            ended = ended.model_copy(update={"log": log})
        if ended.outcome in ("died", "out_of_memory") and result is not None and result.status == "success":
            reason = f"{ended.reason}, when it was to be scored; the next command scores it"
            kept = {"outcome": "success", "seconds": time.monotonic() - started, "reason": reason, "worker_ended": True}
            ended = ended.model_copy(update=kept)
        return ended

    def _write_log(self, content: bytes) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as file:
            file.write(content)

    def _where(self) -> str:
        return self.slot.device.name

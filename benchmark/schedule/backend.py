"""What a command needs of the machines that its jobs run on, be it this one or many."""

from collections.abc import Callable, Sequence
from typing import Protocol

from benchmark.jobs import WorkerSetup
from benchmark.schedule.devices import Device, Slot
from benchmark.schedule.pool import PoolWorker
from benchmark.store import ResultFolder


class Backend(Protocol):
    """Devices, places on them, and workers at those places."""

    devices: list[Device]  # at least one

    def slots(self, jobs_per_device: int | None, n_jobs: int) -> Sequence[Slot]:
        """Places for at most ``n_jobs`` workers, at least one."""

    def workers(
        self, slots: Sequence[Slot], setup: Callable[[Slot], WorkerSetup], folder: ResultFolder
    ) -> Callable[[int], PoolWorker]:
        """What makes the worker of a slot, by the slot's number; results come to stand in ``folder``."""

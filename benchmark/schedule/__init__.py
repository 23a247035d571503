"""Placing runs on devices: of this machine, or of any other backend."""

from benchmark.schedule.backend import Backend
from benchmark.schedule.devices import Device, Slot, cpu_workers, find_devices, make_slots, scoring_processes
from benchmark.schedule.local import LocalBackend, WorkerProcess, local_workers
from benchmark.schedule.pool import CannotStart, NoPlace, Pool, PoolWorker, Update
from benchmark.schedule.progress import Display, Outcome, run_labels

__all__ = [
    "Backend",
    "CannotStart",
    "Device",
    "Display",
    "LocalBackend",
    "NoPlace",
    "Outcome",
    "Pool",
    "PoolWorker",
    "Slot",
    "Update",
    "WorkerProcess",
    "cpu_workers",
    "find_devices",
    "local_workers",
    "make_slots",
    "run_labels",
    "scoring_processes",
]

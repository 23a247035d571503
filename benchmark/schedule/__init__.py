"""Placing runs on the devices of this machine."""

from benchmark.schedule.devices import Device, Slot, find_devices, make_slots
from benchmark.schedule.pool import CannotStart, Pool, Update
from benchmark.schedule.progress import Display, Outcome, run_labels

__all__ = [
    "CannotStart",
    "Device",
    "Display",
    "Outcome",
    "Pool",
    "Slot",
    "Update",
    "find_devices",
    "make_slots",
    "run_labels",
]

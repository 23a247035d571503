"""The devices of this machine, as places for worker processes. Knows nothing of torch: a device is environment
variables.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import joblib

from benchmark.schedule.memory import host_memory

# What one training process of a base-size encoder takes at its peak (measured: 4.3 and 4.9 GiB), and one that scores.
_BYTES_PER_WORKER = 5 * 2**30
_BYTES_PER_SCORING = 2 * 2**30
# A line of `nvidia-smi -L`: a GPU, or below it a part that MIG cut off from it.
_LISTED = re.compile(
    r"\s*(GPU (?P<index>\d+)|(?P<part>MIG \S+)\s+Device\s+\d+): *(?P<name>.*?) *\(UUID: (?P<uuid>\S+)\)"
)
_NAMES_BY_TORCH = """
import torch
for index in range(torch.cuda.device_count()):
    print(torch.cuda.get_device_name(index))
"""


@dataclass(frozen=True)
class Device:
    """One GPU, or the CPU. ``token`` is what CUDA_VISIBLE_DEVICES holds for a worker there: an index, UUID or MIG id,
    unchanged. ``listed``: an index among all GPUs of the machine as they are on the bus; CUDA would count by speed.
    """

    kind: Literal["cuda", "cpu"]
    name: str
    token: str = ""
    listed: bool = False

    def environment(self, threads: int) -> dict[str, str]:
        """The variables of a worker on this device; they must be set before torch is imported."""
        counts = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}
        order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if self.listed else {}
        return {"CUDA_VISIBLE_DEVICES": self.token, **order, **counts}


@dataclass(frozen=True)
class Slot:
    """A place for one worker: a device, and how many CPU threads the worker may use."""

    device: Device
    threads: int


def find_devices() -> list[Device]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES says if it is set, else all that nvidia-smi lists,
    of one that is cut into parts (MIG) its parts; else the CPU. Where nvidia-smi lists none (some containers lack it)
    and the machine has device files of NVIDIA's all the same, torch is asked, which takes seconds.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names, whole = _gpu_names()
    if not names and _has_device_files():
        return _found_by_torch(visible) or [_cpu()]
    if visible is not None:
        tokens = _visible_tokens(visible, names)
        return [Device("cuda", names.get(_whole(token, names), f"GPU {token}"), token) for token in tokens] or [_cpu()]
    return [Device("cuda", names[token], token) for token in whole] or [_cpu()]


def make_slots(devices: list[Device], jobs_per_device: int | None, n_jobs: int) -> list[Slot]:
    """Places for at most ``n_jobs`` workers, devices taking turns, so that few jobs use all of them.

    Without ``jobs_per_device``: one worker a GPU (a second only slices its time), on a CPU one a core as far as memory
    goes. A worker's threads are its even share of the cores, however few jobs there are: the number of threads decides
    the last bits of sums, and a run must not depend on how many others were left to do.
    """
    cores = joblib.cpu_count()
    by_device = [[device] * (jobs_per_device or _default_jobs(device, cores)) for device in devices]
    places = [device for turn in zip_longest(*by_device) for device in turn if device is not None]
    threads = max(1, cores // len(places))
    return [Slot(device, threads) for device in places[: max(n_jobs, 1)]]


def cpu_workers(cores: int, memory: int, each: int = _BYTES_PER_WORKER) -> int:
    """How many workers a machine without GPUs has: one a core, as far as ``memory`` goes at ``each`` (bytes), at least
    one.
    """
    return max(1, min(cores, memory // each))


def scoring_processes(jobs: int) -> int:
    """How many processes of this machine score so many runs."""
    return min(cpu_workers(joblib.cpu_count(), host_memory(), _BYTES_PER_SCORING), jobs)


def _default_jobs(device: Device, cores: int) -> int:
    return 1 if device.kind == "cuda" else cpu_workers(cores, host_memory())


def _cpu() -> Device:
    return Device("cpu", f"CPU, {joblib.cpu_count()} cores")


def _visible_tokens(visible: str, names: dict[str, str]) -> list[str]:
    """The devices that CUDA would see, each once: indices and names up to the first that is none, as -1, nothing, an
    index beyond the last, or a UUID that no GPU's begins with; none where there is no driver.
    """
    tokens: list[str] = []
    for token in (part.strip() for part in visible.split(",")):
        # of a part by MIG there is an older name, too, which is not listed
        known = token in names or (token.startswith("GPU-") and _whole(token, names) in names) or token[:4] == "MIG-"
        if not names or not known:
            break
        tokens.append(token)
    return list(dict.fromkeys(tokens))


def _whole(token: str, names: dict[str, str]) -> str:
    """The UUID that a token begins as the only one: CUDA takes as much of it as tells it from others."""
    found = [name for name in names if token and name.startswith(token)]
    return found[0] if len(found) == 1 else token


def _gpu_names() -> tuple[dict[str, str], list[str]]:
    """Names of the machine's GPUs by index and by UUID, parts by MIG by their UUID; and the UUIDs of all that make up
    the machine, of a GPU that is cut into parts theirs: by index CUDA may count otherwise, by speed or without a card
    that is broken. Both empty where nvidia-smi lists nothing.
    """
    if shutil.which("nvidia-smi") is None:
        return {}, []
    try:  # it says what it can, and may end in an error for one card of several
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return {}, []
    names: dict[str, str] = {}
    whole: list[str] = []
    gpu = uncut = ""
    for found in filter(None, map(_LISTED.match, listing.splitlines())):
        token = found["uuid"]
        if found["index"]:
            gpu, uncut = found["name"], token
            names[found["index"]] = names[token] = gpu
        else:
            names[token] = f"{gpu} {found['part']}"
            if whole and whole[-1] == uncut:
                whole.pop()
        whole.append(token)
    return names, whole


def _has_device_files() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*"))


def _found_by_torch(visible: str | None) -> list[Device]:
    """What torch finds in a process of its own, for importing it takes seconds and memory; none where that fails."""
    command = [sys.executable, "-c", _NAMES_BY_TORCH]
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if visible is None else {}
    try:
        found = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=True, env=os.environ | order
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return []
    tokens = [str(index) for index in range(len(found))] if visible is None else visible.split(",")
    return [
        Device("cuda", name, token.strip(), listed=visible is None)
        for name, token in zip(found, tokens, strict=False)  # after the first that is none CUDA sees no more
    ]

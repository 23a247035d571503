"""The devices of this machine, as places for worker processes. Knows nothing of torch: a device is environment
variables.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from itertools import zip_longest

import joblib

# What one training process of a base-size encoder needs in host memory, used to bound processes on a CPU.
_BYTES_PER_WORKER = 3 * 2**30


@dataclass(frozen=True)
class Device:
    """One GPU, or the CPU. ``token`` is what CUDA_VISIBLE_DEVICES holds for a worker there: an index, UUID or MIG id,
    unchanged.
    """

    kind: str  # "cuda" or "cpu"
    name: str
    token: str = ""

    def environment(self, threads: int) -> dict[str, str]:
        """The variables of a worker on this device; they must be set before torch is imported."""
        counts = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}
        return {"CUDA_VISIBLE_DEVICES": self.token, **counts}


@dataclass(frozen=True)
class Slot:
    """A place for one worker: a device, and how many CPU threads the worker may use."""

    device: Device
    threads: int


def find_devices() -> list[Device]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES says if it is set, else as nvidia-smi lists; else
    the CPU.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = _gpu_names()
    if visible is not None:
        tokens = _visible_tokens(visible, names)
        return [Device("cuda", names.get(token, f"GPU {token}"), token) for token in tokens] or [_cpu()]
    indices = [token for token in names if token.isdigit()]
    return [Device("cuda", names[index], index) for index in indices] or [_cpu()]


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


def cpu_workers(cores: int, memory: int) -> int:
    """How many workers a machine without GPUs has: one a core, as far as ``memory`` (bytes) goes, at least one."""
    return max(1, min(cores, memory // _BYTES_PER_WORKER))


def scoring_processes(jobs: int) -> int:
    """How many processes of this machine score so many runs."""
    return min(cpu_workers(joblib.cpu_count(), _host_memory()), jobs)


def _default_jobs(device: Device, cores: int) -> int:
    return 1 if device.kind == "cuda" else cpu_workers(cores, _host_memory())


def _cpu() -> Device:
    return Device("cpu", f"CPU, {joblib.cpu_count()} cores")


def _host_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _visible_tokens(visible: str, names: dict[str, str]) -> list[str]:
    """The devices that CUDA would see: indices and names up to the first that is none, as -1, nothing, or an index
    beyond the last; none where there is no driver.
    """
    tokens: list[str] = []
    for token in (part.strip() for part in visible.split(",")):
        known = token in names if token.isdigit() else token.startswith(("GPU-", "MIG-"))
        if not names or not known:
            break
        tokens.append(token)
    return tokens


def _gpu_names() -> dict[str, str]:
    """Names of the machine's GPUs by index and by UUID (MIG instances by their UUID); empty where there is no
    driver.
    """
    if shutil.which("nvidia-smi") is None:
        return {}
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    names = {}
    for line in listing.splitlines():
        head, _, rest = line.strip().partition(": ")
        name, _, uuid = rest.partition(" (UUID: ")
        if uuid:
            names[uuid.rstrip(")")] = name.strip()
        if head.startswith("GPU ") and head[4:].isdigit():
            names[head[4:]] = name.strip()
    return names

"""The connection to a Ray cluster, and the code that goes with it to every node."""

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import ray
from ray._private import services
from ray.exceptions import RayError

from benchmark.cluster.node import OWN_FUNCTIONS
from benchmark.cluster.slots import NodeSlot, node_devices, node_slots
from benchmark.cluster.workers import RayWorker
from benchmark.environment import code_state
from benchmark.errors import UserError, first_line
from benchmark.jobs import WorkerSetup
from benchmark.schedule import Device, PoolWorker, Slot
from benchmark.schedule.local import WORKER
from benchmark.store import ResultFolder

_PACKAGE = Path(__file__).resolve().parents[1]
_SECONDS_TO_ANSWER = 10.0


class RayBackend:
    """The nodes of a Ray cluster. Ray ends what it has started for this process when this process ends."""

    def __init__(self, address: str | None, own_folder: Path) -> None:
        """Connect; raises UserError, in one sentence, where there is no such cluster or no node takes workers."""
        code_state()  # kept from now on: what is sent to the nodes is the code of now
        _connect(address, own_folder)
        self.devices: list[Device] = node_devices(ray.nodes())
        if not self.devices:
            raise UserError("--backend ray: no node of the cluster has a CPU or a GPU for workers.")

    def slots(self, jobs_per_device: int | None, n_jobs: int) -> list[NodeSlot]:
        """Places for at most ``n_jobs`` workers."""
        return node_slots(ray.nodes(), jobs_per_device, n_jobs)

    def workers(
        self,
        slots: Sequence[Slot],
        setup: Callable[[Slot], WorkerSetup],
        folder: ResultFolder,
        command: Sequence[str] = WORKER,
    ) -> Callable[[int], PoolWorker]:
        """What makes the worker of a slot on its node; ``command`` starts its process there."""

        def hire(index: int) -> PoolWorker:
            slot = slots[index]
            assert isinstance(slot, NodeSlot), "the slots are those of this backend"
            return RayWorker(slot, setup(slot), folder, folder.folder / "logs" / f"worker{index}.log", command)

        return hire


def _connect(address: str | None, own_folder: Path) -> None:
    """Connect to the cluster that is named, else to one that runs here, else start one of this machine alone."""
    named = address or os.environ.get("RAY_ADDRESS")
    if named is not None and named != "auto":
        _check(named)
    elif named is None and not _one_runs_here():
        address = "local"
    handler = signal.getsignal(signal.SIGTERM)
    with tempfile.TemporaryDirectory() as folder:
        _stage(Path(folder), own_folder)
        options = {
            "runtime_env": {"working_dir": folder},
            "log_to_driver": False,
            "logging_level": logging.CRITICAL,
            "configure_logging": True,
        }
        try:
            if address == "local":
                ray.init(address=address, include_dashboard=False, **options)
            else:
                ray.init(address=named or "auto", **options)
        except (ConnectionError, RayError, RuntimeError, ValueError) as error:  # another version of Ray or Python, say
            raise UserError(f"--backend ray: {named or 'the cluster here'}: {first_line(error)}") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray sets one of its own, which would not end the workers first
    # What Ray prints of a node that is gone, twenty lines of its log, has no switch; the pool says it in one.
    ray._private.worker._worker_logs_enabled = False


def _one_runs_here() -> bool:
    """Whether a cluster runs on this machine; Ray also remembers one that is gone, and would try it for ten minutes."""
    try:
        _check(services.canonicalize_bootstrap_address_or_die("auto"))
    except (ConnectionError, UserError):
        return False
    return True


def _check(address: str) -> None:
    """See that somebody listens there, for Ray would try for ten minutes. Raises UserError."""
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal()) or "/" in host:
        raise UserError(f"--address {address}: write HOST:PORT of the head, or auto on a machine of the cluster.")
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"--backend ray: nothing answers at {address} ({error}).") from None


def _stage(folder: Path, own_folder: Path) -> None:
    """Put together what every node gets: the package and the user's own functions; no data, no results."""
    shutil.copytree(_PACKAGE, folder / _PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / OWN_FUNCTIONS).mkdir()
    for path in own_folder.glob("*.py"):
        shutil.copy2(path, folder / OWN_FUNCTIONS)

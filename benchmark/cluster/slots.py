"""The nodes of a cluster, as places for workers. Pure: takes what Ray says of its nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from benchmark.schedule import Device, Slot, cpu_workers

_PARTS_OF_A_GPU = 10_000  # Ray counts resources in ten-thousandths


@dataclass(frozen=True)
class NodeSlot(Slot):
    """A place on a node, and the share of its CPUs and GPUs that Ray sets aside for the worker."""

    node: str  # Ray's identifier of it
    cpus: float
    gpus: float


def node_devices(nodes: Iterable[Mapping[str, Any]]) -> list[Device]:
    """A device for each node that takes workers, by address: nodes with GPUs; where there are none, those with CPUs."""
    return [_device(node) for node in _usable(nodes)]


def node_slots(nodes: Iterable[Mapping[str, Any]], jobs_per_device: int | None, n_jobs: int) -> list[NodeSlot]:
    """Places for at most ``n_jobs`` workers on ``nodes`` (the dictionaries of ``ray.nodes()``), nodes taking turns.

    ``jobs_per_device`` workers share a GPU (default: one), so that each has the N-th part of it; on a node without
    GPUs it is the number of workers of the node (default: one a core, as far as memory goes). A worker's threads are
    its even share of the node's cores, as on one machine.
    """
    by_node = [_places(node, jobs_per_device) for node in _usable(nodes)]
    turns = [slot for turn in zip_longest(*by_node) for slot in turn if slot is not None]
    return turns[: max(n_jobs, 1)]


def _usable(nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    alive = sorted(
        (node for node in nodes if node["Alive"]), key=lambda node: (node["NodeManagerAddress"], node["NodeID"])
    )
    with_gpus = [node for node in alive if node["Resources"].get("GPU", 0) >= 1]
    return with_gpus or [node for node in alive if node["Resources"].get("CPU", 0) >= 1]


def _device(node: Mapping[str, Any]) -> Device:
    return Device("cuda" if node["Resources"].get("GPU", 0) >= 1 else "cpu", f"node {node['NodeManagerAddress']}")


def _places(node: Mapping[str, Any], jobs_per_device: int | None) -> list[NodeSlot]:
    resources, device = node["Resources"], _device(node)
    cores = int(resources.get("CPU", 0))
    if device.kind == "cuda":
        a_gpu = jobs_per_device or 1
        count, gpus = int(resources["GPU"]) * a_gpu, (_PARTS_OF_A_GPU // a_gpu) / _PARTS_OF_A_GPU
    else:
        count, gpus = jobs_per_device or cpu_workers(cores, int(resources.get("memory", 0))), 0.0
    threads = max(1, cores // count)
    # a node may have fewer cores than workers; then each has a part of one
    cpus = float(threads) if threads * count <= cores else (_PARTS_OF_A_GPU * cores // count) / _PARTS_OF_A_GPU
    return [NodeSlot(device, threads, node["NodeID"], cpus, gpus)] * count

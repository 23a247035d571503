"""What a cluster backend decides without a cluster: options, places on nodes, what it takes from a node."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.cluster.slots import NodeSlot, node_devices, node_slots
from benchmark.registry import Registry, Subject
from benchmark.store import Damaged, Parcel, Result, ResultFolder
from tests.conftest import PROJECT, Command
from tests.results import made_logits, made_result

GIB = 2**30


def node(name: str, alive: bool = True, **resources: float) -> dict:
    return {"NodeID": name, "Alive": alive, "NodeManagerAddress": f"10.0.0.{name}", "Resources": resources}


def places(slots: list[NodeSlot]) -> list[tuple[str, int, float, float]]:
    return [(slot.node, slot.threads, slot.cpus, slot.gpus) for slot in slots]


def test_without_gpus_a_node_has_a_worker_a_core_as_far_as_its_memory_goes() -> None:
    nodes = [node("2", CPU=4, memory=12 * GIB), node("1", CPU=2, memory=64 * GIB), node("3", memory=64 * GIB)]
    assert places(node_slots(nodes, None, 99)) == [
        ("1", 1, 1.0, 0.0), ("2", 2, 2.0, 0.0), ("1", 1, 1.0, 0.0), ("2", 2, 2.0, 0.0),
    ]  # fmt: skip
    assert [slot.node for slot in node_slots(nodes, None, 3)] == ["1", "2", "1"]
    assert places(node_slots(nodes, 1, 99)) == [("1", 2, 2.0, 0.0), ("2", 4, 4.0, 0.0)]
    assert [device.name for device in node_devices(nodes)] == ["node 10.0.0.1", "node 10.0.0.2"]


def test_with_gpus_only_nodes_with_gpus_are_used_and_workers_share_each() -> None:
    nodes = [node("1", CPU=64), node("2", CPU=16, GPU=2), node("3", CPU=1, GPU=1), node("4", alive=False, GPU=8)]
    assert places(node_slots(nodes, None, 99)) == [("2", 8, 8.0, 1.0), ("3", 1, 1.0, 1.0), ("2", 8, 8.0, 1.0)]
    shared = node_slots(nodes, 3, 99)
    assert places(shared)[:2] == [("2", 2, 2.0, 0.3333), ("3", 1, 0.3333, 0.3333)]
    assert len(shared) == 9
    assert {device.kind for device in node_devices(nodes)} == {"cuda"}
    for count in range(1, 40):  # as many shares as were asked for fit in a whole, whatever their rounding
        (slot, *_) = node_slots([node("1", CPU=1, GPU=1)], count, 99)
        assert count * slot.gpus <= 1
        assert count * slot.cpus <= 1


def test_a_cluster_without_cores_has_no_place() -> None:
    assert node_slots([node("1", memory=GIB)], None, 5) == []
    assert node_devices([]) == []


def test_an_address_without_ray_and_ray_that_is_not_installed_are_a_sentence(
    benchmark_command: Command, tmp_path: Path
) -> None:
    call = benchmark_command("run", "--address", "10.0.0.1:6379")
    assert (call.returncode, call.stdout) == (2, "")
    assert call.stderr == "error: --address names a Ray cluster: it goes with --backend ray.\n"
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('No module named ray', name='ray')")
    call = benchmark_command("run", "--backend", "ray", env={"PYTHONPATH": str(tmp_path)})
    assert (call.returncode, call.stdout) == (2, "")
    assert call.stderr == "error: --backend ray needs Ray: pip install -r requirements-cluster.txt\n"


def test_ray_is_not_imported_unless_it_is_asked_for() -> None:
    script = "import sys, benchmark.run, benchmark.cluster.slots; print('ray' in sys.modules)"
    call = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=PROJECT, check=True)
    assert call.stdout.strip() == "False"


@pytest.fixture
def result(registry: Registry) -> Result:
    return made_result(registry, Subject("tnews", "base", "bert"))


def test_the_files_of_a_run_move_from_one_folder_to_another(result: Result, tmp_path: Path) -> None:
    node, here = ResultFolder(tmp_path / "node", "tiny"), ResultFolder(tmp_path / "here", "tiny")
    node.save(result, made_logits(0))
    node.put_log(result.run, b"all went well")
    parcel = node.take_out(result.run)
    assert parcel.log == b"all went well"
    assert not [path for path in node.folder.rglob("*") if path.is_file()]
    moved = parcel.opened(result.run)
    assert moved is not None
    here.put(moved, parcel.logits)
    assert here.read(result.run) == moved
    read = here.read_logits(moved)
    assert read is not None
    assert (read.test_logits == made_logits(0).test_logits).all()
    assert node.take_out(result.run) == Parcel(None, None, None)
    assert Parcel(None, None, None).opened(result.run) is None


def test_what_is_not_what_was_computed_is_refused(registry: Registry, result: Result, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    folder.save(result, made_logits(0))
    parcel = folder.take_out(result.run)
    assert parcel.result is not None
    assert parcel.logits is not None
    other = made_result(registry, Subject("tnews", "base", "ls")).run
    elsewhere = parcel.result.replace(b'"file": "', b'"file": "../')
    for damaged, run, reason in (
        (replace(parcel, logits=parcel.logits[:-1] + b"x"), result.run, "not the bytes that were computed"),
        (replace(parcel, logits=None), result.run, "do not belong together"),
        (replace(parcel, result=parcel.result[:100]), result.run, "no result"),
        (replace(parcel, result=elsewhere), result.run, "not the bytes that were computed"),
        (parcel, other, "another run"),
    ):
        with pytest.raises(Damaged, match=reason):
            damaged.opened(run)

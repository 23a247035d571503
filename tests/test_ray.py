"""Runs on a real Ray cluster: a head without cores and two nodes of one core, all on this machine's loopback."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmark.inputs import find_inputs, places
from benchmark.jobs import EpochDone, Job, JobEnded, WorkerSetup
from benchmark.plan import make_plan
from benchmark.registry import Registry, Subject, select_tables
from benchmark.schedule import Device, Pool, Slot, Update
from benchmark.specs import identity
from benchmark.store import KnownResults, ResultFolder
from benchmark.worker import Worker
from tests.conftest import PROJECT
from tests.fake_worker import SLEEPS
from tests.results import failed_result, made_logits, made_result
from tests.test_pool import FAKE
from tests.test_pool import job as fake_job

ray = pytest.importorskip("ray", reason="needs Ray: pip install -r requirements-cluster.txt")

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"  # whatever token a cluster before has left in the home folder
LONG = 60  # epochs, some seconds: time enough to be in the middle of


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def backend(cluster: Any, tmp_path: Path) -> Iterator[Any]:
    from benchmark.cluster.connection import RayBackend

    yield RayBackend(cluster.address, tmp_path / "own")
    ray.shutdown()


def jobs_of(registry: Registry, cache: Path, methods: list[str], epochs: list[int]) -> list[Job]:
    """Jobs on generated data; their lengths as asked."""
    inputs = find_inputs(registry, ["tiny_banking77"], ["tiny_base"], places(None, None, cache)).inputs
    tables = select_tables(registry, "tiny", ["main"], ["banking77"], methods)
    plan = make_plan(registry, "tiny", tables, [0], inputs, KnownResults.of([]))
    jobs = []
    for planned, count in zip(plan, epochs, strict=True):
        optimisation = planned.run.optimisation.model_copy(update={"epochs": count})
        run = planned.run.model_copy(update={"optimisation": optimisation})
        jobs.append(Job(run=run, views=planned.views, dataset=planned.dataset, encoder=planned.encoder, redo=False))
    return jobs


def setup_of(cache: Path, root: Path) -> WorkerSetup:
    where = places(None, None, cache)
    return WorkerSetup(
        results_root=root,
        profile="tiny",
        data_folders=where.all_data_folders,
        encoder_folders=(),
        built_encoders=where.built_encoders,
        file_hashes=where.file_hashes,
        own_folder=root,
        device="cpu",
        threads=1,
    )


def noting_its_process(path: Path, *command: str) -> list[str]:
    """A command that starts the same worker and first appends its process number to a file."""
    return ["sh", "-c", f'echo $$ >> "{path}"; exec "$@"', "sh", *command]


def wait_until_ended(processes: list[int]) -> None:
    deadline = time.monotonic() + 60
    while processes and time.monotonic() < deadline:
        processes = [process for process in processes if Path(f"/proc/{process}").exists()]
        time.sleep(0.05)
    assert not processes


def scores(folder: ResultFolder, job: Job) -> list[dict]:
    result = folder.read(job.run)
    assert result is not None
    assert folder.read_logits(result) is not None
    return [view.model_dump() for view in result.views]


def test_the_command_makes_its_runs_on_the_nodes_and_ends_all_when_told_to(
    cluster: Any, tiny_experiments: Path, cache_dir: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "benchmark.run", "--profile", "tiny", "--experiments", str(tiny_experiments),
               "--results-dir", str(tmp_path), "--backend", "ray", "--address", cluster.address,
               "--table", "main", "--datasets", "banking77", "--methods", "bert", "ls", "--seeds"]  # fmt: skip
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "BENCHMARK_CACHE_DIR": str(cache_dir)}
    options = {"cwd": PROJECT, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen([*command, "0"], **options)
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    assert "(2 workers)" in output.splitlines()[0]
    assert "2 trained, 0 failed" in output
    assert len(output.splitlines()) == 4, output  # nothing but our own lines
    results, unusable = ResultFolder(tmp_path, "tiny").read_all()
    assert not unusable
    assert len(results) == 2
    if (PROJECT / ".git").exists():
        assert {result.environment.code_commit for result in results} != {None}

    process = subprocess.Popen([*command, "1-200"], **options)  # far more than are made before the signal
    assert process.stdout is not None
    while " done " not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "interrupted" in output
    again = ResultFolder(tmp_path, "tiny").read_all()
    assert len(again[0]) > 2
    assert not again[1]


@pytest.mark.parametrize("outcome", ["died", "out_of_memory"])
def test_what_was_trained_is_kept_where_the_worker_ended_over_scoring_it(
    outcome: str, registry: Registry, tmp_path: Path
) -> None:
    from benchmark.cluster.node import Returned
    from benchmark.cluster.slots import NodeSlot
    from benchmark.cluster.workers import RayWorker

    trained = made_result(registry, Subject("tnews", "base", "bert")).model_copy(update={"views": []})
    node, here = ResultFolder(tmp_path / "node", "tiny"), ResultFolder(tmp_path / "here", "tiny")
    node.save(trained, made_logits(0))
    ended = JobEnded.model_validate({"outcome": outcome, "seconds": 0.0, "reason": "the worker was killed"})

    class Followed(RayWorker):
        async def _followed(self, job: Job, on_epoch: object) -> Returned:
            return Returned(ended, node.take_out(job.run), b"what it printed")

    job = fake_job(registry, 0).model_copy(update={"run": trained.run})
    slot = NodeSlot(Device("cpu", "node 10.0.0.1"), 1, "1", 1.0, 0.0)
    worker = Followed(slot, setup_of(tmp_path, tmp_path), here, tmp_path / "worker0.log", FAKE)
    end = asyncio.run(worker.do(job, lambda epoch: None))
    assert (end.outcome, end.worker_ended) == ("success", True)
    assert end.reason.startswith("the worker was killed")
    assert end.reason.endswith("when it was to be scored; the next command scores it")
    stored = here.read(trained.run)
    assert stored is not None
    assert here.has_logits(stored)
    node.save_failure(failed_result(trained.run))  # where nothing was trained, it is to be tried again
    assert asyncio.run(worker.do(job.model_copy(update={"redo": True}), lambda epoch: None)).outcome == outcome


def test_ending_early_leaves_no_process_on_any_node(backend: Any, registry: Registry, tmp_path: Path) -> None:
    slots = backend.slots(None, 2)
    command = noting_its_process(tmp_path / "processes", *FAKE)
    hire = backend.workers(slots, lambda slot: setup_of(tmp_path, tmp_path), ResultFolder(tmp_path, "tiny"), command)

    async def cancel_while_both_are_busy() -> None:
        busy = asyncio.Event()
        heard = set()

        def hear(update: Update) -> None:
            if isinstance(update.event, EpochDone):
                heard.add(update.slot)
            if len(heard) == 2:
                busy.set()

        jobs = [fake_job(registry, SLEEPS), fake_job(registry, SLEEPS).model_copy(update={"pieces": 2})]
        jobs[1] = jobs[1].model_copy(update={"run": jobs[1].run.model_copy(update={"training_version": 999})})
        work = asyncio.create_task(Pool(2, hire, hear, lambda reason: None).run(jobs))
        await asyncio.wait_for(busy.wait(), 120)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancel_while_both_are_busy())
    processes = [int(line) for line in (tmp_path / "processes").read_text().split()]
    assert len(processes) == 2
    wait_until_ended(processes)


def test_a_node_that_dies_in_the_middle_costs_a_run_its_time_and_nothing_else(
    cluster: Any, backend: Any, registry: Registry, cache_dir: Path, tmp_path: Path
) -> None:
    jobs = jobs_of(registry, cache_dir, ["bert", "ls", "avuc"], [LONG, 2, 2])
    folder = ResultFolder(tmp_path / "results", "tiny")
    slots = backend.slots(None, 99)
    assert len(slots) == 2
    nodes = {node.node_id: node for node in cluster.list_all_nodes()}
    killed: list[Slot] = []
    updates: list[Update] = []
    pool: list[Pool] = []

    def hear(update: Update) -> None:
        updates.append(update)
        if isinstance(update.event, EpochDone) and update.job.run == jobs[0].run and not killed:
            killed.append(slots[update.slot])
            cluster.remove_node(nodes[slots[update.slot].node], allow_graceful=False)

    def setup(slot: Slot) -> WorkerSetup:
        return setup_of(cache_dir, tmp_path / "nowhere")

    from benchmark.schedule.local import WORKER

    command = noting_its_process(tmp_path / "processes", *WORKER)
    retired: list[str] = []
    pool.append(Pool(2, backend.workers(slots, setup, folder, command), hear, retired.append))
    asyncio.run(asyncio.wait_for(pool[0].run(jobs), 300))

    first = [update for update in updates if update.job.run == jobs[0].run and not isinstance(update.event, EpochDone)]
    assert [update.event and update.event.outcome for update in first] == [None, "died", None, "success"]
    assert first[0].slot != first[2].slot
    assert "is gone" in first[1].event.reason
    assert not (tmp_path / "nowhere").exists()  # what a node writes, it writes to a folder of its own
    for job in jobs:
        ended = [update.event for update in updates if update.job == job and isinstance(update.event, JobEnded)][-1]
        assert ended.outcome == "success"
        assert ended.log is not None
        assert Path(ended.log) == folder.log_path(job.run)
        assert Path(ended.log).is_file()
    local = ResultFolder(tmp_path / "local", "tiny")
    worker = Worker(setup_of(cache_dir, tmp_path / "local"), io.StringIO())
    for job in (jobs[0], jobs[2]):
        assert worker.handle(job).outcome == "success"
        assert scores(folder, job) == scores(local, job)
    wait_until_ended([int(line) for line in (tmp_path / "processes").read_text().split()])
    assert len({identity(result.run) for result in folder.read_all()[0]}) == 3

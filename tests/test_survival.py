"""Runs that survive: kills at many moments, two schedulers, a full disk, too little memory."""

import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from benchmark.inputs import find_inputs, places
from benchmark.jobs import Job, JobEnded
from benchmark.plan import make_plan
from benchmark.registry import Registry, load_registry, select_tables
from benchmark.schedule import Device, Pool, Slot, local_workers
from benchmark.store import KnownResults
from benchmark.worker import Worker
from tests.conftest import PROJECT, Command
from tests.results import worker_setup
from tests.test_commands import alive, children_of, results_in

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")

CHOSEN = ["--table", "main", "--methods", "bert", "avuc", "hs_rau"]
N_RUNS = 9
DONE_BEFORE_THE_KILL = (0, 1, 2, 3, 4, 2)  # 0: in the start
ROOM = 1100 * 2**20


def start(experiments: Path, cache: Path, folder: Path, *arguments: str, **options: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "benchmark.run", "--profile", "tiny", "--experiments", str(experiments),
               "--results-dir", str(folder / "results"), "--jobs-per-device", "2", *arguments]  # fmt: skip
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "BENCHMARK_CACHE_DIR": str(cache),
        "PYTHONFAULTHANDLER": "1",
    }
    return subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


def wait_for(process: subprocess.Popen, logs: Path) -> None:
    """Wait for the end; where there is none, every process of it says where it stands."""
    try:
        process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        for one in [*children_of(process.pid), process.pid]:
            for number in (signal.SIGABRT, signal.SIGCONT):  # one that was stopped hears of it when it goes on
                os.kill(one, number)
        output, _ = process.communicate(timeout=60)
        said = "\n".join(f"{path.name}: {path.read_text()}" for path in sorted(logs.glob("worker*.log")))
        pytest.fail(f"it hung:\n{output}\n{said}")


def what_counts(folder: Path) -> dict[str, tuple]:
    """Of each result what must not depend on how often its making was interrupted."""
    return {name: (result["views"], result["training"]["epochs"]) for name, result in results_in(folder).items()}


@pytest.fixture(scope="module")
def undisturbed(tiny_experiments: Path, cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple]:
    folder = tmp_path_factory.mktemp("undisturbed")
    process = start(tiny_experiments, cache_dir, folder, *CHOSEN)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return what_counts(folder)


def test_kills_at_many_moments_lose_nothing_and_change_nothing(
    undisturbed: dict[str, tuple], tiny_experiments: Path, cache_dir: Path, tmp_path: Path
) -> None:
    """Schedulers, workers, or both at once are killed at random moments; in the end all is as if nobody had been."""
    generator = random.Random(0)
    finished_before: dict[str, tuple] = {}
    hits = 0
    for number, done in enumerate(DONE_BEFORE_THE_KILL):
        process = start(tiny_experiments, cache_dir, tmp_path, *CHOSEN)
        for _ in range(done):
            while (line := process.stdout.readline()) and " done    " not in line:
                pass
        time.sleep(generator.uniform(0.0, 0.6) if done else 2.0)
        workers = children_of(process.pid)
        victim = ("scheduler", "worker", "everything")[number % 3]
        if victim in ("worker", "everything"):
            for worker in workers[: 1 if victim == "worker" else None]:
                os.kill(worker, signal.SIGKILL)
        if victim in ("scheduler", "everything"):
            process.kill()
        wait_for(process, tmp_path / "results" / "tiny" / "logs")
        if victim == "worker" and workers:
            assert process.returncode == 0  # the run in flight was made again by a fresh worker
        deadline = time.monotonic() + 30
        while any(alive(worker) for worker in workers) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(alive(worker) for worker in workers)
        now = what_counts(tmp_path)
        for name, (views, epochs) in finished_before.items():
            assert now[name][1] == epochs  # what was trained is never trained again
            assert not views or now[name][0] == views  # it is stored before it is scored, so a kill may come between
        hits += finished_before.keys() < now.keys() and len(now) < N_RUNS
        finished_before = now
        if len(now) == N_RUNS:  # begin again, so that every kill hits something
            for path in (tmp_path / "results" / "tiny").glob("*.json"):
                path.unlink()
            finished_before = {}
    assert hits >= 2  # kills that came in the middle of the work
    last = start(tiny_experiments, cache_dir, tmp_path, *CHOSEN)
    output, _ = last.communicate(timeout=300)
    assert last.returncode == 0, output
    assert what_counts(tmp_path) == undisturbed


def test_two_schedulers_share_the_work_and_do_nothing_twice(
    undisturbed: dict[str, tuple], tiny_experiments: Path, cache_dir: Path, tmp_path: Path
) -> None:
    both = [start(tiny_experiments, cache_dir, tmp_path, *CHOSEN) for _ in range(2)]
    outputs = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    trained = [line for output in outputs for line in output.splitlines() if " done    " in line and " in " in line]
    assert len(trained) == N_RUNS, outputs
    assert what_counts(tmp_path) == undisturbed


def limit_file_size(size: int):
    """What a child does before it starts: no file may grow beyond ``size``; to write on is an error, as if full."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_a_disk_that_is_full_is_told_and_leaves_no_half_file(
    tiny_experiments: Path, cache_dir: Path, tmp_path: Path, benchmark_command: Command
) -> None:
    chosen = ["--table", "main", "--datasets", "banking77", "--methods", "bert"]
    process = start(tiny_experiments, cache_dir, tmp_path, *chosen, preexec_fn=limit_file_size(1500))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert "File too large" in output
    assert "0 trained, 1 failed" in output
    folder = tmp_path / "results" / "tiny"
    successes = [result for result in results_in(tmp_path).values() if result["status"] == "success"]
    assert successes == []
    assert not list(folder.rglob("*.npz"))
    assert not list(folder.rglob(".*.part"))
    again = benchmark_command("run", *chosen)
    assert again.returncode == 0, again.stdout
    assert "1 trained, 0 failed" in again.stdout


# The limit comes after the imports, so that only what a training needs counts.
LIMITED = """
import resource, sys
from pathlib import Path
import benchmark.worker
from transformers import BertModel
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]),) * 2)
benchmark.worker.main()
"""


def test_a_run_that_memory_does_not_suffice_for_is_tried_in_pieces(
    experiments: Path, cache_dir: Path, tmp_path: Path
) -> None:
    """A real worker with an allocation that fails: wide rows in one batch, under a limit on the address space. Two
    layers, for the last one computes [CLS] only.
    """
    profiles = yaml.safe_load((experiments / "profiles.yaml").read_text())
    profiles["profiles"]["tiny"]["training"].append({"batch_size": 96, "epochs": 1})
    (experiments / "profiles.yaml").write_text(yaml.safe_dump(profiles, sort_keys=False))
    encoders = yaml.safe_load((experiments / "encoders.yaml").read_text())
    encoders["encoders"]["tiny_base"]["source"] |= {"intermediate": 100_000}
    encoders["encoders"]["tiny_base"]["size"] |= {"intermediate": 100_000, "layers": 2}
    (experiments / "encoders.yaml").write_text(yaml.safe_dump(encoders, sort_keys=False))
    registry, where = load_registry(experiments), places(None, None, cache_dir)
    inputs = find_inputs(registry, ["tiny_hwu64"], ["tiny_base"], where).inputs
    tables = select_tables(registry, "tiny", ["main"], ["hwu64"], ["bert"])
    (planned,) = make_plan(registry, "tiny", tables, [0], inputs, KnownResults.of([]))
    job = Job(run=planned.run, views=planned.views, dataset=planned.dataset, encoder=planned.encoder, redo=False)
    setup, updates = worker_setup(tmp_path / "results", where), []
    command = (sys.executable, "-c", LIMITED, str(ROOM))
    hire = local_workers([Slot(Device("cpu", "CPU"), 1)], lambda slot: setup, tmp_path / "logs", command)
    asyncio.run(Pool(1, hire, updates.append, lambda reason: None).run([job]))
    outcomes = [update.event.outcome for update in updates if isinstance(update.event, JobEnded)]
    assert (outcomes[0], outcomes[-1]) == ("out_of_memory", "success")
    (result,) = results_in(tmp_path).values()
    assert result["training"]["pieces"] == 2 ** (len(outcomes) - 1)


def test_a_worker_whose_scheduler_is_gone_leaves_no_failed_run(
    registry: Registry, cache_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe breaks in the middle of a training: the process ends there, and the run has not failed."""
    where = places(None, None, cache_dir)
    inputs = find_inputs(registry, ["tiny_banking77"], ["tiny_base"], where).inputs
    plan = make_plan(
        registry,
        "tiny",
        select_tables(registry, "tiny", ["main"], ["banking77"], ["bert"]),
        [0],
        inputs,
        KnownResults.of([]),
    )
    setup = worker_setup(tmp_path / "results", where)

    class Gone:
        def write(self, text: str) -> None:
            raise BrokenPipeError

    def ended(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("benchmark.worker.os._exit", ended)
    planned = plan[0]
    job = Job(run=planned.run, views=planned.views, dataset=planned.dataset, encoder=planned.encoder, redo=False)
    with pytest.raises(SystemExit):
        Worker(setup, Gone()).handle(job)
    assert results_in(tmp_path) == {}

"""Devices as places for workers, estimates, and the display; no GPU is needed to test how GPUs are found."""

import asyncio
import io
import os
import signal
import stat
from pathlib import Path

import pytest
from rich.console import Console

from benchmark.durations import duration
from benchmark.estimates import Estimator, Work, work_of, work_of_results
from benchmark.execution import _until_signalled, in_order, record_death
from benchmark.jobs import EpochDone, Job, JobEnded
from benchmark.plan import make_plan
from benchmark.registry import Inputs, Registry, Subject, load_registry, resolve_run
from benchmark.schedule import Device, Display, Update, find_devices, make_slots, run_labels
from benchmark.schedule.memory import host_memory
from benchmark.specs import identity
from benchmark.store import KnownResults, ResultFolder
from tests.conftest import EXPERIMENTS
from tests.results import failed_result, made_result, tiny_inputs

LISTING = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-aaaa)
  MIG 1g.10gb     Device  0: (UUID: MIG-22222222-bbbb)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-33333333-cccc)
"""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose nvidia-smi lists two GPUs."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{LISTING}END\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("two_gpus")
def test_all_gpus_are_found_and_named() -> None:
    """Of a GPU that is cut into parts, the part, which torch calls by the same name."""
    devices = find_devices()
    assert [(device.kind, device.token) for device in devices] == [
        ("cuda", "MIG-22222222-bbbb"),
        ("cuda", "GPU-33333333-cccc"),
    ]
    assert [device.name for device in devices] == ["NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA A100-SXM4-40GB"]
    assert devices[1].environment(1)["CUDA_VISIBLE_DEVICES"] == "GPU-33333333-cccc"


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_is_named_also_by_the_beginning_of_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-3333")
    assert [device.name for device in find_devices()] == ["NVIDIA A100-SXM4-40GB"]


@pytest.mark.usefixtures("two_gpus")
def test_gpus_are_found_beside_one_that_nvidia_smi_complains_of(tmp_path: Path) -> None:
    with (tmp_path / "nvidia-smi").open("a") as tool:
        tool.write("exit 15\n")
    assert [device.kind for device in find_devices()] == ["cuda", "cuda"]


@pytest.mark.parametrize(
    ("visible", "tokens", "order"), [(None, ["0", "1"], "PCI_BUS_ID"), ("GPU-b, 0", ["GPU-b", "0"], None)]
)
def test_without_nvidia_smi_torch_is_asked_where_there_are_device_files(
    visible: str | None, tokens: list[str], order: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nPATH={os.environ['PATH']}\ncat > /dev/null\necho 'NVIDIA A'\necho 'NVIDIA B'\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("benchmark.schedule.devices._has_device_files", lambda: True)
    monkeypatch.setattr("sys.executable", str(python))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    devices = find_devices()
    assert [(device.name, device.token) for device in devices] == list(
        zip(("NVIDIA A", "NVIDIA B"), tokens, strict=True)
    )
    assert {device.environment(1).get("CUDA_DEVICE_ORDER") for device in devices} == {order}
    python.write_text("#!/bin/sh\nexit 1\n")
    assert [device.kind for device in find_devices()] == ["cpu"]


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("visible", "tokens"),
    [
        ("1", ["1"]),
        ("1,0", ["1", "0"]),
        (" 0 , 1 ", ["0", "1"]),
        ("GPU-33333333-cccc", ["GPU-33333333-cccc"]),
        ("MIG-22222222-bbbb,GPU-33333333-cccc", ["MIG-22222222-bbbb", "GPU-33333333-cccc"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,-1,1", ["0"]),
        ("GPU-3333", ["GPU-3333"]),
        ("GPU-9999,0", []),
        ("MIG-GPU-11111111-aaaa/1/0", ["MIG-GPU-11111111-aaaa/1/0"]),
        ("0,7", ["0"]),
        ("1,0,1", ["1", "0"]),
    ],
)
def test_visible_devices_are_passed_through_one_slot_each(
    visible: str, tokens: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    devices = find_devices()
    assert [device.token for device in devices if device.kind == "cuda"] == tokens
    for device in devices:
        assert device.environment(2)["CUDA_VISIBLE_DEVICES"] == device.token
    assert [device.kind for device in devices] == (["cuda"] * len(tokens) or ["cpu"])


def test_without_a_driver_there_is_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for visible in (None, "0", ""):
        if visible is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        else:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        (only,) = find_devices()
        assert only.kind == "cpu"
        assert only.environment(1)["CUDA_VISIBLE_DEVICES"] == ""


def test_slots_take_turns_over_devices_and_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joblib.cpu_count", lambda: 16)
    gpus = [Device("cuda", "a", "0"), Device("cuda", "b", "1")]
    assert [slot.device.token for slot in make_slots(gpus, None, 51)] == ["0", "1"]
    assert [slot.device.token for slot in make_slots(gpus, 2, 51)] == ["0", "1", "0", "1"]
    assert [slot.device.token for slot in make_slots(gpus, 2, 3)] == ["0", "1", "0"]
    assert {slot.threads for slot in make_slots(gpus, 2, 51)} == {4}
    cpu = [Device("cpu", "c")]
    assert len(make_slots(cpu, 3, 51)) == 3
    assert make_slots(cpu, 3, 51)[0].threads == 5
    (lone,) = make_slots(cpu, 4, 1)
    assert lone.threads == 4  # as if there were more to do, so that its sums come out the same


def test_slots_on_a_cpu_are_bounded_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joblib.cpu_count", lambda: 64)
    monkeypatch.setattr("benchmark.schedule.devices.host_memory", lambda: 16 * 2**30)
    assert len(make_slots([Device("cpu", "c")], None, 51)) == 3  # of 5 GiB each


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "max"}, None),
        ("0::/\n", {"memory.max": "3000000000"}, 3_000_000_000),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "2000000000", "memory.max": "max"}, 2_000_000_000),
        ("0::/of/the/host\n", {"memory.max": "1000000000"}, 1_000_000_000),  # in a container
        (
            "5:devices:/\n4:cpu,memory:/job\n0::/\n",
            {"memory/job/memory.limit_in_bytes": "1000000000", "memory/memory.limit_in_bytes": "9223372036854771712"},
            1_000_000_000,
        ),
        (None, {}, None),
    ],
)
def test_memory_is_what_a_container_allows(
    own: str | None, limits: dict[str, str], expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmark.schedule.memory._CGROUPS", tmp_path)
    monkeypatch.setattr("benchmark.schedule.memory._OWN_CGROUPS", tmp_path / "own")
    if own is not None:
        (tmp_path / "own").write_text(own)
    for name, limit in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{limit}\n")
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert host_memory() == (whole if expected is None else expected)


# --- estimates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (40.4, "40 s"),
        (99.4, "99 s"),
        (99.5, "2 min"),
        (5940, "99 min"),
        (120, "2 min"),
        (5000, "83 min"),
        (6000, "1 h 40 min"),
        (90000, "25 h 00 min"),
    ],
)
def test_durations_are_said_as_a_person_would(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_work_counts_operations_of_real_tokens() -> None:
    registry = load_registry(EXPERIMENTS)
    run = resolve_run(registry, "paper", Subject("tnews", "base", "bert"), 0, Inputs())
    work = work_of(run, registry.datasets["tnews"], registry.encoders["bert_base_chinese"])
    weights = 12 * (4 * 768**2 + 2 * 768 * 3072)
    assert work.operations == pytest.approx(6 * weights * 48_360 * 20.8 * 19)
    assert work.layer_steps == 12 * 19 * 189
    few = registry.datasets["tnews_3000"].model_copy(update={"expected": None})
    assert work_of(run, few, registry.encoders["bert_base_chinese"]).layer_steps == 12 * 19 * 12


def test_estimates_follow_what_was_measured() -> None:
    estimator = Estimator("cpu", "some CPU")
    work = Work(operations=1e12, layer_steps=100)
    first = estimator.seconds(work)
    assert not estimator.measured
    for extra in (None, 1.0, 2.0, 3.0):
        estimator.add(work, 3 * first, extra)
    assert estimator.measured
    assert estimator.seconds(Work(2e12, 200)) == pytest.approx(6 * first + 2.0)


def test_estimates_of_the_same_inputs_come_before_those_of_others_and_new_ones_before_old(registry: Registry) -> None:
    estimator = Estimator("cpu", "some CPU")
    here, there = Work(1e12, 100, "bert tnews"), Work(1e12, 100, "xlnet tnews")
    guess = estimator.guess(here)
    result = made_result(registry, Subject("tnews", "base", "bert"))
    measured = result.training.seconds + result.training.evaluation_seconds
    outline = result.model_copy(update={"environment": result.environment.model_copy(update={"device": "some CPU"})})
    estimator.learn([outline], {result.run_id: here})
    assert estimator.seconds(here) == pytest.approx(measured)
    assert estimator.seconds(there) == pytest.approx(measured)  # nothing nearer is known
    estimator.add(there, 3 * guess, 2.0)
    assert estimator.knows(here.inputs)
    assert not estimator.knows_now(here.inputs)
    assert estimator.seconds(there) == pytest.approx(3 * guess + 2.0)
    assert estimator.seconds(here) == pytest.approx(measured + 2.0)
    estimator.add(here, 5 * guess, 1.0)
    assert estimator.seconds(here) == pytest.approx(5 * guess + 1.0)
    assert estimator.seconds(Work(1e12, 100, "albert tnews")) == pytest.approx(4 * guess + 1.5)


def test_a_search_learns_from_the_trainings_of_tables(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    past = work_of_results([result], registry.datasets, registry.encoders)
    longer = result.run.optimisation.model_copy(update={"epochs": 2 * result.run.optimisation.epochs})
    candidate = result.run.model_copy(update={"optimisation": longer})
    work = work_of(candidate, registry.datasets["tiny_tnews"], registry.encoders["tiny_base"])
    assert work.inputs == past[result.run_id].inputs
    assert work.operations == 2 * past[result.run_id].operations
    estimator = Estimator("cpu", result.environment.device)
    estimator.learn([result], past)
    assert estimator.knows(work.inputs)
    assert work_of_results([result], {}, registry.encoders) == {}


def test_before_any_has_ended_those_at_work_tell_the_time_left(registry: Registry) -> None:
    first, second, _ = jobs(registry)
    works = {identity(job.run): Work(4e12, 0) for job in (first, second)}
    labels = run_labels((job.run, ("bert",), "") for job in (first, second))
    with Display(Console(file=io.StringIO(), width=400), works, labels, Estimator("cpu", "c"), 1) as display:
        display.update(Update(first, 0, None))
        display.update(Update(first, 0, EpochDone(done=1, of=4, seconds=25.0)))
        assert display.seconds_left() == pytest.approx(75 + 100)


def test_one_of_each_encoder_and_data_set_is_measured_first(registry: Registry) -> None:
    tables = {name: registry.tables[name] for name in ("main", "encoders")}
    plan = make_plan(registry, "tiny", tables, [0, 1], tiny_inputs(), KnownResults.of([]))
    works = {planned.run_id: work_of(planned.run, planned.dataset, planned.encoder) for planned in plan}
    estimator = Estimator("cpu", "c")
    ordered = in_order(plan, works, estimator)
    assert sorted(planned.run_id for planned in ordered) == sorted(planned.run_id for planned in plan)
    inputs = [works[planned.run_id].inputs for planned in ordered]
    assert len(set(inputs[:6])) == len(set(inputs)) == 6
    assert {planned.run.seed for planned in ordered[:6]} == {0}
    seeds = [planned.run.seed for planned in ordered[6:]]
    assert seeds == sorted(seeds)
    sizes = [works[planned.run_id].operations for planned in ordered[6:] if planned.run.seed == 1]
    assert sizes == sorted(sizes, reverse=True)
    for planned in ordered[:6]:
        estimator.add(works[planned.run_id], 1.0, None)
    again = in_order(plan, works, estimator)
    assert [planned.run.seed for planned in again] == [0] * (len(plan) // 2) + [1] * (len(plan) // 2)


def test_the_time_left_counts_what_runs_take_beside_their_training(registry: Registry) -> None:
    first, second, third = jobs(registry)
    works = {identity(job.run): Work(size * 1e12, 0) for job, size in ((first, 4), (second, 2), (third, 1))}
    labels = run_labels((job.run, ("bert",), "") for job in (first, second, third))
    with Display(Console(file=io.StringIO(), width=400), works, labels, Estimator("cpu", "c"), 1) as display:
        display.update(Update(first, 0, None))
        display.update(Update(first, 0, EpochDone(done=2, of=2, seconds=40.0)))
        display.update(Update(first, 0, JobEnded(outcome="success", seconds=93.0)))  # it loads data and encoder
        assert display.seconds_left() == pytest.approx(20 + 10)
        display.update(Update(second, 0, None))
        display.update(Update(second, 0, EpochDone(done=2, of=2, seconds=20.0)))
        display.update(Update(second, 0, JobEnded(outcome="success", seconds=23.0)))
        assert display.seconds_left() == pytest.approx(10 + 3)


# --- display ---------------------------------------------------------------------------------------------------------


def jobs(registry: Registry) -> list[Job]:
    made = []
    for method in ("bert", "ls", "hs_rau"):
        run = resolve_run(registry, "tiny", Subject("tnews", "base", method, 0.05), 0, Inputs())
        dataset, encoder = registry.datasets[run.data.dataset], registry.encoders[run.encoder.encoder]
        made.append(Job(run=run, views=(), dataset=dataset, encoder=encoder, redo=False))
    return made


def test_plain_lines_say_what_was_done_what_failed_and_what_is_left(registry: Registry) -> None:
    output = io.StringIO()
    first, second, third = jobs(registry)
    works = {identity(job.run): Work(1e9, 10) for job in (first, second, third)}
    labels = run_labels((job.run, ("bert",), "") for job in (first, second, third))
    with Display(Console(file=output, width=400), works, labels, Estimator("cpu", "c"), 1) as display:
        display.update(Update(first, 0, None))
        display.update(Update(first, 0, EpochDone(done=1, of=2, seconds=5.0)))
        half = display.seconds_left()
        display.update(Update(first, 0, EpochDone(done=2, of=2, seconds=10.0)))
        display.update(Update(first, 0, JobEnded(outcome="success", seconds=10.0, summary="F1 80.00")))
        display.update(Update(second, 0, None))
        display.update(Update(second, 0, JobEnded(outcome="failed", seconds=1.0, reason="diverged: x", log="l.log")))
        display.update(Update(third, 0, None))
        for _ in range(3):  # which is said once
            display.update(Update(third, 0, JobEnded(outcome="claimed", seconds=0.0)))
        display.update(Update(third, 0, JobEnded(outcome="died", seconds=0.0, reason="killed", log="w.log")))
        display.update(Update(third, 0, JobEnded(outcome="already_done", seconds=0.0)))
    lines = output.getvalue().splitlines()
    assert "1/3  done    bert on tiny_tnews, 5% noise, tiny_base, seed 0 in 10 s: F1 80.00" in lines[0]
    assert "about 20 s left" in lines[0]  # measured now: two more of the same
    assert "2/3, 1 failed  FAILED" in lines[1]
    assert "log: l.log" in lines[1]
    assert "another command is at it" in lines[2]
    assert "again   " in lines[3]
    assert lines[-1].endswith("[nothing left]")
    assert half > 0
    assert (display.outcome.succeeded, display.outcome.already_done, len(display.outcome.failed)) == (1, 1, 1)


def test_a_run_that_was_only_scored_tells_nothing_of_how_long_training_takes(registry: Registry) -> None:
    first, second, _ = jobs(registry)
    works = {identity(job.run): Work(1e12, 100, inputs="same") for job in (first, second)}
    labels = run_labels((job.run, ("bert",), "") for job in (first, second))
    with Display(Console(file=io.StringIO()), works, labels, Estimator("cpu", "c"), 1) as display:
        display.update(Update(first, 0, None))
        display.update(Update(first, 0, EpochDone(done=2, of=2, seconds=2000.0)))
        display.update(Update(first, 0, JobEnded(outcome="died", seconds=2001.0, reason="killed while scoring")))
        display.update(Update(first, 0, None))  # its logits are there: nothing is trained
        display.update(Update(first, 0, JobEnded(outcome="success", seconds=4.0)))
        assert display.seconds_left() == pytest.approx(display.estimator.seconds(works[identity(second.run)]))
        assert not display.estimator.knows_now("same")


def test_why_workers_died_over_a_run_is_written_down(registry: Registry, tmp_path: Path) -> None:
    folder, slots = ResultFolder(tmp_path, "tiny"), make_slots([Device("cpu", "CPU, 1 core")], 1, 1)
    job = Job(run=resolve_run(registry, "tiny", Subject("tnews", "base", "bert"), 0, tiny_inputs()), views=(),
              dataset=registry.datasets["tiny_tnews"], encoder=registry.encoders["tiny_base"], redo=False)  # fmt: skip
    killed = "the worker was killed by signal SIGKILL"
    log = str(tmp_path / "worker_0.log")
    for outcome in ("died", "failed"):  # tried again; failed in another way, which the worker writes down
        record_death(folder, slots, Update(job, 0, JobEnded(outcome=outcome, seconds=1.0, reason=killed, log=log)))
        assert folder.read(job.run) is None
    folder.save(failed_result(job.run))  # of an earlier command
    ended = JobEnded(outcome="failed", seconds=1.0, reason=killed, log=log, over_deaths=True)
    record_death(folder, slots, Update(job, 0, ended))
    failure = folder.read(job.run).failure
    assert (failure.kind, failure.reason, failure.log) == ("died", killed, "worker_0.log")
    good = made_result(registry, Subject("tnews", "base", "ls"))
    folder.save(good)
    record_death(folder, slots, Update(job.model_copy(update={"run": good.run}), 0, ended))
    assert folder.read(good.run) == good


def test_a_terminal_shows_what_is_at_work_and_what_is_left(registry: Registry) -> None:
    output = io.StringIO()
    first, second, _ = jobs(registry)
    works = {identity(job.run): Work(1e9, 10) for job in (first, second)}
    labels = run_labels((job.run, ("bert",), "") for job in (first, second))
    console = Console(file=output, width=400, force_terminal=True)
    with Display(console, works, labels, Estimator("cpu", "c"), 2) as display:
        display.update(Update(first, 0, None))
        display.update(Update(first, 0, EpochDone(done=1, of=4, seconds=5.0)))
        display.live.refresh()
        display.update(Update(second, 1, None))
        display.update(Update(second, 1, JobEnded(outcome="failed", seconds=1.0, reason="diverged: x", log="l.log")))
        display.retired("no room")
        display.live.refresh()
    shown = output.getvalue()
    for part in ("0/2", "bert on tiny_tnews, 5% noise, tiny_base, seed 0 25%", "1/2", "1 failed", "1 left: no room"):
        assert part in shown, part


def test_signals_mean_afterwards_what_they_meant_before() -> None:
    """The command's own handler for SIGTERM, which says that what is finished is kept."""

    async def nothing() -> None:
        assert signal.getsignal(signal.SIGTERM) is not ours

    def ours(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGTERM, ours)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        asyncio.run(_until_signalled(nothing()))
        assert signal.getsignal(signal.SIGTERM) is ours
        assert signal.getsignal(signal.SIGINT) is on_interrupt
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("settings", ["rate [/log] 1e-05", "rate [red] 1e-05", "rate [log"])
def test_a_terminal_shows_labels_with_brackets_as_they_are(settings: str, registry: Registry) -> None:
    output = io.StringIO()
    first, *_ = jobs(registry)
    run_id = identity(first.run)
    labels = run_labels([(first.run, ("bert",), settings)])
    console = Console(file=output, width=400, force_terminal=True)
    with Display(console, {run_id: Work(1e9, 10)}, labels, Estimator("cpu", "c"), 1) as display:
        display.update(Update(first, 0, None))
        display.live.refresh()
    assert f"bert ({settings}) on tiny_tnews" in output.getvalue()

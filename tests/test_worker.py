"""What a worker makes of trainings that fail."""

import errno
import io
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from benchmark import scoring
from benchmark.declarations import PretrainedSource
from benchmark.encoders import FileHashes, encoder_fingerprint, find_encoder
from benchmark.errors import UserError
from benchmark.inputs import find_inputs, find_table_inputs, places
from benchmark.jobs import Job
from benchmark.models import build_encoder
from benchmark.plan import make_plan
from benchmark.registry import Inputs, Registry, Subject, resolve_run, select_tables
from benchmark.rescoring import score_again
from benchmark.scoring import score
from benchmark.specs import OwnCalibrator, RunSpec, ViewSpec, identity, readable_name
from benchmark.store import KnownResults, Logits, Result, ResultFolder, ViewRecord, packed_size
from benchmark.stored_scores import score_and_save
from benchmark.training.loop import LabelledTexts, Trained, TrainingData
from benchmark.training.objective import Diverged
from benchmark.workbench import LoadedEncoder, Workbench
from benchmark.worker import Worker, _in_words
from tests.results import made_logits, made_result, tiny_inputs, worker_setup


def failing_worker(root: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Worker:
    def train(self: Worker, job: Job) -> None:
        raise error

    monkeypatch.setattr(Worker, "_train", train)
    return Worker(worker_setup(root), io.StringIO())


def job_of(registry: Registry, run: RunSpec, **changes: object) -> Job:
    dataset, encoder = registry.datasets[run.data.dataset], registry.encoders[run.encoder.encoder]
    return Job(run=run, views=(), dataset=dataset, encoder=encoder, redo=False).model_copy(update=changes)


def test_a_good_result_outlives_a_training_that_was_to_replace_it_and_failed(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, good = ResultFolder(tmp_path, "tiny"), made_result(registry, Subject("tnews", "base", "bert"))
    folder.save(good)
    worker = failing_worker(tmp_path, monkeypatch, RuntimeError("broken"))
    assert worker.handle(job_of(registry, good.run, redo=True)).outcome == "failed"
    assert folder.read(good.run) == good
    other = good.run.model_copy(update={"seed": 1})
    assert worker.handle(job_of(registry, other)).outcome == "failed"
    assert folder.read(other).failure.kind == "RuntimeError"


@pytest.mark.parametrize("error", [MemoryError(), ValueError("odd"), UserError("a calibrator of one's own failed")])
@pytest.mark.parametrize("failing", [{None}, {None, "temperature"}])
def test_a_training_is_not_lost_where_a_view_or_all_cannot_be_scored(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, failing: set[str | None]
) -> None:
    """The logits are stored, and the next command scores what is missing: it trains nothing."""
    subject = Subject("tnews", "base", "bert")
    real = made_result(registry, subject)
    logits = made_logits(0, len(real.data.label_names))
    views = tuple(view.view for view in real.views)

    def train(*_: object, **__: object) -> Trained:
        return Trained(
            validation_logits=logits.validation_logits,
            test_logits=logits.test_logits,
            mc_dropout={},
            epochs=[],
            precision="float32",
            train_seconds=0.0,
            evaluation_seconds=0.0,
            train_tokens=0,
            steps=0,
        )

    def score_or_fail(view: ViewSpec, *rest: Any) -> ViewRecord:
        if (view.calibrator and view.calibrator.kind) in failing:
            raise error
        return score(view, *rest)

    held_out = [LabelledTexts(None, labels) for labels in (logits.validation_labels, logits.test_labels)]
    data = TrainingData(held_out[0], *held_out, n_labels=len(real.data.label_names))
    with monkeypatch.context() as patched:
        patched.setattr("benchmark.worker.train", train)
        patched.setattr(scoring, "score", score_or_fail)
        patched.setattr(Workbench, "data", lambda self, job: (data, real.data))
        patched.setattr(Workbench, "encoder", lambda self, job: SimpleNamespace(reset=lambda: None))
        patched.setattr("benchmark.worker.encoder_record", lambda job, loaded: real.encoder)
        ended = Worker(worker_setup(tmp_path), io.StringIO()).handle(job_of(registry, real.run, views=views))
    assert ended.outcome == "success"
    assert ended.reason.count(";") == len(failing) - 1
    assert ended.summary == ""  # what the run is called by is the plain view's, which is missing
    folder = ResultFolder(tmp_path, "tiny")
    assert len(folder.read(real.run).views) == 2 - len(failing)
    assert list(folder.read(real.run).unscored_because.values()) == ended.reason.split("; ")
    outlines, _ = folder.outlines()
    finished = KnownResults.of(outlines, [outline.run_id for outline in outlines if folder.has_logits(outline)])
    tables = select_tables(registry, "tiny", ["main"], datasets=["tnews"], methods=["bert", "ts"])
    plan = make_plan(registry, "tiny", tables, [0], tiny_inputs(), finished)
    assert [planned.action for planned in plan] == ["score"]
    assert score_again(folder, plan, finished, tmp_path) == (1, [])
    assert not folder.read(real.run).unscored(plan[0].views)
    assert not folder.read(real.run).unscored_because


def test_a_calibrator_of_ones_own_that_ends_the_process_costs_no_other_view(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, folder = made_result(registry, Subject("tnews", "base", "bert")), ResultFolder(tmp_path, "tiny")
    plain, scaled = (view.view for view in result.views)
    own, another = (
        plain.model_copy(update={"calibrator": OwnCalibrator(kind="own", function=name, settings={})})
        for name in ("parts:ends", "parts:another")
    )
    begun = []

    def score_or_end(view: ViewSpec, *rest: Any) -> ViewRecord:
        begun.append(view)
        if view is own:
            raise SystemExit(9)  # as a process ends that is killed for its memory
        return score(view, *rest)

    monkeypatch.setattr(scoring, "score", score_or_end)
    logits = made_logits(0, len(result.data.label_names))
    stored = folder.save(result.model_copy(update={"views": []}), logits)
    with pytest.raises(SystemExit):
        score_and_save(folder, stored, [own, plain, scaled, another], logits)
    stored = folder.read(result.run)
    assert [view.view for view in stored.views] == [plain, scaled]
    assert stored.unscored_because == {identity(own): "a process ended while parts:ends was at work in it"}
    begun.clear()
    with pytest.raises(SystemExit):
        score_and_save(folder, stored, [own, another], logits)
    assert begun == [another, own]


def test_where_no_room_is_left_nothing_is_trained(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = made_result(registry, Subject("tnews", "base", "bert")), []
    held_out = LabelledTexts(None, np.zeros(10, np.int64))
    data = TrainingData(held_out, held_out, held_out, n_labels=3)

    def full(self: ResultFolder, size: int) -> None:
        asked.append(size)
        raise OSError(errno.ENOSPC, "No space left on device")

    def train(*_: object, **__: object) -> None:
        pytest.fail("trained without room for what comes of it")

    monkeypatch.setattr("benchmark.worker.train", train)
    monkeypatch.setattr(ResultFolder, "require_room", full)
    monkeypatch.setattr(Workbench, "data", lambda self, job: (data, real.data))
    monkeypatch.setattr(Workbench, "encoder", lambda self, job: SimpleNamespace(reset=lambda: None))
    ended = Worker(worker_setup(tmp_path), io.StringIO()).handle(job_of(registry, real.run))
    assert (ended.outcome, ended.reason) == ("failed", "OSError: [Errno 28] No space left on device")
    assert asked == [packed_size(20, 10, 3, 0)]


def test_a_run_that_cannot_be_claimed_has_failed_with_a_reason(registry: Registry, tmp_path: Path) -> None:
    worker = Worker(worker_setup(tmp_path), io.StringIO())
    run = made_result(registry, Subject("tnews", "base", "bert")).run
    (worker.folder.claims / f"{readable_name(run)}.lock").mkdir(parents=True)
    ended = worker.handle(job_of(registry, run))
    assert (ended.outcome, ended.was_the_last) == ("failed", False)
    assert ended.reason.startswith("input: ")
    assert ended.reason.endswith(".lock cannot be locked: Is a directory; make it yours, or delete it.")


def test_inputs_that_are_not_those_of_the_plan_are_refused(registry: Registry, tmp_path: Path) -> None:
    """As where another machine has another copy under the same name, or files were exchanged since."""
    where = places(None, None, tmp_path / "cache")
    tables = select_tables(registry, "tiny", ["main"], ["tnews"], ["bert"])
    found = find_table_inputs(registry, "tiny", tables.values(), where).inputs
    (planned,) = make_plan(registry, "tiny", tables, [0], found, KnownResults.of([]))
    bench = Workbench(worker_setup(tmp_path, where), torch.device("cpu"))
    job = job_of(registry, planned.run)
    assert bench.encoder(job).found.origin == "built"
    for part, sentence in (
        ("data", 'The data set "tiny_tnews" has changed since this run was planned'),
        ("encoder", r'The encoder "tiny_base" in .* is not the one that this run was planned with'),
    ):
        spec = getattr(planned.run, part).model_copy(update={"fingerprint": "f" * 64})
        other = job_of(registry, planned.run.model_copy(update={part: spec}))
        with pytest.raises(UserError, match=sentence):
            bench.encoder(other)


def test_labels_are_changed_to_train_and_validate_on_and_never_to_test_on(registry: Registry, tmp_path: Path) -> None:
    where = places(None, None, tmp_path / "cache")
    tables = select_tables(registry, "tiny", ["noise"], ["tnews"], ["bert"])
    inputs = find_table_inputs(registry, "tiny", tables.values(), where).inputs
    plan = make_plan(registry, "tiny", tables, [0, 1], inputs, KnownResults.of([]))
    jobs = [job_of(registry, planned.run) for planned in plan if planned.run.data.corruption == 0.5]
    assert [job.run.seed for job in jobs] == [0, 1]
    bench = Workbench(worker_setup(tmp_path, where), torch.device("cpu"))
    clean = bench.corpus(jobs[0])
    (data, record), (other, _) = (bench.data(job) for job in jobs)
    np.testing.assert_array_equal(data.test.labels, clean.test.labels)
    for split in ("train", "validation"):
        labels = getattr(data, split).labels
        assert (labels != clean.split(split).labels).mean() == pytest.approx(0.5, abs=0.01)
        assert (labels != getattr(other, split).labels).any()  # each seed changes others
    assert record.train_label_counts == np.bincount(clean.train.labels, minlength=clean.n_labels).tolist()


def test_an_encoder_has_the_device_to_itself(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = places(None, None, tmp_path / "cache")
    tables = select_tables(registry, "tiny", ["main"], ["tnews", "hwu64"], ["bert"])
    found = find_table_inputs(registry, "tiny", tables.values(), where).inputs
    plan = make_plan(registry, "tiny", tables, [0], found, KnownResults.of([]))
    first, second = (job_of(registry, planned.run) for planned in plan)
    on_device: set[int] = set()

    def moved(module: torch.nn.Module, device: torch.device | str) -> torch.nn.Module:
        (on_device.discard if device == "cpu" else on_device.add)(id(module))
        return module

    monkeypatch.setattr(torch.nn.Module, "to", moved)
    bench = Workbench(worker_setup(tmp_path, where), torch.device("cuda"))
    load = bench._load

    def noted(job: Job) -> LoadedEncoder:
        loaded = load(job)
        assert on_device == set()  # nor was the copy of its weights made from there
        return loaded

    monkeypatch.setattr(bench, "_load", noted)
    for job in (first, second, first):
        loaded = bench.encoder(job)
        assert on_device == {id(loaded.module)}
    assert bench.encoder(second) is not loaded


def test_a_folder_of_another_content_is_refused(registry: Registry, tmp_path: Path) -> None:
    """The files of one encoder, then those of another in the same folder: planned with the first, it is not trained."""
    folder = tmp_path / "encoders" / "mine"
    build_encoder(registry.encoders["tiny_base"], folder)
    declared = registry.encoders["tiny_base"].model_copy(
        update={"source": PretrainedSource(kind="pretrained", id="someone/mine", revision="main")}
    )
    found = find_encoder(declared, [folder.parent], tmp_path)
    hashes = tmp_path / "hashes.json"
    planned = encoder_fingerprint(found, declared, FileHashes(hashes))
    where = places(None, str(folder.parent), tmp_path / "cache")
    data = find_inputs(registry, ["tiny_tnews"], [], where).inputs.datasets["tiny_tnews"]
    run = resolve_run(registry, "tiny", Subject("tnews", "base", "bert"), 0, Inputs({"tiny_tnews": data}, {}))
    run = run.model_copy(update={"encoder": run.encoder.model_copy(update={"fingerprint": planned})})
    setup = worker_setup(tmp_path, where).model_copy(update={"encoder_folders": where.encoder_folders})
    job = job_of(registry, run, encoder=declared)
    assert Workbench(setup, torch.device("cpu")).encoder(job).found.origin == "folder"
    shutil.rmtree(folder)
    build_encoder(registry.encoders["tiny_albert"], folder)
    with pytest.raises(UserError, match="is not the one that this run was planned with"):
        Workbench(setup, torch.device("cpu")).encoder(job)


@pytest.mark.parametrize(
    ("split", "start"), [("test", "accuracy 10.00"), ("validation", "validation rows: accuracy 20")]
)
def test_candidates_of_a_search_show_their_validation_rows(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: str, start: str
) -> None:
    real = made_result(registry, Subject("tnews", "base", "bert"))
    plain = real.views[0]
    views = []
    for name, accuracy in (("test", 0.1), ("validation", 0.2)):
        view = plain.view.model_copy(update={"split": name})
        scores = plain.scores | {"accuracy": accuracy}
        views.append(plain.model_copy(update={"view": view, "view_id": identity(view), "scores": scores}))
    result = real.model_copy(update={"views": views})
    monkeypatch.setattr(Worker, "_train_and_score", lambda self, job, done: (result, []))
    ended = Worker(worker_setup(tmp_path), io.StringIO()).handle(job_of(registry, real.run, summary_of=split))
    assert ended.summary.startswith(start)


def test_where_scoring_ends_the_process_nothing_is_trained_again(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by the system, for its memory: what was trained is stored before, and the next attempt scores it."""
    real = made_result(registry, Subject("tnews", "base", "bert"))
    logits = made_logits(0)
    job = job_of(registry, real.run, views=tuple(view.view for view in real.views))
    trainings = []

    def train(self: Worker, job: Job) -> tuple[Result, Logits]:
        trainings.append(job.run)
        return real.model_copy(update={"views": [], "logits": None}), logits

    def killed(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(Worker, "_train", train)
    worker = Worker(worker_setup(tmp_path), io.StringIO())
    with monkeypatch.context() as patched:
        patched.setattr("benchmark.worker.score_and_save", killed)
        with pytest.raises(SystemExit):
            worker.handle(job)
    assert worker.folder.read(real.run).views == []
    assert worker.handle(job).outcome == "success"
    assert worker.folder.read(real.run).has_all(job.views)
    assert len(trainings) == 1
    assert worker.handle(job).outcome == "already_done"
    assert worker.folder.read_logits(worker.folder.read(real.run)) is not None
    assert worker.handle(job.model_copy(update={"redo": True})).outcome == "success"
    assert len(trainings) == 2


def test_where_scores_cannot_be_written_what_was_trained_stays(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up between the two: no failure is written over the result that is there."""
    real = made_result(registry, Subject("tnews", "base", "bert"))
    unscored, logits = real.model_copy(update={"views": [], "logits": None}), made_logits(0)
    save = ResultFolder.save

    def save_or_fail(self: ResultFolder, result: Result, *rest: Any) -> Result:
        if result.views:
            raise OSError(28, "No space left on device")
        return save(self, result, *rest)

    monkeypatch.setattr(Worker, "_train", lambda self, job: (unscored, logits))
    monkeypatch.setattr(ResultFolder, "save", save_or_fail)
    worker = Worker(worker_setup(tmp_path), io.StringIO())
    assert worker.handle(job_of(registry, real.run, views=tuple(view.view for view in real.views))).outcome == "failed"
    stored = worker.folder.read(real.run)
    assert (stored.status, stored.views) == ("success", [])
    assert worker.folder.read_logits(stored) is not None


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [(UserError("a mistake"), True), (Diverged("in epoch 1"), True), (RuntimeError("CUDA"), False)],
)
def test_a_worker_goes_on_after_what_says_nothing_against_it(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, goes_on: bool
) -> None:
    run = made_result(registry, Subject("tnews", "base", "bert")).run
    ended = failing_worker(tmp_path, monkeypatch, error).handle(job_of(registry, run))
    assert (ended.outcome, ended.was_the_last) == ("failed", not goes_on)


def test_but_not_on_a_device_that_the_failure_has_broken(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_result(registry, Subject("tnews", "base", "bert")).run
    worker = failing_worker(tmp_path, monkeypatch, UserError("mine:loss failed: AcceleratorError: device-side assert"))

    def broken(*shape: int, device: torch.device) -> torch.Tensor:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch, "zeros", broken)
    ended = worker.handle(job_of(registry, run))
    assert (ended.outcome, ended.was_the_last) == ("failed", True)


@pytest.mark.parametrize(("pieces", "outcome"), [(1, "out_of_memory"), (8, "out_of_memory"), (16, "failed")])
def test_a_worker_without_memory_asks_for_more_pieces_up_to_sixteen(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int, outcome: str
) -> None:
    run = made_result(registry, Subject("tnews", "base", "bert")).run
    worker = failing_worker(tmp_path, monkeypatch, RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    assert worker.handle(job_of(registry, run, pieces=pieces)).outcome == outcome
    assert (ResultFolder(tmp_path, "tiny").read(run) is not None) == (outcome == "failed")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory."), "out of memory"),
        (RuntimeError("CUDA error: out of memory"), "out of memory"),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"), "out of memory"),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
            "out of memory",
        ),
        (RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasGemmEx`"), "RuntimeError"),
        (RuntimeError('NVML_SUCCESS == r INTERNAL ASSERT FAILED at "CUDACachingAllocator.cpp":1131'), "out of memory"),
        (RuntimeError("shapes differ"), "RuntimeError"),
    ],
)
def test_errors_of_memory_are_told_from_others(error: Exception, kind: str) -> None:
    assert _in_words(error)[0] == kind

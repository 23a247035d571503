"""What a worker makes of trainings that fail."""

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmark.errors import UserError
from benchmark.jobs import Job
from benchmark.registry import Registry, Subject
from benchmark.specs import RunSpec
from benchmark.store import ResultFolder, ViewRecord
from benchmark.training.loop import LabelledTexts, Trained, TrainingData
from benchmark.workbench import Workbench
from benchmark.worker import Worker, _in_words
from tests.results import made_result, worker_setup


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
def test_a_training_is_not_lost_where_a_view_or_all_cannot_be_scored(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The logits are stored, and the next command scores what is missing: it trains nothing."""
    real = made_result(registry, Subject("tnews", "base", "bert"))
    trainings = []

    def train(*_: object, **__: object) -> Trained:
        trainings.append(1)
        rows = [np.zeros((2, 3), dtype=np.float32)] * 2
        return Trained(*rows, mc_dropout={}, epochs=[], steps=1, train_tokens=1, train_seconds=1.0,
                       evaluation_seconds=1.0, precision="float32")  # fmt: skip

    def score(*_: object) -> ViewRecord:
        raise error

    data = TrainingData(*[LabelledTexts(None, np.zeros(2, dtype=np.int64))] * 3, n_labels=3)
    monkeypatch.setattr("benchmark.worker.train", train)
    monkeypatch.setattr("benchmark.scoring.score", score)
    monkeypatch.setattr(Workbench, "data", lambda self, job: (data, real.data))
    monkeypatch.setattr(Workbench, "encoder", lambda self, job: SimpleNamespace(reset=lambda: None))
    monkeypatch.setattr("benchmark.worker.encoder_record", lambda job, loaded: real.encoder)
    views = tuple(view.view for view in real.views[:2])
    ended = Worker(worker_setup(tmp_path), io.StringIO()).handle(job_of(registry, real.run, views=views))
    assert (ended.outcome, len(trainings)) == ("success", 1)
    assert ended.reason.count(";") == 1
    folder = ResultFolder(tmp_path, "tiny")
    kept = folder.read(real.run)
    assert kept.views == []
    assert folder.has_logits(kept)
    assert kept.unscored(views) == list(views)


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
        (RuntimeError("shapes differ"), "RuntimeError"),
    ],
)
def test_errors_of_memory_are_told_from_others(error: Exception, kind: str) -> None:
    assert _in_words(error)[0] == kind

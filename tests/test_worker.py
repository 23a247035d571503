"""What a worker makes of trainings that fail."""

import io
from pathlib import Path

import pytest
import torch

from benchmark.jobs import Job
from benchmark.registry import Registry, Subject
from benchmark.specs import RunSpec
from benchmark.store import ResultFolder
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

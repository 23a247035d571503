"""Results made by hand, for tests of what reads them."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmark.environment import describe_environment
from benchmark.inputs import Places
from benchmark.jobs import WorkerSetup
from benchmark.registry import Inputs, Registry, Subject, method_view, resolve_run
from benchmark.scoring import score
from benchmark.specs import RunSpec, identity
from benchmark.store import (
    SCHEMA_VERSION,
    CorruptionRecord,
    DataRecord,
    EncoderRecord,
    EpochRecord,
    Failure,
    Logits,
    Result,
    TrainingRecord,
    ViewRecord,
)

FINGERPRINTS = {"tnews": "a" * 64, "hwu64": "b" * 64, "banking77": "c" * 64}


def tiny_inputs(data: dict[str, str] | None = None) -> Inputs:
    """Inputs of the profile ``tiny`` with made-up contents."""
    datasets = {f"tiny_{name}": value for name, value in (FINGERPRINTS | (data or {})).items()}
    return Inputs(datasets, {f"tiny_{name}": "e" * 64 for name in ("base", "albert", "xlnet", "large")})


def made_logits(seed: int, n_labels: int = 6, n: int = 60) -> Logits:
    """Random logits that are right more often than not."""
    generator = np.random.default_rng(seed)

    def part() -> tuple[np.ndarray, np.ndarray]:
        labels = generator.integers(0, n_labels, size=n)
        logits = generator.normal(size=(n, n_labels)).astype(np.float32)
        logits[np.arange(n), labels] += 1.5
        return 3 * logits, labels

    validation, test = part(), part()
    return Logits(*validation, *test)


def made_data(
    n_labels: int = 6,
    dataset: str = "tiny_tnews",
    fingerprint: str = "a" * 64,
    corruption: float = 0.0,
    held_out: tuple[int, int] = (60, 60),
) -> DataRecord:
    """Data in which a later label is a rarer one."""
    counts = list(range(24 + n_labels, 24, -1))
    return DataRecord(
        dataset=dataset,
        origin="generated",
        fingerprint=fingerprint,
        label_names=[f"intent_{index}" for index in range(n_labels)],
        rows={"train": sum(counts), "validation": held_out[0], "test": held_out[1]},
        train_label_counts=counts,
        corruption=CorruptionRecord(requested=corruption, train_changed=0, validation_changed=0),
    )


def made_result(
    registry: Registry, subject: Subject, seed: int = 0, inputs: Inputs | None = None, logits: Logits | None = None
) -> Result:
    """A successful result of the profile ``tiny`` with the views that its tables ask for."""
    run = resolve_run(registry, "tiny", subject, seed, inputs or tiny_inputs())
    n_labels = registry.datasets[run.data.dataset].source.labels
    logits = logits or made_logits(seed, n_labels)
    views = [method_view(registry, subject.method)]
    if subject.method == "bert":
        views.append(method_view(registry, "ts"))
    held_out = len(logits.validation_labels), len(logits.test_labels)
    data = made_data(logits.test_logits.shape[1], run.data.dataset, run.data.fingerprint, subject.corruption, held_out)
    return Result(
        schema_version=SCHEMA_VERSION,
        run_id=identity(run),
        status="success",
        run=run,
        data=data,
        encoder=EncoderRecord(
            encoder=run.encoder.encoder,
            origin="built",
            revision=None,
            fingerprint=run.encoder.fingerprint,
            architecture="bert",
            layers=1,
            hidden=16,
            parameters=1000,
            rows="packed",
        ),
        training=TrainingRecord(
            seconds=1.0,
            evaluation_seconds=0.1,
            steps=24,
            tokens=1000,
            tokens_per_second=1000.0,
            precision="float32",
            peak_host_bytes=10**8,
            peak_device_bytes=None,
            epochs=[EpochRecord(loss=1.0, terms=[1.0] * len(run.loss), entropy=1.0, accuracy=0.5, joined={})],
        ),
        views=[score(view, logits, data) for view in views],
        environment=describe_environment("made up", None, 1),
    )


def with_scores(result: Result, **scores: float) -> Result:
    """The same result with other scores in every view, F1 and ECE being those of every label alike."""

    def changed(view: ViewRecord) -> ViewRecord:
        n = len(view.per_label.f1)
        parts = {"f1": [scores.get("f1", 0.0)] * n, "ece": [scores.get("ece", 0.0) / n] * n}
        labels = view.per_label.model_copy(update={name: parts[name] for name in parts.keys() & scores.keys()})
        return view.model_copy(update={"scores": view.scores | scores, "per_label": labels})

    return result.model_copy(update={"views": [changed(view) for view in result.views]})


def with_rau(result: Result, values: list[float | None]) -> Result:
    """The same result of a method with RAU as its second term, with these epochs' means of it."""
    assert result.run.loss[1].term == "rau"
    assert result.training is not None
    first = result.training.epochs[0]
    epochs = [replace(first, terms=[first.terms[0], value, *first.terms[2:]]) for value in values]
    return result.model_copy(update={"training": result.training.model_copy(update={"epochs": epochs})})


def from_before(result: Result) -> Result:
    """The same result as scored before any measure beside F1 and ECE was resampled."""
    views = [
        view.model_copy(update={"resampled": view.resampled and view.resampled.model_copy(update={"measures": {}})})
        for view in result.views
    ]
    return result.model_copy(update={"views": views})


def failed_result(run: RunSpec) -> Result:
    """A run that failed."""
    failure = Failure(kind="diverged", reason="the loss was not finite in epoch 1", log=None)
    return Result.failed(run, failure, describe_environment("made up", None, 1))


def worker_setup(results_root: Path, where: Places | None = None, threads: int = 1) -> WorkerSetup:
    """What a worker on the CPU is told, for the profile ``tiny``; without places for one that looks for no input."""
    return WorkerSetup(
        results_root=results_root,
        profile="tiny",
        data_folders=where.all_data_folders if where else (),
        encoder_folders=(),
        built_encoders=where.built_encoders if where else results_root,
        file_hashes=where.file_hashes if where else results_root / "fingerprints.json",
        own_folder=where.cache if where else results_root,
        device="cpu",
        threads=threads,
    )

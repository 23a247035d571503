"""Cost against size: training rows times 1, 2, 4, 8; labels from 15 to 1,000.

python benchmarks/size.py            # generated texts, the demo's tiny encoder
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from tabulate import tabulate

from benchmark.data import load_corpus
from benchmark.declarations import Dataset
from benchmark.models import build_encoder, load_encoder, load_tokenizer, tokenise
from benchmark.registry import Inputs, Registry, Subject, load_registry, method_view, resolve_run
from benchmark.scoring import score_all
from benchmark.store import CorruptionRecord, DataRecord, Logits
from benchmark.training.loop import LabelledTexts, TrainingData, train

_PROFILE = "demo"
_ROWS = 2_000
_EPOCHS = 2


def main() -> None:
    """Print, for each size, the cost of a row relative to the first size, in training and in scoring."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8], help=f"times {_ROWS:,}")
    parser.add_argument("--labels", type=int, nargs="+", default=[15, 77, 150, 500, 1_000])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    registry = load_registry()
    with tempfile.TemporaryDirectory() as folder:
        by_rows = [_measure(registry, Path(folder), _ROWS * times, 77, arguments.repeats) for times in arguments.rows]
        by_labels = [_measure(registry, Path(folder), _ROWS, labels, arguments.repeats) for labels in arguments.labels]
    _print("training rows", [_ROWS * times for times in arguments.rows], by_rows)
    _print("labels", arguments.labels, by_labels)


def _print(what: str, sizes: list[int], measured: list[tuple[float, float]]) -> None:
    first = measured[0]
    rows = [
        (size, training / first[0], scoring, scoring / first[1])
        for size, (training, scoring) in zip(sizes, measured, strict=True)
    ]
    heads = [what, "training a row, times the first", "scoring s", "scoring, times the first"]
    print(tabulate(rows, heads, tablefmt="pipe", floatfmt=".2f"), "\n")


def _measure(registry: Registry, folder: Path, rows: int, labels: int, repeats: int) -> tuple[float, float]:
    """Seconds of training for each row and epoch of HS-RAU, and of scoring a test view with its resamples."""
    subject = Subject("banking77", "base", "hs_rau")
    run = resolve_run(registry, _PROFILE, subject, 0, Inputs())
    run = run.model_copy(update={"optimisation": run.optimisation.model_copy(update={"epochs": _EPOCHS})})
    declared = registry.encoders[run.encoder.encoder]
    build_encoder(declared, folder / run.encoder.encoder)
    tokenizer = load_tokenizer(declared, folder / run.encoder.encoder)
    corpus = load_corpus("sized", _sized(registry.datasets[run.data.dataset], rows, labels), ())
    parts = {
        split: LabelledTexts(
            tokenise(tokenizer, corpus.split(split).texts, run.encoder.max_length), corpus.split(split).labels
        )
        for split in ("train", "validation", "test")
    }
    data = TrainingData(**parts, n_labels=corpus.n_labels)
    training, scoring = [], []
    for _ in range(repeats):
        encoder = load_encoder(declared, folder / run.encoder.encoder)
        trained = train(run, data, encoder, torch.device("cpu"))
        training.append(trained.train_seconds / rows / _EPOCHS)
        logits = Logits(trained.validation_logits, data.validation.labels, trained.test_logits, data.test.labels)
        started = time.perf_counter()
        score_all([method_view(registry, subject.method)], logits, _record(corpus.label_names, rows))
        scoring.append(time.perf_counter() - started)
    return statistics.median(training), statistics.median(scoring)


def _sized(dataset: Dataset, rows: int, labels: int) -> Dataset:
    """The data set with so many training rows and labels, 3,000 test rows."""
    wanted = {"train": rows, "validation": 1_000, "test": 3_000}
    source = dataset.source.model_copy(update={"rows": wanted, "labels": labels, "label_shares": None})
    return dataset.model_copy(update={"source": source, "expected": None})


def _record(label_names: tuple[str, ...], rows: int) -> DataRecord:
    return DataRecord(
        dataset="sized",
        origin="generated",
        fingerprint="",
        label_names=list(label_names),
        rows={"train": rows, "validation": 1_000, "test": 3_000},
        train_label_counts=[rows // len(label_names)] * len(label_names),
        corruption=CorruptionRecord(requested=0.0, train_changed=0, validation_changed=0),
    )


if __name__ == "__main__":
    main()

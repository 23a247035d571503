"""All scores of all results as two long tables, over all labels and label by label, for people's own analyses."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from benchmark.specs import Calibrator, Head, OwnFunction, term_name
from benchmark.store import Result, ViewRecord

_BEFORE = [
    "methods",
    "dataset",
    "data_fingerprint",
    "corruption",
    "encoder",
    "encoder_fingerprint",
    "head",
    "head_settings",
    "loss",
    "loss_settings",
    "learning_rate",
    "epochs",
    "batch_size",
    "weight_decay",
    "max_length",
    "seed",
    "split",
    "calibrator",
    "calibrator_settings",
    "temperature",
    "ece_bins",
]
_PER_LABEL = ["precision", "recall", "f1", "ece"]


Methods = Callable[[Result, ViewRecord], str]


def to_csv(results: Iterable[Result], methods: Methods) -> tuple[str, str]:
    """Two CSV texts, fractions at full precision, as stored: with a row for each result, view and score; and with a row
    for each result, view and label, with the label's rows (clean training rows, rows of the split) and its scores.
    ``methods`` names those that a view of a result belongs to, "" for none: results of other settings or contents than
    the tables show are in it, too.
    """
    views = list(_views(results, methods))
    scores = (
        about | {"score": score, "value": value} for _, view, about in views for score, value in view.scores.items()
    )
    labels = (
        about
        | {"label": name, "training_rows": count, "rows": view.per_label.support[label]}
        | {score: getattr(view.per_label, score)[label] for score in _PER_LABEL}
        for result, view, about in views
        if result.data is not None
        for label, (name, count) in enumerate(zip(result.data.label_names, result.data.train_label_counts, strict=True))
    )
    before = [column for column in _BEFORE if not column.endswith("_settings")]  # long, and in the other table
    return (
        _csv(scores, [*_BEFORE, "score", "value", "run_id"]),
        _csv(labels, [*before, "label", "training_rows", "rows", *_PER_LABEL, "run_id"]),
    )


def _short(fingerprint: str | None) -> str:
    return (fingerprint or "")[:16]


def _name(part: Head | Calibrator) -> str:
    """A head's or a calibrator's kind, or the user's function."""
    return part.function_name if isinstance(part, OwnFunction) else part.kind


def _csv(rows: Iterable[dict[str, Any]], columns: list[str]) -> str:
    """Texts are in quotes, whatever they hold: by itself Python before 3.13 leaves a lone carriage return without."""
    import pandas as pd

    table = pd.DataFrame(rows, columns=columns)
    return str(table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))


def _views(results: Iterable[Result], methods: Methods) -> Iterator[tuple[Result, ViewRecord, dict[str, Any]]]:
    """Every view of every result, and the values of the columns before its scores."""
    for result in results:
        run = result.run
        about_run = {
            "dataset": run.data.dataset,
            "data_fingerprint": _short(run.data.fingerprint),
            "corruption": run.data.corruption,
            "encoder": run.encoder.encoder,
            "encoder_fingerprint": _short(run.encoder.fingerprint),
            "head": _name(run.head),
            "head_settings": json.dumps(run.head.model_dump(mode="json")),
            "loss": "+".join(term_name(term) for term in run.loss),
            "loss_settings": json.dumps([term.model_dump(mode="json") for term in run.loss]),
            "learning_rate": run.optimisation.learning_rate,
            "epochs": run.optimisation.epochs,
            "batch_size": run.optimisation.batch_size,
            "weight_decay": run.optimisation.weight_decay,
            "max_length": run.encoder.max_length,
            "seed": run.seed,
            "run_id": result.run_id,
        }
        for view in result.views:
            calibrator = view.view.calibrator
            about_view = {
                "methods": methods(result, view),
                "split": view.view.split,
                "calibrator": "none" if calibrator is None else _name(calibrator),
                "calibrator_settings": "" if calibrator is None else json.dumps(calibrator.model_dump(mode="json")),
                "temperature": view.temperature,
                "ece_bins": view.view.ece_bins,
            }
            yield result, view, about_run | about_view

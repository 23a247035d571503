"""All scores of all results as one long table, for people's own analyses."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from benchmark.specs import term_name
from benchmark.store import Result, ViewRecord

_COLUMNS = [
    "methods",
    "dataset",
    "corruption",
    "encoder",
    "head",
    "loss",
    "loss_settings",
    "learning_rate",
    "epochs",
    "seed",
    "split",
    "calibrator",
    "temperature",
    "ece_bins",
    "score",
    "value",
    "run_id",
]


Methods = Callable[[Result, ViewRecord], str]


def to_csv(results: Iterable[Result], methods: Methods) -> str:
    """CSV with a row for each result, view and score: fractions at full precision, as stored. ``methods`` names those
    that a view of a result belongs to, "" for none.
    """
    import pandas as pd

    return str(pd.DataFrame(_rows(results, methods), columns=_COLUMNS).to_csv(index=False, lineterminator="\n"))


def _rows(results: Iterable[Result], methods: Methods) -> Iterator[dict[str, Any]]:
    for result in results:
        run = result.run
        about_run = {
            "dataset": run.data.dataset,
            "corruption": run.data.corruption,
            "encoder": run.encoder.encoder,
            "head": run.head.kind,
            "loss": "+".join(term_name(term) for term in run.loss),
            "loss_settings": json.dumps([term.model_dump(mode="json") for term in run.loss]),
            "learning_rate": run.optimisation.learning_rate,
            "epochs": run.optimisation.epochs,
            "seed": run.seed,
            "run_id": result.run_id,
        }
        for view in result.views:
            about_view = {
                "methods": methods(result, view),
                "split": view.view.split,
                "calibrator": view.view.calibrator.kind if view.view.calibrator else "none",
                "temperature": view.temperature,
                "ece_bins": view.view.ece_bins,
            }
            for score, value in view.scores.items():
                yield about_run | about_view | {"score": score, "value": value}

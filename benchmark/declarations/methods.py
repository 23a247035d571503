"""The shape of methods and metrics in ``experiments/``."""

from typing import Annotated, Literal

from pydantic import Field

from benchmark.declarations.texts import Text
from benchmark.specs import Calibrator, Count, Declared, Head, Items, LossTerm, Name, Positive


class Method(Declared):
    """A method is a composition: head, loss terms, post-hoc calibrator, each by its name in the registry."""

    label: Text
    head: Name
    loss: Items[Name] = Field(min_length=1)
    posthoc: Name | None = None
    source: Text


class MethodsFile(Declared):
    """Methods and the parts that they are composed of."""

    heads: dict[Name, Head]
    losses: dict[Name, LossTerm]
    calibrators: dict[Name, Calibrator]
    methods: dict[Name, Method]


class Scoring(Declared):
    """The settings of every view; ``resamples`` and ``rare_labels`` are those of the test views."""

    ece_bins: Count
    resamples: Annotated[int, Field(ge=2)]
    rare_labels: Annotated[int, Field(ge=0)]


Score = Literal[
    "accuracy",
    "precision",
    "recall",
    "f1",
    "ece",
    "top_label_ece",
    "adaptive_ece",
    "brier",
    "nll",
    "mce",
    "debiased_ce",
    "ece_if_calibrated",
    "aurc",
    "risk_at_80",
    "confidence",
]  # what a view holds; older ones may lack what came later


class Metric(Declared):
    """What a column shows: ``scale`` * the stored score; the per-label value where the column names a label."""

    label: Text
    score: Score
    better: Literal["higher", "lower"]
    scale: Positive
    decimals: Annotated[int, Field(ge=0, le=6)]


class MetricsFile(Declared):
    """How views are scored, and what tables may show of it."""

    scoring: Scoring
    metrics: dict[Name, Metric]

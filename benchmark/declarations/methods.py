"""The shape of methods and metrics in ``experiments/``."""

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

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


_BETTER_HIGHER = {"accuracy", "precision", "recall", "f1"}


class Metric(Declared):
    """What a column shows: ``scale`` * the stored score; the per-label value where the column names a label."""

    label: Text
    score: Score
    better: Literal["higher", "lower"]
    scale: Positive
    decimals: Annotated[int, Field(ge=0, le=6)]

    @model_validator(mode="after")
    def _has_its_direction(self) -> "Metric":
        """That of confidence is the reader's choice; every other score has one."""
        right = "higher" if self.score in _BETTER_HIGHER else "lower"
        if self.score != "confidence" and self.better != right:
            raise PydanticCustomError(
                "direction", "better: of {score} a {right} one is better", {"score": self.score, "right": right}
            )
        return self


class MetricsFile(Declared):
    """How views are scored, and what tables may show of it."""

    scoring: Scoring
    metrics: dict[Name, Metric]

    @field_validator("metrics")
    @classmethod
    def _scores_have_their_names(cls, metrics: dict[str, Metric]) -> dict[str, Metric]:
        """What marks, advice and verdicts look at by the name of a score is that score."""
        for name, metric in metrics.items():
            if name in get_args(Score) and metric.score != name:
                raise PydanticCustomError(
                    "score_name",
                    "{name} shows {score}, but is the name of another score; call it otherwise",
                    {"name": name, "score": metric.score},
                )
        return metrics

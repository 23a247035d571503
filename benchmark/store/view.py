"""The scores of one view of a result, checked against each other as they are read."""

import math
from operator import mul, sub
from typing import Annotated, Any

from pydantic import Field, model_validator

from benchmark.specs import RESAMPLED, ViewSpec, identity
from benchmark.store.numbers import Draws, NotNegative, Numbers, Whole, require_scores
from benchmark.store.record import Record

RELIABILITY_BINS = 60
_ROUNDING = 1e-9  # of sums in another order
_SHARES = {
    *("accuracy", "precision", "recall", "f1", "confidence"),
    *("top_label_ece", "adaptive_ece", "mce", "debiased_ce", "aurc", "risk_at_80"),
}


class PerLabel(Record):
    """One value a label, in the order of ``label_names``; fractions."""

    precision: Numbers
    recall: Numbers
    f1: Numbers
    support: list[Whole]
    ece: Numbers

    @property
    def n_labels(self) -> set[int]:
        """Of how many labels there is a value; one number where all is right."""
        return {len(values) for values in (self.precision, self.recall, self.f1, self.support, self.ece)}


_of_all_bins = Field(min_length=RELIABILITY_BINS, max_length=RELIABILITY_BINS)


class Reliability(Record):
    """Sixty equal bins of the predicted label's confidence, which add up to any number of bins that divides 60; an
    empty bin has neither mean.
    """

    count: Annotated[list[Whole], _of_all_bins]
    confidence: Annotated[list[NotNegative | None], _of_all_bins]
    accuracy: Annotated[list[NotNegative | None], _of_all_bins]
    wrong_above_90: Annotated[float, Field(ge=0, le=1)] | None  # share of wrong rows among those with confidence > 0.9

    def scores(self, n_bins: int) -> dict[str, float]:
        """Mean confidence and, where ``n_bins`` divides sixty, the top-label ECE in so many bins; fractions."""
        n_rows = max(sum(self.count), 1)
        sure = list(map(mul, self.count, [mean or 0.0 for mean in self.confidence]))
        found = {"confidence": sum(sure) / n_rows}
        if RELIABILITY_BINS % n_bins == 0:
            gaps = list(map(sub, sure, map(mul, self.count, [share or 0.0 for share in self.accuracy])))
            wide = RELIABILITY_BINS // n_bins
            sums = [sum(gaps[start : start + wide]) for start in range(0, RELIABILITY_BINS, wide)]
            found["top_label_ece"] = sum(map(abs, sums)) / n_rows
        return found


class ResampledLabel(Record):
    """The scores of one label on each resample."""

    label: Whole
    f1: Draws
    ece: Draws


class ResampledScores(Record):
    """Scores on bootstrap resamples of the rows; the same place in two results' lists is the same resample.
    ``measures``: those of ``RESAMPLED``; results from before there were such have none.
    """

    f1: Draws
    ece: Draws
    measures: dict[str, Draws] = Field(default_factory=dict)
    rare_labels: list[ResampledLabel]  # the rarest first

    @model_validator(mode="after")
    def _all_on_the_same(self) -> "ResampledScores":
        lists = [self.f1, self.ece, *self.measures.values()]
        for rare in self.rare_labels:
            lists += (rare.f1, rare.ece)
        if unknown := self.measures.keys() - set(RESAMPLED):
            raise ValueError(f"{min(unknown)} is not among the scores that are resampled")
        if len(set(map(len, lists))) > 1:
            raise ValueError("not all scores are on the same resamples")
        require_scores(*lists)
        return self

    @property
    def n_resamples(self) -> int:
        return len(self.f1)


class Member(Record):
    """A run of an ensemble and the SHA-256 of the logits that it gave."""

    run_id: str
    logits: str


class ViewRecord(Record):
    """The scores of one view, fractions at full precision. ``scores["ece"]`` is the class-wise ECE summed over
    labels.
    """

    view_id: str
    view: ViewSpec
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    at_bound: bool | None
    members: list[Member] = Field(default_factory=list)  # of an ensemble
    scores: dict[str, NotNegative]
    labels_without_rows: Whole
    per_label: PerLabel
    reliability: Reliability
    resampled: ResampledScores | None

    @model_validator(mode="after")
    def _consistent(self) -> "ViewRecord":
        if self.view_id != identity(self.view):
            raise ValueError("view_id is not the identity of the view")
        if (self.resampled.n_resamples if self.resampled else 0) != self.view.resamples:
            raise ValueError("there are other scores on resamples than the view asks for")
        if sum(self.reliability.count) != sum(self.per_label.support):
            raise ValueError("the bins of confidence and the labels are not of as many rows")
        for name, value in self._made_of_parts().items():
            if abs(value - self.scores.get(name, value)) > _ROUNDING:
                raise ValueError(f"{name} is not what the parts of it beside it add up to")
        for name in _SHARES & self.scores.keys():
            if self.scores[name] > 1 + _ROUNDING:
                raise ValueError(f"{name} is above 1, which no share is")
        return self

    def _made_of_parts(self) -> dict[str, float]:
        """The scores that follow from what stands beside them: who changes one by hand would have to change all."""
        labels = self.per_label
        n_labels, n_rows = max(len(labels.f1), 1), max(sum(labels.support), 1)
        right = sum(map(mul, labels.recall, labels.support))
        means = {name: sum(getattr(labels, name)) / n_labels for name in ("precision", "recall", "f1")}
        binned = self.reliability.scores(self.view.ece_bins)
        return means | {"ece": sum(labels.ece), "accuracy": right / n_rows} | binned


def finite_or_none(values: Any) -> list[float | None]:
    """A list for JSON: numbers, and None where a value is not finite (the mean of an empty bin)."""
    return [float(value) if math.isfinite(value) else None for value in values]

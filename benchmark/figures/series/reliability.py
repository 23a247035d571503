"""Confidence and accuracy in bins, pooled over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.figures.series.collecting import MethodResults
from benchmark.metrics import Array
from benchmark.store import Reliability


@dataclass(frozen=True)
class Bins:
    """Equal bins of the predicted label's confidence, each array of shape (n_bins,): rows, rows predicted right, mean
    confidence as a fraction (NaN where there is no row).
    """

    count: Array
    right: Array
    confidence: Array

    @property
    def accuracy(self) -> Array:
        """Fractions of shape (n_bins,), NaN where there is no row."""
        accuracy: Array = np.divide(self.right, self.count, out=np.full(len(self.count), np.nan), where=self.count > 0)
        return accuracy

    @property
    def edges(self) -> Array:
        """Shape (n_bins + 1,)."""
        return np.arange(len(self.count) + 1) / len(self.count)

    @property
    def wrong(self) -> Array:
        """Rows predicted wrong, shape (n_bins,)."""
        wrong: Array = self.count - self.right
        return wrong


@dataclass(frozen=True)
class ReliabilitySeries:
    """What a reliability diagram of one method shows. Scores in percent, one a seed."""

    method: str
    label: str
    seeds: tuple[int, ...]
    bins: Bins
    ece: tuple[float, ...]
    top_label_ece: tuple[float, ...]
    accuracy: float  # percent, over the rows of all seeds, as all below
    confidence: float
    above_90: float  # rows with a confidence above 0.9, in percent of all
    wrong_above_90: float | None  # wrong ones among those, in percent of those; None where there is none


def pooled_bins(records: Sequence[Reliability], n_bins: int) -> Bins:
    """The rows of all records in ``n_bins`` bins.

    Raises ValueError where the stored bins do not add up to so many.
    """
    count = np.array([record.count for record in records])
    right = np.rint(count * _with_nothing_as_zero([record.accuracy for record in records])).astype(int)
    confident = count * _with_nothing_as_zero([record.confidence for record in records])
    n_stored = count.shape[1]
    if n_stored % n_bins:
        raise ValueError(f"{n_stored} stored bins do not add up to {n_bins}")
    count, right, confident = (
        values.sum(axis=0).reshape(n_bins, -1).sum(axis=1) for values in (count, right, confident)
    )
    confidence = np.divide(confident, count, out=np.full(n_bins, np.nan), where=count > 0)
    return Bins(count, right, confidence)


def drawable_bins(wanted: int, n_stored: int) -> int:
    """The number of bins to draw: the wanted one, or the next lower one that the stored bins add up to."""
    return next(number for number in range(min(wanted, n_stored), 0, -1) if n_stored % number == 0)


def reliability_series(found: MethodResults, wanted_bins: int) -> ReliabilitySeries:
    """The series of one method that has at least one result."""
    records = [scored.view.reliability for scored in found.scored]
    n_stored = len(records[0].count)
    stored = pooled_bins(records, n_stored)
    total = stored.count.sum()
    # stored bins are (a, b], so those from 0.9 on hold exactly the rows above it
    sure = slice(round(0.9 * n_stored), None)
    above, wrong = stored.count[sure].sum(), stored.wrong[sure].sum()
    return ReliabilitySeries(
        method=found.method,
        label=found.label,
        seeds=found.seeds,
        bins=pooled_bins(records, drawable_bins(wanted_bins, n_stored)),
        ece=found.score("ece"),
        top_label_ece=found.score("top_label_ece"),
        accuracy=float(100 * stored.right.sum() / total),
        confidence=float(100 * np.nansum(stored.count * stored.confidence) / total),
        above_90=float(100 * above / total),
        wrong_above_90=float(100 * wrong / above) if above else None,
    )


def _with_nothing_as_zero(lists: Sequence[Sequence[float | None]]) -> Array:
    return np.array([[value or 0.0 for value in values] for values in lists])

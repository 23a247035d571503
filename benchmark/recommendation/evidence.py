"""What the results at hand say of a method on one data set, over the seeds that all methods share."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from benchmark.registry import Subject
from benchmark.render.text import number, signed
from benchmark.tables import GridBuilder, GridRow, Scored


class Accuracy(NamedTuple):
    """The share of so many rows on which a model is right, a mean over seeds."""

    share: float
    rows: int


@dataclass(frozen=True)
class Evidence:
    """The results of one data set, on the base encoder."""

    builder: GridBuilder
    dataset: str
    seeds: Sequence[int]

    def scored(self, method: GridRow) -> dict[int, Scored]:
        """What there is of a method, by seed."""
        return self.builder.finder.by_seed(Subject(self.dataset, "base", method.key), self.seeds)

    def printed(self, metric: str, score: float) -> str:
        """A score as tables print that metric."""
        shown = self.builder.registry.metrics[metric]
        return number(shown.scale * score, shown.decimals)

    def printed_gap(self, metric: str, gap: float) -> str:
        """A difference of two scores as tables print that metric, with its sign."""
        shown = self.builder.registry.metrics[metric]
        return signed(shown.scale * gap, shown.decimals)

    def mean(self, method: GridRow, score: str) -> float | None:
        """A score's mean over the seeds, as a fraction; None where it is not known of all of them."""
        found = [one.view.scores.get(score) for one in self.scored(method).values()]
        known = [value for value in found if value is not None]
        return fmean(known) if known and len(known) == len(self.seeds) else None

    def accuracy(self, method: GridRow, split: str) -> Accuracy | None:
        """Of a method without calibrator, over its seeds; None where no view of those rows is there."""
        views = [
            view
            for one in self.scored(method).values()
            for view in one.result.views
            if view.view.split == split and view.view.calibrator is None
        ]
        if not views:
            return None
        return Accuracy(fmean(view.scores["accuracy"] for view in views), sum(views[0].per_label.support))

    def leaning(self, method: GridRow) -> float | None:
        """Mean confidence less accuracy over all test rows and seeds, in points; None without results."""
        confidence, accuracy = (self.mean(method, score) for score in ("confidence", "accuracy"))
        return None if confidence is None or accuracy is None else 100 * (confidence - accuracy)

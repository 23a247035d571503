"""Class-wise ECE label by label."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmark.figures.series.collecting import MethodResults
from benchmark.metrics import Array

# So many labels fit on a page, in two columns.
MOST_LABELS = 160


@dataclass(frozen=True)
class LabelSeries:
    """Labels from the one with the fewest training rows on, ties by label order, and each method's class-wise ECE.

    ``numbers`` are the labels' positions in the data set, from 1; ``ece`` holds percents of shape (labels,), means over
    seeds, by method name.
    """

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    train_counts: tuple[int, ...]
    n_labels: int  # of the data set, of which these are the rarest
    methods: tuple[MethodResults, ...]
    ece: dict[str, Array]


def label_series(found: Sequence[MethodResults], most: int = MOST_LABELS) -> LabelSeries:
    """The series of methods that each have at least one result; at most so many labels, the rarest."""
    data = found[0].scored[0].data
    n_labels = len(data.label_names)
    ranked = [data.rarest(rank) for rank in range(1, min(most, n_labels) + 1)]
    order = [label for label in ranked if label is not None]
    return LabelSeries(
        names=tuple(data.label_names[label] for label in order),
        numbers=tuple(label + 1 for label in order),
        train_counts=tuple(data.train_label_counts[label] for label in order),
        n_labels=n_labels,
        methods=tuple(found),
        ece={
            item.method: 100 * np.mean([scored.view.per_label.ece for scored in item.scored], axis=0)[order]
            for item in found
        },
    )

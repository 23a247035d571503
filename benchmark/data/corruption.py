"""Label corruption: the same rows at every method, levels that nest, and the way back."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmark.specs import sub_seed
from benchmark.splits import SplitName


def corruption_seed(run_seed: int, split: SplitName) -> int:
    """The seed by which the labels of one split of a run are changed: the same for all methods."""
    return sub_seed(run_seed, "corruption", split)


def corrupt_labels(labels: ArrayLike, rate: float, n_labels: int, seed: int) -> NDArray[np.int64]:
    """A copy of ``labels`` (N,) in which exactly round(rate * N) rows bear another label, drawn uniformly.

    Which rows change depends on their number, the rate and the seed only; to what, on their labels, too. Levels nest:
    the rows changed at 5 % are changed at 10 % too, to the same labels. No row is changed to its own label. Source: the
    paper, section "Effectiveness on Noisy Data".

    Raises ValueError for a rate outside [0, 1] or, at a rate above 0, fewer than two labels.
    """
    return _shifted(labels, rate, n_labels, seed, 1)


def original_labels(corrupted: ArrayLike, rate: float, n_labels: int, seed: int) -> NDArray[np.int64]:
    """The labels (N,) of which ``corrupt_labels`` made ``corrupted`` with the same rate, number of labels and seed.

    Raises ValueError as it does.
    """
    return _shifted(corrupted, rate, n_labels, seed, -1)


def _shifted(labels: ArrayLike, rate: float, n_labels: int, seed: int, sign: int) -> NDArray[np.int64]:
    """Which rows are shifted, and by how much, does not depend on their labels: so a shift can be taken back."""
    labels = np.asarray(labels, dtype=np.int64)
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be in [0, 1], not {rate}")
    n_changed = round(rate * len(labels))
    if n_changed == 0:
        return labels.copy()
    if n_labels < 2:
        raise ValueError("labels can only be changed where there are at least two")
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    shifts = generator.integers(1, n_labels, size=len(labels))
    changed = labels.copy()
    rows = order[:n_changed]
    changed[rows] = (labels[rows] + sign * shifts[rows]) % n_labels
    return changed

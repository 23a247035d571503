"""Label corruption: the same rows at every method, levels that nest."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def corrupt_labels(labels: ArrayLike, rate: float, n_labels: int, seed: int) -> NDArray[np.int64]:
    """A copy of ``labels`` (N,) in which exactly round(rate * N) rows bear another label, drawn uniformly.

    Which rows change depends on their number, the rate and the seed only; to what, on their labels, too. Levels nest:
    the rows changed at 5 % are changed at 10 % too, to the same labels. No row is changed to its own label. Source: the
    paper, section "Effectiveness on Noisy Data".

    Raises ValueError for a rate outside [0, 1] or, at a rate above 0, fewer than two labels.
    """
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
    changed[rows] = (labels[rows] + shifts[rows]) % n_labels
    return changed

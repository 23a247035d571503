"""Is the difference between two methods more than noise? On arrays; knows nothing of tables and results."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.05
# The quantile of the normal distribution that leaves LEVEL / 2 above it.
_QUANTILE = 1.959963984540054
_DRAW_SEED = 20220222
# Resampled scores are stored as numbers of 32 bits, which rounding moves by up to 1e-7 of themselves; a difference not
# far above that is none.
_RESOLUTION = 1e-5


@dataclass(frozen=True)
class Difference:
    """A mean difference with its standard error, its 95 % interval, and the two-sided p-value of "there is none"."""

    estimate: float
    standard_error: float
    low: float
    high: float
    p_value: float

    @property
    def within_noise(self) -> bool:
        """Whether the interval holds 0 (no correction for other comparisons)."""
        return self.p_value >= LEVEL


def paired_difference(
    first: ArrayLike, second: ArrayLike, first_resampled: ArrayLike, second_resampled: ArrayLike
) -> Difference:
    """The mean of ``first - second`` over seeds, and how sure it is, by a paired bootstrap over test rows and seeds.

    ``first`` and ``second`` have shape (S,), one value a seed; the resampled ones (S, B): column b holds every value on
    the b-th resample of the same test rows, so that a difference within a column is paired. In each column the seeds
    are resampled too: S - 1 of them are drawn with replacement, for then the spread over the draws estimates that of a
    mean over S without bias (Rao and Wu, 1988). With one seed only the test rows vary, and how much trainings differ
    is not in the interval. Interval and p-value are those of a normal distribution with the bootstrap's standard
    deviation (Efron and Tibshirani, 1993, ch. 13): centred on the estimate, because the ECE of a resample is biased.

    Raises ValueError on shapes that do not fit.
    """
    gaps = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    resampled = np.asarray(first_resampled, dtype=float) - np.asarray(second_resampled, dtype=float)
    if gaps.ndim != 1 or resampled.ndim != 2 or len(gaps) != len(resampled) or 0 in resampled.shape:
        raise ValueError(f"shapes (S,) and (S, B) are needed, not {gaps.shape} and {resampled.shape}")
    estimate = float(gaps.mean())
    size = max(float(np.abs(first).max()), float(np.abs(second).max()))
    if abs(estimate) <= _RESOLUTION * size:
        estimate = 0.0
    return _from_draws(estimate, _mean_over_drawn_seeds(resampled))


def false_discoveries_controlled(p_values: Sequence[float]) -> NDArray[Any]:
    """p-values adjusted for their number so that, below a level, at most that share are false discoveries
    (Benjamini and Hochberg, 1995; SciPy's).
    """
    if not p_values:
        return np.zeros(0)
    from scipy.stats import false_discovery_control  # half a second to import, which planning need not wait for

    adjusted: NDArray[Any] = false_discovery_control(p_values)
    return adjusted


def _mean_over_drawn_seeds(resampled: NDArray[Any]) -> NDArray[Any]:
    n_seeds, n_resamples = resampled.shape
    if n_seeds == 1:
        row: NDArray[Any] = resampled[0]
        return row
    drawn = np.random.default_rng(_DRAW_SEED).integers(0, n_seeds, size=(n_seeds - 1, n_resamples))
    means: NDArray[Any] = np.take_along_axis(resampled, drawn, axis=0).mean(axis=0)
    return means


def _from_draws(estimate: float, draws: NDArray[Any]) -> Difference:
    error = float(draws.std(ddof=1)) if len(draws) > 1 else float("inf")
    certain = 1.0 if estimate == 0 else 0.0
    p_value = certain if error == 0 else math.erfc(abs(estimate) / error / math.sqrt(2))
    return Difference(estimate, error, estimate - _QUANTILE * error, estimate + _QUANTILE * error, p_value)

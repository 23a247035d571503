"""Temperature scaling: one factor for all logits."""

import numpy as np
from numpy.typing import ArrayLike

from benchmark.calibrators.arrays import checked
from benchmark.metrics import softmax

LOWEST_TEMPERATURE = 0.01
HIGHEST_TEMPERATURE = 100.0


def fit_temperature(
    logits: ArrayLike,
    labels: ArrayLike,
    lowest: float = LOWEST_TEMPERATURE,
    highest: float = HIGHEST_TEMPERATURE,
) -> float:
    """The temperature T > 0 that minimises the negative log-likelihood of ``labels`` under softmax(logits / T).

    ``logits`` (N, K) are unnormalised scores of *validation* samples, ``labels`` (N,) integers in [0, K). Calibrated
    logits are ``logits / T``; their order, and so every prediction, stays. In s = 1/T the likelihood is convex, so
    the root of its derivative on [1/highest, 1/lowest] is the one minimum; where the derivative keeps its sign there,
    the result is a bound (``at_bound`` tells), as for logits that are all right (T = lowest) or no better than chance
    (T = highest). Rows that are already probabilities are taken as scores like any other: pass their logarithm
    instead.

    Raises ValueError on wrong shapes, labels out of range, values that are not finite, bounds that are not
    0 < lowest < highest. Source: Guo et al., 2017.
    """
    if not 0 < lowest < highest < np.inf:
        raise ValueError(f"the bounds of a temperature must be 0 < lowest < highest, not {lowest} and {highest}")
    logits, labels = checked(logits, labels)
    right = logits[np.arange(len(labels)), labels]

    def slope(inverse: float) -> float:
        """Derivative of the mean negative log-likelihood in s = 1/T: mean of E_p[logit] - right logit."""
        return float(((softmax(logits * inverse) * logits).sum(axis=1) - right).mean())

    smallest, largest = 1 / highest, 1 / lowest
    if slope(smallest) >= 0:
        return highest
    if slope(largest) <= 0:
        return lowest
    from scipy.optimize import brentq  # slow to import, and planning fits nothing

    return float(np.clip(1 / brentq(slope, smallest, largest, xtol=1e-12, rtol=1e-12), lowest, highest))


def at_bound(temperature: float, lowest: float = LOWEST_TEMPERATURE, highest: float = HIGHEST_TEMPERATURE) -> bool:
    """Whether the fit ended at a bound, where it says that no finite temperature is best, rather than inside."""
    return bool(temperature <= lowest or temperature >= highest)

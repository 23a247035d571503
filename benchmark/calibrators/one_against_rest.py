"""Calibrators of one label against the others: a map of a single probability, made for each label, then normalised."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from benchmark.calibrators.arrays import FLATTEST
from benchmark.metrics import Array, bin_indices

Map = Callable[[Array], Array]  # of a label's probabilities (N,)

_SMALLEST = 1e-12  # of p and of 1 - p, where their logarithms are taken
_LARGEST_PARAMETER = 50.0


def fit_beta(probabilities: ArrayLike, right: ArrayLike) -> Map:
    """Beta calibration: sigmoid(a log p - b log(1 - p) + c) with a, b >= 0, by likelihood.

    ``probabilities`` (N,) of one label on *validation* samples, ``right`` (N,) whether they bear it. Parameters stay
    within 50, so that a label without any validation row has a finite map. The fit ends where no slope of the mean
    likelihood is above 1e-5, which of a rare label is short of the optimum (the authors' package fits by scikit-learn's
    logistic regression, which ends at 1e-4). Source: Kull et al., 2017.
    """
    from scipy.optimize import minimize  # slow to import, and planning fits nothing
    from scipy.special import expit

    x, y = _log_odds_parts(np.asarray(probabilities, dtype=np.float64)), np.asarray(right, dtype=np.float64)

    def value_and_slope(parameters: Array) -> tuple[float, Array]:
        score = x @ parameters[:2] + parameters[2]
        error = (expit(score) - y) / len(y)
        return float((np.logaddexp(0, score) - y * score).mean()), np.array([*(error @ x), error.sum()])

    limits = [(0.0, _LARGEST_PARAMETER)] * 2 + [(-_LARGEST_PARAMETER, _LARGEST_PARAMETER)]
    start, options = np.array([1.0, 1.0, 0.0]), {"gtol": FLATTEST}
    found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", bounds=limits, options=options).x
    return lambda p: expit(_log_odds_parts(p) @ found[:2] + found[2])


def fit_isotonic(probabilities: ArrayLike, right: ArrayLike) -> Map:
    """Isotonic regression, constant beyond the probabilities seen; scikit-learn's. Source: Zadrozny and Elkan, 2002."""
    from sklearn.isotonic import IsotonicRegression

    regression = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    regression.fit(np.asarray(probabilities, dtype=np.float64), np.asarray(right, dtype=np.float64))
    return lambda p: np.asarray(regression.predict(p))


def fit_histogram(probabilities: ArrayLike, right: ArrayLike, bins: int) -> Map:
    """Histogram binning: the share of right ones in each of ``bins`` bins of equal width; an empty bin says nothing,
    and a probability in it stays as it is. Source: Zadrozny and Elkan, 2001, who have bins of equal numbers of rows;
    Guo et al., 2017, name both. (Of many labels nearly every row falls into the lowest bin of equal ones.)
    """
    index = bin_indices(np.asarray(probabilities, dtype=np.float64), bins)
    count = np.bincount(index, minlength=bins)
    hits = np.bincount(index, weights=np.asarray(right, dtype=np.float64), minlength=bins)

    def mapped(p: Array) -> Array:
        here = bin_indices(p, bins)
        return np.where(count[here] > 0, hits[here] / np.maximum(count[here], 1), p)

    return mapped


def _log_odds_parts(p: Array) -> Array:
    """log p and -log(1 - p), (N, 2)."""
    return np.stack([np.log(np.maximum(p, _SMALLEST)), -np.log(np.maximum(1 - p, _SMALLEST))], axis=1)

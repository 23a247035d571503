"""Calibrators that map all logits of a row together: vector scaling, Dirichlet calibration."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from benchmark.calibrators.arrays import FLATTEST, checked, log_softmax
from benchmark.metrics import Array

_MOST_ITERATIONS = 1000
_LEAST_GAIN = 1e-7  # of an iteration of Dirichlet calibration, relative
_SMALLEST_LOG = -50.0  # of a probability: below it a float32 softmax has none


def fit_vector_scaling(logits: ArrayLike, labels: ArrayLike, least_gain: float) -> tuple[Array, Array]:
    """Factors and offsets (K,) each that minimise the negative log-likelihood of softmax(factor * logits + offset).

    ``logits`` (N, K) and ``labels`` (N,) are those of *validation* samples. Convex; started from the identity, ended by
    an iteration that gains less than ``least_gain``, relative, by slopes that are all below 1e-5, or after 1,000. With
    few rows a label the likelihood grows far out, where that of other rows falls: where the fit ends is part of the
    method. The arg max, and so the prediction, may change. Raises ValueError as ``fit_temperature`` does. Source: Guo
    et al., 2017.
    """
    logits, labels = checked(logits, labels)
    n_labels = logits.shape[1]

    def value_and_slope(parameters: Array) -> tuple[float, Array]:
        value, error = _likelihood(logits * parameters[:n_labels] + parameters[n_labels:], labels)
        return value, np.concatenate([(error * logits).sum(axis=0), error.sum(axis=0)])

    found = _minimise(value_and_slope, np.concatenate([np.ones(n_labels), np.zeros(n_labels)]), least_gain)
    return found[:n_labels], found[n_labels:]


def fit_dirichlet(logits: ArrayLike, labels: ArrayLike, off_diagonal: float, intercept: float) -> tuple[Array, Array]:
    """A matrix (K, K) and an offset (K,) that lower the negative log-likelihood of softmax(W log p + b) plus
    ``off_diagonal`` times the mean square of W's off-diagonal entries plus ``intercept`` times that of b.

    Ended after 1,000 iterations, by one that gains less than 1e-7, relative, or by slopes that are all below 1e-5. With
    few rows a label it is the first, short of the optimum: the diagonal is free, as in the source.
    ``logits`` and ``labels`` as in ``fit_vector_scaling``; p is their softmax. Source: Kull et al., 2019 (Dirichlet
    calibration with off-diagonal and intercept regularisation).
    """
    logits, labels = checked(logits, labels)
    n_labels = logits.shape[1]
    log_p = log_probabilities(logits)
    outside = 1 - np.eye(n_labels)
    n_outside = max(n_labels * (n_labels - 1), 1)

    def value_and_slope(parameters: Array) -> tuple[float, Array]:
        matrix, offset = parameters[:-n_labels].reshape(n_labels, n_labels), parameters[-n_labels:]
        value, error = _likelihood(log_p @ matrix.T + offset, labels)
        value += off_diagonal * ((matrix * outside) ** 2).sum() / n_outside + intercept * (offset**2).mean()
        slope = error.T @ log_p + 2 * off_diagonal * matrix * outside / n_outside
        return value, np.concatenate([slope.ravel(), error.sum(axis=0) + 2 * intercept * offset / n_labels])

    found = _minimise(value_and_slope, np.concatenate([np.eye(n_labels).ravel(), np.zeros(n_labels)]), _LEAST_GAIN)
    return found[:-n_labels].reshape(n_labels, n_labels), found[-n_labels:]


def log_probabilities(logits: Array) -> Array:
    """Row-wise log-softmax, held at or above -50."""
    result: Array = np.maximum(log_softmax(logits), _SMALLEST_LOG)
    return result


def _likelihood(scores: Array, labels: Array) -> tuple[float, Array]:
    """Mean negative log-likelihood of softmax(scores), and its slope in the scores, (N, K)."""
    log_p = log_softmax(scores)
    rows = np.arange(len(labels))
    error = np.exp(log_p)
    error[rows, labels] -= 1
    return float(-log_p[rows, labels].mean()), error / len(labels)


def _minimise(value_and_slope: Callable[[Array], tuple[float, Array]], start: Array, least_gain: float) -> Array:
    from scipy.optimize import minimize  # slow to import, and planning fits nothing

    found = minimize(
        value_and_slope,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _MOST_ITERATIONS, "ftol": least_gain, "gtol": FLATTEST},
    )
    result: Array = found.x
    return result

"""Post-hoc calibrators: fitted on validation logits, applied to any logits. NumPy, SciPy and scikit-learn only."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from benchmark import own_code
from benchmark.calibrators.arrays import checked
from benchmark.calibrators.one_against_rest import Map, fit_beta, fit_histogram, fit_isotonic
from benchmark.calibrators.scaling import fit_dirichlet, fit_vector_scaling, log_probabilities
from benchmark.calibrators.temperature import at_bound, fit_temperature
from benchmark.errors import UserError
from benchmark.metrics import Array, softmax
from benchmark.specs import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IsotonicRegression,
    OwnCalibrator,
    PostHoc,
    TemperatureScaling,
    VectorScaling,
)

__all__ = [
    "Fitted",
    "at_bound",
    "fit",
    "fit_beta",
    "fit_dirichlet",
    "fit_histogram",
    "fit_isotonic",
    "fit_temperature",
    "fit_vector_scaling",
]

# How much of the uncalibrated softmax is left in what a calibrator of single labels gives: it keeps the likelihood of a
# label with a share of 0 finite, and the order of labels with one share that of their logits.
_KEPT = 1e-6
_OFF = 1e-6  # how far from 1 the probabilities of a row may sum up to


@dataclass(frozen=True)
class Fitted:
    """A fitted calibrator: logits (N, K) to probabilities (N, K). ``temperature`` and ``at_bound`` of temperature
    scaling, None for others.
    """

    probabilities: Callable[[Array], Array]
    temperature: float | None = None
    at_bound: bool | None = None


def fit(spec: PostHoc, logits: ArrayLike, labels: ArrayLike) -> Fitted:
    """The calibrator that ``spec`` declares, fitted on validation ``logits`` (N, K) and ``labels`` (N,).

    Raises ValueError on wrong shapes, labels out of range, values that are not finite.
    """
    logits, labels = checked(logits, labels)
    if isinstance(spec, TemperatureScaling):
        temperature = fit_temperature(logits, labels, spec.lowest, spec.highest)
        bounded = at_bound(temperature, spec.lowest, spec.highest)
        return Fitted(lambda scores: softmax(scores / temperature), temperature, bounded)
    if isinstance(spec, VectorScaling):
        factor, offset = fit_vector_scaling(logits, labels, spec.least_gain)
        return Fitted(lambda scores: softmax(factor * scores + offset))
    if isinstance(spec, DirichletCalibration):
        matrix, shift = fit_dirichlet(logits, labels, spec.off_diagonal, spec.intercept)
        return Fitted(lambda scores: softmax(log_probabilities(scores) @ matrix.T + shift))
    if isinstance(spec, OwnCalibrator):
        return Fitted(_own(spec, logits, labels))
    return _each_label(_single(spec), logits, labels)


def _own(spec: OwnCalibrator, logits: Array, labels: Array) -> Callable[[Array], Array]:
    """The user's function fitted; what it gives must be probabilities. It may write into what it is given, which other
    calibrators are fitted on, too: into copies.
    """
    given = logits.copy(), labels.copy()
    fitted = _in_memory(spec, lambda: own_code.call(spec.function, spec.sha256, *given, **spec.settings))
    if not callable(fitted):
        what = type(fitted).__name__
        raise UserError(f"{spec.function} must give a function from logits to probabilities, not one of type {what}.")

    def probabilities(scores: Array) -> Array:
        found: Array = _in_memory(
            spec, lambda: own_code.tried(spec.function, lambda: np.asarray(fitted(scores.copy()), dtype=np.float64))
        )
        if found.shape != scores.shape:
            raise UserError(f"{spec.function} must give probabilities of shape {scores.shape}, not {found.shape}.")
        total = found.sum(axis=-1, keepdims=True)
        if (mistake := _no_probabilities(found, total)) is not None:
            raise UserError(f"{spec.function} must give probabilities, each row summing to 1; {mistake}.")
        exact: Array = found / total  # or a probability above 1 by a rounding error has a score below 0
        return exact

    return probabilities


def _no_probabilities(found: Array, total: Array) -> str | None:
    """What is wrong with them, if anything."""
    if not np.isfinite(found).all():
        return f"{np.count_nonzero(~np.isfinite(found))} of them are not finite"
    if found.min() < 0:
        return f"the lowest is {found.min():g}"
    return f"a row sums to {total.flat[np.abs(total - 1).argmax()]:g}" if np.abs(total - 1).max() > _OFF else None


def _in_memory(spec: OwnCalibrator, function: Callable[[], Any]) -> Any:
    """What it gives; a memory that it fills is its mistake, for scoring takes little."""
    try:
        return function()
    except MemoryError:
        raise UserError(f"{spec.function} asks for more memory than there is.") from None


def _single(spec: BetaCalibration | IsotonicRegression | HistogramBinning) -> Callable[[Array, Array], Map]:
    if isinstance(spec, BetaCalibration):
        return fit_beta
    if isinstance(spec, IsotonicRegression):
        return fit_isotonic
    return partial(fit_histogram, bins=spec.bins)


def _each_label(fit_one: Callable[[Array, Array], Map], logits: Array, labels: Array) -> Fitted:
    """A map for each label against the others; the mapped probabilities are normalised, as is usual."""
    before = softmax(logits)
    maps = [fit_one(before[:, label], labels == label) for label in range(logits.shape[1])]

    def probabilities(scores: Array) -> Array:
        plain = softmax(scores)
        mapped = np.stack([one(plain[:, label]) for label, one in enumerate(maps)], axis=1)
        total = mapped.sum(axis=1, keepdims=True)
        shares = np.divide(mapped, total, out=plain.copy(), where=total > 0)
        result: Array = (1 - _KEPT) * shares + _KEPT * plain
        return result

    return Fitted(probabilities)

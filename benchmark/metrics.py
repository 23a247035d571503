"""Calibration and classification metrics on NumPy arrays.

Every function takes class probabilities of shape (N, K), rows summing to 1, and the N right labels as integers in
[0, K). Values are fractions, never percent. Bins are (a, b], the first one closed on the left, so a probability of
exactly 0 falls in the first bin and one of exactly 1 in the last. Sums run in float64.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

# Of the ECE that chance alone makes: sets of labels that are drawn, and the standard error at which they are enough.
_DRAWS_AT_ONCE, _MOST_DRAWS = 20, 1000
_MOST_DRAWN = 50_000_000  # probabilities that draws look at, in all
_RELATIVE_ERROR = 0.01


def classwise_ece(probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 10) -> Array:
    """Class-wise expected calibration error of each label, shape (K,), as fractions.

    For label k the N probabilities p_ik are put into ``n_bins`` equal bins B;
    ECE_k = sum over B of |B|/N * |mean(y_i = k) - mean(p_ik)|. The formula of the paper (section "Confidence
    Calibration Metric") averages this over labels, its tables print ``100 * classwise_ece(...).sum()``. A label that no
    sample bears is not left out: its error is the mean probability that it was given.

    Raises ValueError on arrays of the wrong shape, labels out of range, or values that are no probabilities.
    """
    probabilities, labels = _checked(probabilities, labels, n_bins)
    n_samples, n_labels = probabilities.shape
    errors = np.zeros(n_labels)
    for label in range(n_labels):
        column = probabilities[:, label]
        gaps = np.bincount(bin_indices(column, n_bins), weights=(labels == label) - column, minlength=n_bins)
        errors[label] = np.abs(gaps).sum() / n_samples
    return errors


def ece_if_calibrated(probabilities: ArrayLike, n_bins: int = 10) -> float:
    """The class-wise ECE summed over labels that a perfectly calibrated model with these probabilities would have on so
    many rows, by chance alone: the mean over labels that are drawn from the probabilities themselves, a fraction. The
    surer a model, the smaller it is. Source: consistency resampling, Bröcker and Smith, 2007.

    Exact for bins of which at most one row is expected to bear the label, or to lack it; for the others as many sets of
    labels are drawn as it takes for a standard error of 1 % of the whole, 20 to 1,000, fewer where N K is large.

    Raises ValueError as ``classwise_ece`` does.
    """
    rows = np.asarray(probabilities)
    p, _ = _checked(rows, np.zeros(len(rows), dtype=np.int64), n_bins)
    p = np.minimum(p, 1.0)  # rows may sum to a rounding error more
    n_rows, n_labels = p.shape
    cells = bin_indices(p.ravel(), n_bins).reshape(n_rows, n_labels) + n_bins * np.arange(n_labels)

    def total(values: Array) -> Array:
        return np.bincount(cells.ravel(), weights=values.ravel(), minlength=n_bins * n_labels)

    expected, lacking = total(p), total(1 - p)
    # E|X - m| = 2 E max(m - X, 0), which is 2 m P(X = 0) for a number X of successes that has a mean m of at most 1
    with np.errstate(divide="ignore"):
        none, every = np.exp(total(np.log1p(-p))), np.exp(total(np.log(p)))
    few, most = expected <= 1, lacking <= 1
    gaps = np.where(few, 2 * expected * none, np.where(most, 2 * lacking * every, 0.0))
    exact = float(gaps.sum() / n_rows)
    others = ~(few | most)
    return exact + (_mean_gap(p, cells, expected, others, exact) if others.any() else 0.0)


def _mean_gap(p: Array, cells: Array, expected: Array, chosen: Array, beside: float) -> float:
    """The mean over drawn labels of the gaps of the chosen cells, as a part of the ECE; ``beside``: the rest of it."""
    n_rows, n_labels = p.shape
    cumulative, rows = p.cumsum(axis=1), np.arange(n_rows)
    generator = np.random.default_rng(0)
    most_draws = max(_DRAWS_AT_ONCE, min(_MOST_DRAWS, _MOST_DRAWN // p.size))
    gaps: list[float] = []
    while len(gaps) < most_draws:
        for _ in range(_DRAWS_AT_ONCE):
            passed = (cumulative < generator.random((n_rows, 1))).sum(axis=1)
            drawn = np.minimum(passed, n_labels - 1)  # a row's sum may fall short of 1 by a rounding error
            borne = np.bincount(cells[rows, drawn], minlength=len(expected))
            gaps.append(float(np.abs(borne - expected)[chosen].sum()) / n_rows)
        mean = float(np.mean(gaps))
        if np.std(gaps, ddof=1) / math.sqrt(len(gaps)) <= _RELATIVE_ERROR * (mean + beside):
            break
    return mean


def top_label_ece(probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 10) -> float:
    """Expected calibration error of the predicted label's confidence in equal-width bins, a fraction.

    Source: Naeini et al., 2015; Guo et al., 2017.
    """
    bins = reliability_bins(probabilities, labels, n_bins)
    gaps = bins["count"] * np.abs(bins["accuracy"] - bins["confidence"])
    return float(np.nansum(gaps) / bins["count"].sum())


def adaptive_ece(probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 10) -> float:
    """Top-label calibration error in bins of equal mass (equal counts, to within one), a fraction.

    Samples are sorted by confidence and cut into ``n_bins`` runs; a run that would end between samples of the *same*
    confidence extends to the last of them, for without that rule the value would depend on the order of the samples.
    Source: Nguyen and O'Connor, 2015 (bins of equal mass).
    """
    probabilities, labels = _checked(probabilities, labels, n_bins)
    right = (probabilities.argmax(axis=1) == labels).astype(float)
    confidence, group, counts = np.unique(probabilities.max(axis=1), return_inverse=True, return_counts=True)
    right_in_group = np.bincount(group, weights=right, minlength=len(confidence))
    first_rank = np.cumsum(counts) - counts
    run_starts = np.ceil(np.arange(1, n_bins) * len(labels) / n_bins)
    run = np.searchsorted(run_starts, first_rank, side="right")
    gaps = np.bincount(run, weights=right_in_group - counts * confidence, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(labels))


def maximum_calibration_error(probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 10) -> float:
    """The largest gap between confidence and accuracy of any bin that is not empty, a fraction; few rows in a bin make
    it large. Source: Naeini et al., 2015.
    """
    bins = reliability_bins(probabilities, labels, n_bins)
    return float(np.nanmax(np.abs(bins["accuracy"] - bins["confidence"])))


def debiased_calibration_error(probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 10) -> float:
    """Root of the mean squared gap between top-label confidence and accuracy, a fraction, without what chance adds.

    From each bin's squared gap the variance of its accuracy, a (1 - a) / (n - 1), is taken off, so that the mean over
    bins does not grow as rows get fewer; a bin of one row adds 0, and a sum below 0 is 0 (so a mean over seeds of small
    errors is somewhat too large). Source: Kumar et al., 2019 (the debiased estimator), with bins of equal width.
    """
    bins = reliability_bins(probabilities, labels, n_bins)
    several = bins["count"] > 1
    count, accuracy, confidence = (bins[name][several] for name in ("count", "accuracy", "confidence"))
    if not several.any():
        return 0.0
    squared = (accuracy - confidence) ** 2 - accuracy * (1 - accuracy) / (count - 1)
    return float(np.sqrt(max(float((count * squared).sum() / bins["count"].sum()), 0.0)))


def area_under_risk_coverage(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean over n of the share of wrong ones among the n most confident samples: how well confidence sorts right from
    wrong, a fraction. Source: Geifman and El-Yaniv, 2017 (selective risk); Geifman et al., 2019 (AURC).
    """
    return float(_selective_risks(probabilities, labels).mean())


def risk_at_coverage(probabilities: ArrayLike, labels: ArrayLike, coverage: float) -> float:
    """The share of wrong ones among the ``coverage`` (in (0, 1]) most confident samples, at least one of them."""
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be in (0, 1], not {coverage}")
    risks = _selective_risks(probabilities, labels)
    return float(risks[max(int(np.floor(coverage * len(risks) + 1e-9)), 1) - 1])  # 0.29 * 100 is below 29 by a rounding


def _selective_risks(probabilities: ArrayLike, labels: ArrayLike) -> Array:
    """The share of wrong ones among the 1, 2, ... N most confident; samples of one confidence count with their mean,
    so that their order says nothing.
    """
    probabilities, labels = _checked(probabilities, labels)
    wrong = (probabilities.argmax(axis=1) != labels).astype(float)
    _, group, counts = np.unique(-probabilities.max(axis=1), return_inverse=True, return_counts=True)
    mean_wrong = np.bincount(group, weights=wrong) / counts
    risks: Array = np.cumsum(np.repeat(mean_wrong, counts)) / np.arange(1, len(labels) + 1)
    return risks


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean squared distance between the probabilities and the one-hot label, in [0, 2]. Source: Brier, 1950."""
    return float(squared_distances(probabilities, labels).mean())


def negative_log_likelihood(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Mean of -log p(right label) in nats; finite, because probabilities are held at or above 1e-300."""
    return float(negative_log_likelihoods(probabilities, labels).mean())


def squared_distances(probabilities: ArrayLike, labels: ArrayLike) -> Array:
    """Of each row, shape (N,), the squared distance between its probabilities and its one-hot label, whose mean is the
    Brier score.
    """
    probabilities, labels = _checked(probabilities, labels)
    right = probabilities[np.arange(len(labels)), labels]
    distances: Array = (probabilities**2).sum(axis=1) - 2 * right + 1
    return distances


def negative_log_likelihoods(probabilities: ArrayLike, labels: ArrayLike) -> Array:
    """Of each row, shape (N,), -log p(right label) in nats, at most 691 (of 1e-300)."""
    probabilities, labels = _checked(probabilities, labels)
    losses: Array = -np.log(np.maximum(probabilities[np.arange(len(labels)), labels], 1e-300))
    return losses


def reliability_bins(probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 10) -> dict[str, Array]:
    """What a reliability diagram draws: per confidence bin ``count``, mean ``confidence`` and ``accuracy``.

    Each value has shape (n_bins,); confidence and accuracy of an empty bin are NaN.
    """
    probabilities, labels = _checked(probabilities, labels, n_bins)
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    index = bin_indices(confidence, n_bins)
    count = np.bincount(index, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        return {
            "count": count,
            "confidence": np.bincount(index, weights=confidence, minlength=n_bins) / count,
            "accuracy": np.bincount(index, weights=right, minlength=n_bins) / count,
        }


def classification_scores(labels: ArrayLike, predictions: ArrayLike, n_labels: int) -> dict[str, Any]:
    """Accuracy and macro precision, recall and F1, all as fractions, with the per-label values beside them.

    Returns ``accuracy``, ``precision``, ``recall``, ``f1`` (floats) and ``per_label``: a dict of ``precision``,
    ``recall``, ``f1`` and ``support``, each of shape (n_labels,). **The macro values divide by all ``n_labels``
    labels**, also those that no test row bears; a ratio of 0/0 counts as 0. A label without test rows therefore scores
    0 and lowers the mean (``support`` tells which those are).
    """
    labels, predictions = _as_labels(labels, n_labels, "labels"), _as_labels(predictions, n_labels, "predictions")
    if labels.shape != predictions.shape:
        raise ValueError(f"{len(labels)} labels for {len(predictions)} predictions")
    hits = np.bincount(labels[labels == predictions], minlength=n_labels).astype(float)
    predicted = np.bincount(predictions, minlength=n_labels)
    support = np.bincount(labels, minlength=n_labels)
    precision = _ratio(hits, predicted)
    recall = _ratio(hits, support)
    f1 = _ratio(2 * hits, predicted + support)
    return {
        "accuracy": float((labels == predictions).mean()),
        "precision": float(precision.mean()),
        "recall": float(recall.mean()),
        "f1": float(f1.mean()),
        "per_label": {"precision": precision, "recall": recall, "f1": f1, "support": support},
    }


def bin_indices(values: Array, n_bins: int) -> Array:
    """The bin in [0, n_bins) of each value in [0, 1], for bins (a, b] whose first is closed on the left.

    The edges are the floats nearest to i / n_bins, so that 0.3 falls in the third of ten bins, as it is written.
    """
    edges = np.arange(n_bins + 1) / n_bins
    index: Array = np.clip(np.ceil(values * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    # the product above is rounded: put right the values that stand exactly at, or one float beside, an edge
    index -= (values <= edges[index]) & (index > 0)
    index += values > edges[index + 1]
    np.minimum(index, n_bins - 1, out=index)
    return index


def softmax(logits: ArrayLike) -> Array:
    """Row-wise softmax of logits (N, K) in float64."""
    logits = np.asarray(logits, dtype=np.float64)
    powers: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def _checked(probabilities: ArrayLike, labels: ArrayLike, n_bins: int = 1) -> tuple[Array, Array]:
    probabilities = np.asarray(probabilities, dtype=np.float64)
    if probabilities.ndim != 2 or 0 in probabilities.shape:
        raise ValueError(f"probabilities must have shape (N, K) with N, K > 0, not {probabilities.shape}")
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, not {n_bins}")
    # written so that NaN fails too; 1e-3 lets half-precision softmax through
    if not (probabilities.min() >= 0 and np.all(np.abs(probabilities.sum(axis=1) - 1) < 1e-3)):
        raise ValueError("probabilities must be in [0, 1], each row summing to 1")
    labels = _as_labels(labels, probabilities.shape[1], "labels")
    if len(labels) != len(probabilities):
        raise ValueError(f"{len(labels)} labels for {len(probabilities)} rows of probabilities")
    return probabilities, labels


def _as_labels(labels: ArrayLike, n_labels: int, what: str) -> Array:
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) == 0 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"{what} must be a non-empty vector of integers")
    if labels.min() < 0 or labels.max() >= n_labels:
        raise ValueError(f"{what} must be in [0, {n_labels}), found {labels.min()} to {labels.max()}")
    return labels


def _ratio(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)

"""The scores of a view on resampled test rows: what comparisons between methods need to know, without the logits."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmark.metrics import Array, bin_indices, negative_log_likelihoods, squared_distances

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# How many weights (resamples x rows) are held at once: 160 MB of float64, three times that while they are drawn.
_WEIGHTS_AT_ONCE = 20_000_000


@dataclass(frozen=True)
class Resampled:
    """Scores on B resamples, fractions. Macro F1 and summed class-wise ECE (B,), and of single labels (B, K);
    ``measures``: top-label ECE, Brier score and negative log-likelihood by name (B,).
    """

    f1: Array
    ece: Array
    measures: dict[str, Array]
    label_f1: Array
    label_ece: Array


def resampled_scores(
    probabilities: Array, labels: Array, predictions: Array, n_bins: int, n_resamples: int
) -> Resampled:
    """Macro F1, class-wise ECE, top-label ECE, Brier score and negative log-likelihood on bootstrap resamples (N rows
    drawn with replacement) of the test rows.

    The draws depend on ``labels`` alone, so every run and view that is scored on the same test rows sees the same
    resamples, and differences between them are paired. Source: Efron, 1979.
    """
    n_rows, n_labels = probabilities.shape
    bins = bin_indices(probabilities.ravel(), n_bins).reshape(n_rows, n_labels)
    every = np.arange(n_rows)
    right = predictions == labels
    ones, shape = np.ones(n_rows), (n_rows, n_labels)
    hits = _sparse(ones[right], every[right], labels[right], shape)
    claimed = _sparse(ones, every, labels, shape) + _sparse(ones, every, predictions, shape)
    confidence = probabilities.max(axis=1)
    sure = (probabilities.argmax(axis=1) == labels) - confidence
    in_confidence_bins = _sparse(sure, every, bin_indices(confidence, n_bins), (n_rows, n_bins))
    losses = np.stack([squared_distances(probabilities, labels), negative_log_likelihoods(probabilities, labels)], 1)
    parts = []
    for weights in _weights(labels, n_resamples):
        borne_or_predicted = np.asarray(weights @ claimed)
        label_f1 = _ratio(2 * np.asarray(weights @ hits), borne_or_predicted)
        label_ece = np.empty_like(label_f1)
        for label in range(n_labels):
            gaps = (labels == label) - probabilities[:, label]
            in_bins = _sparse(gaps, every, bins[:, label], (n_rows, n_bins))
            label_ece[:, label] = np.abs(weights @ in_bins).sum(axis=1) / n_rows
        top_label = np.abs(weights @ in_confidence_bins).sum(axis=1) / n_rows
        parts.append((label_f1, label_ece, top_label, *(weights @ losses / n_rows).T))
    label_f1, label_ece, top_label, brier, nll = (np.concatenate(chunks) for chunks in zip(*parts, strict=True))
    measures = {"top_label_ece": top_label, "brier": brier, "nll": nll}
    return Resampled(label_f1.mean(axis=1), label_ece.sum(axis=1), measures, label_f1, label_ece)


def _ratio(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def _weights(labels: Array, n_resamples: int) -> Iterator[Array]:
    """How often each row is drawn, (some resamples, N) at a time."""
    n_rows = len(labels)
    content = hashlib.sha256(np.ascontiguousarray(labels, dtype="<i8").tobytes()).digest()
    generator = np.random.default_rng(int.from_bytes(content[:8], "big"))
    at_once = max(1, _WEIGHTS_AT_ONCE // n_rows)
    for start in range(0, n_resamples, at_once):
        count = min(at_once, n_resamples - start)
        rows = generator.integers(0, n_rows, size=(count, n_rows)) + n_rows * np.arange(count)[:, None]
        yield np.bincount(rows.ravel(), minlength=count * n_rows).reshape(count, n_rows).astype(float)


def _sparse(values: Array, rows: Array, columns: Array, shape: tuple[int, int]) -> "csr_array":
    from scipy.sparse import csr_array  # slow to import, and planning scores nothing

    return csr_array((values, (rows, columns)), shape=shape)

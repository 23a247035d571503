"""Arrays as all calibrators take them, and where their fits end."""

import numpy as np
from numpy.typing import ArrayLike

from benchmark.metrics import Array

FLATTEST = 1e-5  # a fit by gradients ends where no slope of the mean likelihood is steeper


def checked(logits: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """Logits (N, K) in float64 and labels (N,); ValueError on wrong shapes, labels out of range, values that are not
    finite.
    """
    logits, labels = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    if logits.ndim != 2 or 0 in logits.shape or labels.shape != logits.shape[:1]:
        raise ValueError(f"logits must be (N, K) and labels (N,), not {logits.shape} and {labels.shape}")
    if not np.isfinite(logits).all():
        raise ValueError("logits must be finite")
    if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= logits.shape[1]:
        raise ValueError(f"labels must be integers in [0, {logits.shape[1]})")
    return logits, labels


def log_softmax(logits: Array) -> Array:
    """Row-wise log-softmax."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result

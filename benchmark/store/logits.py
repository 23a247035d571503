"""What a run predicted for the held-out rows, and its bytes."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.specs import RunSpec, readable_name

# Names of arrays in a file of logits; the number of passes follows the last.
_ARRAYS = ("validation_logits", "validation_labels", "test_logits", "test_labels")
_MC_DROPOUT = "mc_dropout_"


@dataclass(frozen=True)
class Logits:
    """Stored logits (N, K) and labels (N,) of the held-out splits: validation labels as corrupted, test labels clean.

    ``mc_dropout`` holds, by the number of passes with dropout, the logarithm of the mean probabilities of test rows.
    """

    validation_logits: NDArray[np.float32]
    validation_labels: NDArray[np.int64]
    test_logits: NDArray[np.float32]
    test_labels: NDArray[np.int64]
    mc_dropout: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)


def logits_name(run: RunSpec, digest: str) -> str:
    """The name of a run's file of logits, by the SHA-256 of its bytes."""
    return f"{readable_name(run)}.{digest[:12]}.npz"


def packed_size(n_rows: int, n_test: int, n_labels: int, n_mc_dropout: int) -> int:
    """About how many bytes the logits of so many held-out rows take, ``n_test`` of them test rows, as ``pack`` makes
    them: a little more rather than less.
    """
    labels, names = 8 * n_rows, 1024 * (len(_ARRAYS) + n_mc_dropout)
    return 4 * n_labels * (n_rows + n_mc_dropout * n_test) + labels + names


def pack(logits: Logits) -> bytes:
    """The bytes of a file that holds the logits."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: getattr(logits, name) for name in _ARRAYS}
    arrays |= {f"{_MC_DROPOUT}{passes}": array for passes, array in sorted(logits.mc_dropout.items())}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unpack(content: bytes) -> Logits:
    """The logits in the bytes of a file."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        by_passes = {
            int(name.removeprefix(_MC_DROPOUT)): arrays[name] for name in arrays if name.startswith(_MC_DROPOUT)
        }
        return Logits(**{name: arrays[name] for name in _ARRAYS}, mc_dropout=by_passes)

"""A data set in memory: texts, labels, splits, and the fingerprint of their content."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.splits import SPLITS, SplitName


@dataclass(frozen=True)
class Split:
    """N texts and their labels, integers in [0, K) of shape (N,)."""

    texts: tuple[str, ...]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Corpus:
    """A data set, split, with clean labels. ``label_names[k]`` is the publisher's own name of label k."""

    name: str
    label_names: tuple[str, ...]
    train: Split
    validation: Split
    test: Split
    origin: str  # in words: where the rows came from

    @property
    def n_labels(self) -> int:
        return len(self.label_names)

    def split(self, name: SplitName) -> Split:
        """The split of that name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}[name]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over every text and label name in order, split by split: another byte or another order is another
        one.
        """
        digest = hashlib.sha256()
        for name in SPLITS:
            rows = self.split(name)
            content: list[Any] = [name, rows.texts, [self.label_names[label] for label in rows.labels.tolist()]]
            digest.update(json.dumps([self.label_names, content], separators=(",", ":")).encode())
        return digest.hexdigest()

"""Texts laid out in rows, so that an encoder computes (nearly) no padding."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Rows of twice the longest text or more pack well; attention costs grow with the width.
_PACKED_WIDTHS = (32, 64)
_PADDED_PARTS = 4


@dataclass(frozen=True)
class TokenisedTexts:
    """N texts as one flat array of token ids; text i is ``tokens[starts[i]:starts[i + 1]]``.

    ``cls_offsets`` (N,) says where in a text its [CLS] stands (first for BERT, last for XLNet); ``token_types``, flat
    like ``tokens``, is None where all are 0.
    """

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]
    cls_offsets: NDArray[np.int64]
    token_types: NDArray[np.int32] | None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)


@dataclass(frozen=True)
class Rows:
    """R rows of W slots. ``source`` points into the flat tokens (one past their end for an empty slot), ``positions``
    counts within a text, ``texts`` numbers the texts of a row from 1 (0: empty slot); each has shape (R, W). ``cls``
    (b,) points into the R * W slots. The same by row: ``queries`` (R, Q) are the slots of a row's [CLS], slot 0 where a
    row has fewer than Q texts, and ``wanted`` (b,) points into those R * Q.
    """

    source: Tensor
    positions: Tensor
    texts: Tensor
    cls: Tensor
    queries: Tensor
    wanted: Tensor

    def to(self, device: torch.device) -> "Rows":
        """The same rows on a device, copied without waiting for it."""
        return Rows(*(copied(getattr(self, part.name), device) for part in fields(self)))


@dataclass(frozen=True)
class LaidOut:
    """A batch of B texts as one or more pieces; ``order`` (B,) leads from batch order to the pieces' concatenated
    texts.
    """

    pieces: tuple[Rows, ...]
    order: Tensor

    def to(self, device: torch.device) -> "LaidOut":
        """The same batch on a device, copied without waiting for it."""
        return LaidOut(tuple(rows.to(device) for rows in self.pieces), copied(self.order, device))


def copied(part: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device, copied from pinned memory, so that nothing waits for the copy."""
    return part if device.type == "cpu" else part.pin_memory().to(device, non_blocking=True)


def lay_out(texts: TokenisedTexts, batch: NDArray[np.int64], packed: bool) -> LaidOut:
    """Lay out the texts of ``batch`` (indices, any order) in rows.

    Packed: best-fit decreasing into rows of 32 slots where all texts have at most 16 tokens, else of 64 (of the
    longest text, rounded up to 16, where that is more), one piece. Else: one text a row, the batch split by length
    into up to 4 pieces, each as wide as its longest text.
    """
    lengths = texts.lengths[batch]
    if packed:
        width = _packed_width(int(lengths.max()))
        row, offset = best_fit(lengths, width)
        return LaidOut((_fill(texts, batch, row, offset, width),), torch.arange(len(batch)))
    by_length = np.argsort(-lengths, kind="stable")
    parts = np.array_split(by_length, min(_PADDED_PARTS, len(batch)))
    pieces = tuple(
        _fill(texts, batch[part], np.arange(len(part)), np.zeros(len(part), np.int64), int(lengths[part].max()))
        for part in parts
    )
    return LaidOut(pieces, torch.from_numpy(np.argsort(by_length, kind="stable")))


def _packed_width(longest: int) -> int:
    narrow, usual = _PACKED_WIDTHS
    return narrow if 2 * longest <= narrow else max(usual, -(-longest // 16) * 16)


def best_fit(lengths: NDArray[np.int64], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and offset of each text: longest first, each into the fullest row that still takes it."""
    row, offset = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    rows_by_space: list[list[int]] = [[] for _ in range(width + 1)]
    spaces = 0  # bit s is set where some row has s slots left
    n_rows = 0
    sizes = lengths.tolist()
    for text in np.argsort(-lengths, kind="stable").tolist():
        size = sizes[text]
        fitting = spaces >> size
        if fitting:
            space = size + (fitting & -fitting).bit_length() - 1
            here = rows_by_space[space].pop()
            if not rows_by_space[space]:
                spaces &= ~(1 << space)
        else:
            space, here, n_rows = width, n_rows, n_rows + 1
        row[text], offset[text] = here, width - space
        rows_by_space[space - size].append(here)
        spaces |= 1 << (space - size)
    return row, offset


def _fill(
    texts: TokenisedTexts, batch: NDArray[np.int64], row: NDArray[np.int64], offset: NDArray[np.int64], width: int
) -> Rows:
    lengths = texts.lengths[batch]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    base = row * width + offset
    slots = np.repeat(base, lengths) + within
    shape = (int(row.max()) + 1, width)
    source = np.full(shape, len(texts.tokens), np.int32)
    positions, numbers = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    source.reshape(-1)[slots] = np.repeat(texts.starts[batch], lengths) + within
    positions.reshape(-1)[slots] = within
    number = _number_in_row(row, offset)
    numbers.reshape(-1)[slots] = np.repeat(number, lengths)
    cls = base + texts.cls_offsets[batch]
    n_queries = int(number.max())
    queries = np.zeros((shape[0], n_queries), np.int32)
    wanted = row * n_queries + number - 1
    queries.reshape(-1)[wanted] = cls - row * width
    return Rows(*(torch.from_numpy(part) for part in (source, positions, numbers, cls, queries, wanted)))


def _number_in_row(row: NDArray[np.int64], offset: NDArray[np.int64]) -> NDArray[np.int64]:
    """1, 2, ... for the texts of each row, by offset."""
    order = np.lexsort((offset, row))
    sorted_rows = row[order]
    first = np.searchsorted(sorted_rows, sorted_rows, side="left")
    number = np.empty(len(row), np.int64)
    number[order] = np.arange(len(row)) - first + 1
    return number

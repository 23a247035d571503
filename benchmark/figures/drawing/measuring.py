"""How wide texts are when they are drawn. Lengths in inches."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DPI = 150  # of the pixels; widths of texts depend on it a little
_POINTS = 72  # an inch


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """The width of a text of that size (points) in the fonts that are set."""
    return _width(text, size, weight, tuple(mpl.rcParams["font.family"]))


def wrapped(text: str, size: float, width: float, weight: str = "normal") -> list[str]:
    """The text in lines that are not wider than ``width``, broken at blanks; a word that is wider by itself (Chinese
    has no blanks) is broken anywhere.
    """
    blank = text_width(" ", size, weight)
    lines: list[str] = []
    room = 0.0
    for word in text.split():
        for part in _parts(word, size, width, weight):
            needed = text_width(part, size, weight)
            if lines and needed + blank <= room:
                lines[-1] += f" {part}"
                room -= needed + blank
            else:
                lines.append(part)
                room = width - needed
    return lines


def legend_columns(labels: Sequence[str], size: float, width: float, most: int) -> int:
    """In how many columns, at most so many, a legend of the set look is not wider than ``width``."""
    fitting = (columns for columns in range(min(most, len(labels)), 1, -1) if _legend(labels, columns, size) <= width)
    return next(fitting, 1)


def _legend(labels: Sequence[str], columns: int, size: float) -> float:
    """The width of a legend, which fills its columns one after the other."""
    look = mpl.rcParams
    texts = sum(max(text_width(label, size) for label in part) for part in np.array_split(labels, columns))
    beside = columns * (look["legend.handlelength"] + look["legend.handletextpad"])
    between = (columns - 1) * look["legend.columnspacing"] + 2 * look["legend.borderpad"]
    return float(texts + (beside + between) * size / _POINTS)


def _parts(word: str, size: float, width: float, weight: str) -> list[str]:
    if text_width(word, size, weight) <= width:
        return [word]
    parts = [""]
    for letter in word:
        if parts[-1] and text_width(parts[-1] + letter, size, weight) > width:
            parts.append("")
        parts[-1] += letter
    return parts


@lru_cache(maxsize=10_000)
def _width(text: str, size: float, weight: str, _families: tuple[str, ...]) -> float:  # they are remembered by, too
    figure, renderer = _sheet()
    drawn = figure.text(0, 0, text, fontsize=size, fontweight=weight)
    width = drawn.get_window_extent(renderer).width / figure.dpi
    drawn.remove()
    return float(width)


@lru_cache(maxsize=1)
def _sheet() -> tuple[Figure, Any]:
    figure = Figure(dpi=DPI)
    return figure, FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]

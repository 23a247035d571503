"""Class-wise ECE, label by label."""

from collections import Counter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.figures.drawing.fonts import Lettering
from benchmark.figures.drawing.measuring import text_width
from benchmark.figures.drawing.sheet import WIDTH, Sheet
from benchmark.figures.drawing.style import GREY, PALE, SMALL, Look, Style, Styles
from benchmark.figures.series import LabelSeries
from benchmark.figures.words import Words

# One line of a page has this height in inches, and one column so many lines.
_LINE, _MOST_LINES = 0.104, 80
# From more lines on the scale stands above, too.
_LONG = 30
# A name takes at most this share of its column's width.
_NAME_SHARE = 0.45
_FEWEST_LETTERS = 8


def draw_labels(series: LabelSeries, lettering: Lettering, styles: Styles, words: Words) -> Figure:
    """A line a label, a mark a method; in two columns where one would be longer than a page."""
    n_labels = len(series.names)
    columns = -(-n_labels // _MOST_LINES)
    lines = -(-n_labels // columns)
    pitch = max(_LINE, min(0.2, 3.0 / lines))
    handles = [Line2D([], [], label=item.label, **_marks(styles.of(item.method))) for item in series.methods]
    sheet = Sheet(words, body_height=0.75 + pitch * lines, legend=handles, columns=len(handles))
    names = _told_apart(series, lettering, _NAME_SHARE * WIDTH / columns)
    widest = 1.03 * max(text_width(name, SMALL) for name in names)
    (panels,) = sheet.panels(
        1,
        columns,
        left=widest + 0.15,
        top=0.3 if lines > _LONG else 0.08,
        bottom=0.45,
        between=(widest + 0.25, 0),
        sharex=True,
    )
    for column, axes in enumerate(panels):
        part = slice(column * lines, min((column + 1) * lines, n_labels))
        _panel(axes, series, names, part, lines, styles)
    return sheet.figure


def _told_apart(series: LabelSeries, lettering: Lettering, room: float) -> list[str]:
    """The labels as they are drawn, each with its count; those that are drawn alike (they differ in blanks, say, or in
    a middle for which there is no room) with their numbers.
    """
    numbers = [f"label {number}" for number in series.numbers]
    names = [lettering.text(name, number) for name, number in zip(series.names, numbers, strict=True)]
    counts = [f"  {count}" for count in series.train_counts]
    rooms = [room - text_width(count, SMALL) for count in counts]
    drawn = [_shortened(name, left) for name, left in zip(names, rooms, strict=True)]
    times = Counter(drawn)
    numbered = [
        _shortened(f"{name} ({number})", left) if times[short] > 1 else short
        for name, short, number, left in zip(names, drawn, numbers, rooms, strict=True)
    ]
    return [f"{name}{count}" for name, count in zip(numbered, counts, strict=True)]


def _panel(axes: Axes, series: LabelSeries, names: list[str], part: slice, lines: int, styles: Styles) -> None:
    values = np.array([series.ece[item.method][part] for item in series.methods])
    places = np.arange(values.shape[1])
    axes.hlines(places, values.min(axis=0), values.max(axis=0), color=GREY, linewidth=0.6, zorder=1)
    for item, of_method in zip(series.methods, values, strict=True):
        axes.plot(of_method, places, **_marks(styles.of(item.method)))
    axes.set_yticks(places, names[part])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(lines - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="both", color=PALE, linewidth=0.4)
    axes.set_xlabel("Class-wise ECE of the label (%)")
    if lines > _LONG:
        axes.spines["top"].set_visible(True)
        axes.tick_params(axis="x", top=True, labeltop=True)


def _marks(style: Style) -> Look:
    return {"marker": style.marker, "color": style.colour, "linestyle": "none", "markersize": style.size(3.8)}


def _shortened(text: str, room: float) -> str:
    """The text, with its middle left out as far as it does not fit."""
    width = text_width(text, SMALL)
    if width <= room:
        return text
    kept = int(len(text) * room / width)
    while True:
        short = f"{text[: kept // 2]}…{text[len(text) - (kept - kept // 2) :]}"
        if kept <= _FEWEST_LETTERS or text_width(short, SMALL) <= room:
            return short
        kept -= 1

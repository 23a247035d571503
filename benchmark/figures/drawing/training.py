"""The course of training."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmark.figures.drawing.sheet import Sheet, panel_letter
from benchmark.figures.drawing.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Look, Style
from benchmark.figures.series import Course, MethodCourses
from benchmark.figures.words import Words

_TERMS = {
    "cross_entropy": ("CE (cross-entropy)", Style(BLACK, "o", "-")),
    "rau": ("RAU", Style(VERMILLION, "X", (0, (5, 1.5)))),
    "avuc": ("AVUC", Style(ORANGE, "s", (0, (5, 1.5)))),
    "poscal": ("KL (PosCal)", Style(BLUE, "^", (0, (1, 1)))),
}
_OTHER_TERMS = (GREEN, PURPLE, SKY)
_WHOLE = Style(BLACK, "o", "-")
_JOINED: Look = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (4, 2))}
_THRESHOLD: Look = {"color": VERMILLION, "linewidth": 1.0, "linestyle": (0, (1, 1))}


def draw_training(methods: Sequence[MethodCourses], words: Words) -> Figure:
    """A column a method: the loss terms, the training accuracy, the entropy; a line for each seed."""
    looks = _looks(methods)
    sheet = Sheet(words, body_height=4.75, legend=_handles(methods, looks), columns=7)
    columns = max(len(methods), 2)
    grid = sheet.panels(3, columns, left=0.66, top=0.42, bottom=0.42, between=(0.2, 0.16), sharex=True, sharey="row")
    for column, method in enumerate(methods):
        terms, accuracy, entropy = (row[column] for row in grid)
        terms.set_title(f"{panel_letter(column)} {method.label}\n{_loss(method, looks)}")
        for course in method.courses:
            for name, values in course.terms:
                _line(terms, values, looks[name][1])
            _line(accuracy, course.accuracy, _WHOLE)
            _line(entropy, course.entropy, _WHOLE)
            for axes in (terms, accuracy, entropy):
                _mark_joined(axes, course)
            for epoch, threshold in course.thresholds:
                entropy.plot([epoch, len(course.entropy)], [threshold, threshold], **_THRESHOLD)
        entropy.set_xlabel("Epoch")
        entropy.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for row, label in zip(grid, ("Loss terms (nats)", "Accuracy (%)", "Entropy (nats)"), strict=True):
        row[0].set_ylabel(label)
        for axes in row:
            axes.grid(axis="y")
        for axes in row[len(methods) :]:
            axes.remove()
    return sheet.figure


def _line(axes: Axes, values: np.ndarray, style: Style) -> None:
    epochs = np.arange(1, len(values) + 1)
    axes.plot(epochs, values, color=style.colour, marker=style.marker, linestyle=style.line, markersize=2.5)


def _mark_joined(axes: Axes, course: Course) -> None:
    for epoch, _ in course.joined:
        axes.axvline(epoch + 0.5, **_JOINED)


def _looks(methods: Sequence[MethodCourses]) -> dict[str, tuple[str, Style]]:
    """Label and look of every term that is drawn; terms that the paper does not have take other colours in turn."""
    used = dict.fromkeys(name for method in methods for name, _ in method.weights)
    others = [name for name in used if name not in _TERMS]
    more = {
        name: (name.replace("_", " "), Style(_OTHER_TERMS[index % len(_OTHER_TERMS)], "D", (0, (4, 1, 1, 1))))
        for index, name in enumerate(others)
    }
    return {name: look for name, look in (_TERMS | more).items() if name in used}


def _loss(method: MethodCourses, looks: Mapping[str, tuple[str, Style]]) -> str:
    """The loss as a formula: CE + 3 RAU + KL."""
    short = {name: label.partition(" (")[0] for name, (label, _) in looks.items()}
    parts = [f"{'' if weight == 1 else f'{weight:g} '}{short[name]}" for name, weight in method.weights]
    return " + ".join(parts)


def _handles(methods: Sequence[MethodCourses], looks: Mapping[str, tuple[str, Style]]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=style.colour, marker=style.marker, linestyle=style.line, markersize=3, label=label)
        for label, style in looks.values()
    ]
    courses = [course for method in methods for course in method.courses]
    if any(course.joined for course in courses):
        handles.append(Line2D([], [], label="terms join", **_JOINED))
    if any(course.thresholds for course in courses):
        handles.append(Line2D([], [], label="their threshold", **_THRESHOLD))
    return handles

"""Confidence histograms and reliability diagrams."""

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmark.figures.drawing.sheet import Sheet, arrangement, panel_letter
from benchmark.figures.drawing.style import BLACK, GREEN, GREY, ORANGE, SKY, VERMILLION, Look
from benchmark.figures.series import ReliabilitySeries
from benchmark.figures.words import Words

# Fewer rows than these say little about accuracy.
FEW_ROWS = 10

_OUTPUT: Look = {"facecolor": SKY, "edgecolor": BLACK, "linewidth": 0.5}
_FEW: Look = {"facecolor": "white", "edgecolor": GREY, "linewidth": 0.5}
_OVER: Look = {"facecolor": "#FFEDE0", "edgecolor": VERMILLION, "linewidth": 0.5, "hatch": "/////"}
_UNDER: Look = {"facecolor": "#D6F0E6", "edgecolor": GREEN, "linewidth": 0.5, "hatch": ".." * 3}
_OUTLINE: Look = {"fill": False, "edgecolor": BLACK, "linewidth": 0.8}
_RIGHT: Look = {"facecolor": SKY, "edgecolor": BLACK, "linewidth": 0.5}
_WRONG: Look = {"facecolor": ORANGE, "edgecolor": BLACK, "linewidth": 0.5, "hatch": "xxxx"}
_PERFECT: Look = {"color": BLACK, "linewidth": 0.8, "linestyle": (0, (4, 2))}
_ACCURACY: Look = {"color": BLACK, "linewidth": 1.2, "linestyle": "-"}
_CONFIDENCE: Look = {"color": BLACK, "linewidth": 1.2, "linestyle": (0, (2, 1.2))}


def draw_confidence(series: ReliabilitySeries, words: Words) -> Figure:
    """The histogram of a method's confidence, right and wrong rows on each other, beside its reliability diagram."""
    sheet = Sheet(words, body_height=3.7)
    ((histogram, reliability),) = sheet.panels(1, 2, left=0.55, top=0.52, bottom=0.87, between=(0.75, 0))
    _histogram(histogram, series)
    above = "No row has a confidence above 0.9"
    if series.wrong_above_90 is not None:
        above = f"Above 0.9: {series.above_90:.2f} % of the rows,\n{series.wrong_above_90:.2f} % of these are wrong"
    histogram.set_title(f"(a) {series.label}: confidence histogram\n{above}")
    _reliability(reliability, series)
    reliability.set_ylabel("Accuracy")
    reliability.set_xlabel("Confidence")
    reliability.set_title(f"(b) {series.label}: reliability diagram\n{_scores(series)}")
    height = sheet.height_of(histogram)
    for axes, handles in ((histogram, _histogram_handles(series)), (reliability, _reliability_handles([series]))):
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, -0.46 / height), ncols=2, labelspacing=0.3)
    return sheet.figure


def draw_reliability(panels: Sequence[ReliabilitySeries], words: Words) -> Figure:
    """Reliability diagrams, up to three in a row."""
    rows, columns = arrangement(len(panels))
    sheet = Sheet(words, body_height=0.4 + rows * 2.4, legend=_reliability_handles(panels), columns=5)
    grid = sheet.panels(rows, columns, top=0.55, bottom=0.42, between=(0.3, 0.75), sharex=True, sharey=True)
    places = [axes for row in grid for axes in row]
    for index, (axes, series) in enumerate(zip(places, panels, strict=False)):
        _reliability(axes, series)
        axes.set_title(f"{panel_letter(index)} {series.label}\n{_scores(series)}")
        if index % columns == 0:
            axes.set_ylabel("Accuracy")
        if index + columns >= len(panels):
            axes.set_xlabel("Confidence")
            axes.tick_params(labelbottom=True)
    for axes in places[len(panels) :]:
        axes.remove()
    return sheet.figure


def _histogram(axes: Axes, series: ReliabilitySeries) -> None:
    bins = series.bins
    share = 100 / bins.count.sum()
    width = 1 / len(bins.count)
    axes.bar(bins.edges[:-1], share * bins.right, width, align="edge", **_RIGHT)
    axes.bar(bins.edges[:-1], share * bins.wrong, width, bottom=share * bins.right, align="edge", **_WRONG)
    axes.axvline(series.accuracy / 100, **_ACCURACY)
    axes.axvline(series.confidence / 100, **_CONFIDENCE)
    axes.set_xlim(0, 1)
    axes.set_xticks(np.arange(6) / 5)
    axes.set_xlabel("Confidence")
    axes.set_ylabel("Share of test rows (%)")
    axes.grid(axis="y")


def _reliability(axes: Axes, series: ReliabilitySeries) -> None:
    bins = series.bins
    width = 1 / len(bins.count)
    few = (bins.count > 0) & (bins.count < FEW_ROWS)
    enough = bins.count >= FEW_ROWS
    over, under = enough & (bins.confidence > bins.accuracy), enough & (bins.confidence < bins.accuracy)
    for which, look in ((enough, _OUTPUT), (few, _FEW)):
        axes.bar(bins.edges[:-1][which], bins.accuracy[which], width, align="edge", **look)
    for which, look in ((over, _OVER), (under, _UNDER)):
        right, gap = bins.accuracy[which], (bins.confidence - bins.accuracy)[which]
        axes.bar(bins.edges[:-1][which], gap, width, bottom=right, align="edge", **look)
    # or the part of a bar that an under-confident gap covers would not look like accuracy
    axes.bar(bins.edges[:-1][enough], bins.accuracy[enough], width, align="edge", **_OUTLINE)
    axes.plot([0, 1], [0, 1], **_PERFECT)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks(np.arange(6) / 5)
    axes.set_yticks(np.arange(6) / 5)


def _scores(series: ReliabilitySeries) -> str:
    return f"ECE {_mean(series.ece)} %\ntop-label ECE {_mean(series.top_label_ece)} %"


def _mean(values: Sequence[float]) -> str:
    text = f"{fmean(values):.2f}"
    return text if len(values) == 1 else f"{text} ± {stdev(values):.2f}"


def _histogram_handles(series: ReliabilitySeries) -> list[Artist]:
    return [
        Patch(label="right", **_RIGHT),
        Patch(label="wrong", **_WRONG),
        Line2D([], [], label=f"accuracy {series.accuracy:.2f} %", **_ACCURACY),
        Line2D([], [], label=f"mean confidence {series.confidence:.2f} %", **_CONFIDENCE),
    ]


def _reliability_handles(panels: Sequence[ReliabilitySeries]) -> list[Artist]:
    handles: list[Artist] = [
        Patch(label="output (accuracy)", **_OUTPUT),
        Patch(label="over-confident by", **_OVER),
        Patch(label="under-confident by", **_UNDER),
        Line2D([], [], label="perfect calibration", **_PERFECT),
    ]
    if any(((series.bins.count > 0) & (series.bins.count < FEW_ROWS)).any() for series in panels):
        handles.append(Patch(label=f"fewer than {FEW_ROWS} rows", **_FEW))
    return handles

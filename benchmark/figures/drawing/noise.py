"""Scores against label noise."""

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.figures.drawing.sheet import Sheet
from benchmark.figures.drawing.style import Style, Styles
from benchmark.figures.series import NoiseSeries
from benchmark.figures.words import Words

# How far apart the error bars of two methods stand, in percent of noise.
_ASIDE = 0.45


def draw_noise(series: NoiseSeries, styles: Styles, words: Words) -> Figure:
    """F1 on the left, ECE on the right, a line a method; error bars where there are several seeds."""
    handles = [_handle(line.label, styles.of(line.method)) for line in series.lines]
    sheet = Sheet(words, body_height=2.75, legend=handles, columns=6)
    (panels,) = sheet.panels(1, 2, left=0.55, top=0.12, bottom=0.45, between=(0.65, 0))
    for axes, label, score in zip(panels, ("F1 (%)", "ECE, summed over labels (%)"), ("f1", "ece"), strict=True):
        for index, line in enumerate(series.lines):
            aside = _ASIDE * (index - (len(series.lines) - 1) / 2) if len(series.seeds) > 1 else 0.0
            _line(axes, np.array(series.levels) + aside, getattr(line, score), styles.of(line.method))
        axes.set_xticks(series.levels, [f"{level:g}" for level in series.levels])
        axes.set_xlabel("Noisy training labels (%)")
        axes.set_ylabel(label)
        axes.grid(axis="y")
    return sheet.figure


def _line(axes: Axes, levels: np.ndarray, values: Sequence[Sequence[float]], style: Style) -> None:
    """The means, with a gap where there is none, and their spread."""
    means = [fmean(of_level) if of_level else np.nan for of_level in values]
    axes.plot(levels, means, color=style.colour, marker=style.marker, linestyle=style.line, markersize=style.size(4.5))
    spread = [index for index, of_level in enumerate(values) if len(of_level) > 1]
    axes.errorbar(
        levels[spread],
        [means[index] for index in spread],
        yerr=[stdev(values[index]) for index in spread],
        color=style.colour,
        linestyle="none",
        elinewidth=0.8,
    )


def _handle(label: str, style: Style) -> Line2D:
    size = style.size(4.5)
    return Line2D([], [], color=style.colour, marker=style.marker, linestyle=style.line, markersize=size, label=label)

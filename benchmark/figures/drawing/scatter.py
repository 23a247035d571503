"""F1 against ECE."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.figures.drawing.sheet import Sheet, arrangement
from benchmark.figures.drawing.style import GREY, Look, Style, Styles
from benchmark.figures.series import Point, ScatterPanel
from benchmark.figures.words import Words


def draw_scatter(panels: Sequence[ScatterPanel], titles: Mapping[str, str], styles: Styles, words: Words) -> Figure:
    """A panel a data set (``titles`` by its role), up to three in a row: ours filled, the paper's hollow."""
    rows, columns = arrangement(len(panels))
    rows_of_table = list(dict.fromkeys((point.key, point.label) for panel in panels for point in panel.points))
    handles = [Line2D([], [], label=label, **_marks(styles.of(key))) for key, label in rows_of_table]
    if any(point.paper for panel in panels for point in panel.points):
        look = _marks(Style(GREY, "o", "-"))
        handles.append(Line2D([], [], label="filled: ours", **look))
        handles.append(Line2D([], [], label="hollow: the paper", markerfacecolor="none", **look))
    sheet = Sheet(words, body_height=0.3 + 2.6 * rows, legend=handles, columns=8)
    # a lone panel would be far wider than high
    right = 0.1 if columns > 1 else 2.6
    grid = sheet.panels(rows, columns, left=0.5, right=right, top=0.3, bottom=0.45, between=(0.45, 0.75))
    places = [axes for row in grid for axes in row]
    for index, (axes, panel) in enumerate(zip(places, panels, strict=False)):
        for point in panel.points:
            _point(axes, point, styles)
        axes.margins(0.12)
        axes.set_title(titles[panel.dataset])
        axes.set_xlabel("ECE, summed over labels (%)")
        if index % columns == 0:
            axes.set_ylabel("F1 (%)")
        axes.grid()
    for axes in places[len(panels) :]:
        axes.remove()
    return sheet.figure


def _point(axes: Axes, point: Point, styles: Styles) -> None:
    look = _marks(styles.of(point.key))
    spread = len(point.seeds) > 1
    axes.errorbar(
        [fmean(point.ece)],
        [fmean(point.f1)],
        xerr=[stdev(point.ece)] if spread else None,
        yerr=[stdev(point.f1)] if spread else None,
        elinewidth=0.8,
        **look,
    )
    if point.paper is not None:
        f1, ece = point.paper
        axes.plot([ece], [f1], markerfacecolor="none", **look)


def _marks(style: Style) -> Look:
    return {"marker": style.marker, "color": style.colour, "linestyle": "none", "markersize": style.size(5.0)}

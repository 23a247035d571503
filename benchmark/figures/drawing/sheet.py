"""The sheet that every figure is drawn on: title and legend above, panels, sentences below. Lengths in inches."""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.figures.drawing.measuring import DPI, legend_columns, wrapped
from benchmark.figures.drawing.style import GREY, SMALL, TITLE
from benchmark.figures.words import Words

WIDTH = 7.2  # of a page's text
_MARGIN = 0.06
_TITLE_LINE, _LEGEND_LINE, _FOOTER_LINE = 0.22, 0.17, 0.125


class Sheet:
    """A figure as wide as a page and as high as its parts need. The legend stands below the title, in at most so many
    columns as fit.
    """

    def __init__(self, words: Words, body_height: float, legend: Sequence[Artist] = (), columns: int = 1) -> None:
        width = WIDTH - 2 * _MARGIN
        columns = legend_columns([str(handle.get_label()) for handle in legend], SMALL, width, columns)
        title = wrapped(words.title, TITLE, width, "bold")
        footer = wrapped(words.footer, SMALL, width)
        self._below = 2 * _MARGIN + len(footer) * _FOOTER_LINE
        below_title = _MARGIN + len(title) * _TITLE_LINE
        self._above = below_title + -(-len(legend) // columns) * _LEGEND_LINE
        self.height = self._above + body_height + self._below
        self.figure = Figure(figsize=(WIDTH, self.height), dpi=DPI)
        top = self.height - _MARGIN
        self._text(_MARGIN, top, "\n".join(title), fontsize=TITLE, fontweight="bold", va="top")
        self._text(_MARGIN, _MARGIN, "\n".join(footer), fontsize=SMALL, color=GREY, va="bottom", linespacing=1.25)
        if legend:
            place = (_MARGIN / WIDTH, 1 - below_title / self.height)
            self.figure.legend(
                handles=list(legend), loc="upper left", bbox_to_anchor=place, ncols=columns, labelspacing=0.25
            )

    def panels(
        self,
        rows: int,
        columns: int,
        *,
        left: float = 0.5,
        right: float = 0.1,
        top: float = 0.25,
        bottom: float = 0.45,
        between: tuple[float, float] = (0.5, 0.5),
        **options: Any,
    ) -> list[list[Axes]]:
        """Axes in rows. The margins are those within the body; ``between`` panels: across, down."""
        across, down = between
        body = self.height - self._above - self._below
        panel_width = (WIDTH - left - right - (columns - 1) * across) / columns
        panel_height = (body - top - bottom - (rows - 1) * down) / rows
        grid = self.figure.subplots(
            rows,
            columns,
            squeeze=False,
            gridspec_kw={
                "left": left / WIDTH,
                "right": 1 - right / WIDTH,
                "bottom": (self._below + bottom) / self.height,
                "top": 1 - (self._above + top) / self.height,
                "wspace": across / panel_width,
                "hspace": down / panel_height,
            },
            **options,
        )
        return [list(row) for row in grid]

    def height_of(self, axes: Axes) -> float:
        """How high a panel is."""
        return float(axes.get_position().height * self.height)

    def _text(self, x: float, y: float, text: str, **options: Any) -> None:
        self.figure.text(x / WIDTH, y / self.height, text, **options)


def arrangement(n_panels: int) -> tuple[int, int]:
    """Rows and columns for so many panels, up to three in a row."""
    columns = 2 if n_panels in (2, 4) else min(n_panels, 3)
    return -(-n_panels // columns), columns


def panel_letter(index: int) -> str:
    """(a), (b), ..."""
    return f"({chr(ord('a') + index)})"

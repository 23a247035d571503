"""One look for all figures: sizes for print, colours that colour-blind eyes tell apart, marks that need no colour."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

TEXT, SMALL, TITLE = 8.0, 7.0, 9.0  # points, at the size that the files have

# Okabe and Ito, 2008, without yellow, which is hard to see on white.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, PALE = "#595959", "#D9D9D9"

# In the order of experiments/methods.yaml: the baseline black, neighbours far apart in colour and in shade.
_COLOURS = (BLACK, ORANGE, SKY, GREEN, PURPLE, VERMILLION, BLUE, GREY)
# All have an inside, for hollow ones; a star needs to be larger to look as large.
_MARKERS = ("o", "s", "^", "D", "v", "*", "p", "<", ">", "X")
_LARGER = {"*": 1.6, "X": 1.25, "D": 0.9}
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 2)), (0, (2.5, 1)))

# What matplotlib calls its keyword arguments of one element.
Look = dict[str, Any]

_SETTINGS: Any = {
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.4,
    "legend.handletextpad": 0.5,
    "legend.borderaxespad": 0.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": PALE,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
    "errorbar.capsize": 2.0,
    "pdf.fonttype": 42,  # letters stay letters, as publishers ask
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
}


@dataclass(frozen=True)
class Style:
    """How one method looks in every figure."""

    colour: str
    marker: str
    line: Any

    def size(self, points: float) -> float:
        """The size of the marker at which it looks as large as a circle of so many points."""
        return points * _LARGER.get(self.marker, 1.0)


class Styles:
    """The look of each method, the same in all figures."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)

    def of(self, name: str) -> Style:
        """The look of that name; a new one for a name that was not known before."""
        if name not in self._names:
            self._names.append(name)
        index = self._names.index(name)
        return Style(_COLOURS[index % len(_COLOURS)], _MARKERS[index % len(_MARKERS)], _LINES[index % len(_LINES)])


@contextmanager
def house_style(families: Iterable[str]) -> Iterator[None]:
    """The project's look, whatever the user's own settings of matplotlib, with these font families in turn."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS | {"font.family": list(families)})
        yield

"""A grid as lines of text cells, before any markup: shared by Markdown and LaTeX."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.tables import Cell, Grid, GridRow

MISSING = "–"
PLUS_MINUS = "±"
MINUS = "−"
WITHIN_NOISE = "°"


@dataclass(frozen=True)
class TextCell:
    """What a cell prints, before any markup."""

    text: str
    bold: bool = False
    mark: str = ""  # after the number


@dataclass(frozen=True)
class Line:
    """One printed line: the row's label ("" on a continuation), what it shows (None: ours only), its cells."""

    label: str
    what: str | None
    cells: tuple[TextCell, ...]


def lines(row: GridRow, compare: bool) -> list[Line]:
    """The line of a row, or with ``compare`` three: ours, the paper's, the difference."""
    ours = tuple(
        TextCell(ours_text(cell), cell.best, WITHIN_NOISE if cell.lead_within_noise else "") for cell in row.cells
    )
    if not compare:
        return [Line(row.label, None, ours)]
    return [
        Line(row.label, "ours", ours),
        Line("", "paper", tuple(TextCell(_number(cell.paper, cell.decimals)) for cell in row.cells)),
        Line("", "difference", tuple(TextCell(_difference(cell)) for cell in row.cells)),
    ]


def ours_text(cell: Cell) -> str:
    """Mean, from two seeds on the sample standard deviation, and n where seeds are missing."""
    if cell.mean is None:
        return MISSING
    text = _number(cell.mean, cell.decimals)
    if cell.deviation is not None:
        text += f" {PLUS_MINUS} {cell.deviation:.{cell.decimals}f}"
    return f"{text} (n={len(cell.values)})" if cell.partial else text


def caption(grid: Grid) -> str:
    """The caption and all that must be known to read the numbers."""
    return " ".join([grid.caption, *([grid.note] if grid.note else []), *notes(grid)])


def notes(grid: Grid) -> list[str]:
    """What must be known to read the numbers, in sentences."""
    parts = []
    n = len(grid.seeds)
    if n == 1:
        parts.append(seeds_in_words(grid.seeds))
    elif n > 1:
        parts.append(f"Mean {PLUS_MINUS} sample standard deviation over {seeds_in_words(grid.seeds)}")
    parts.append("Best as printed in bold.")
    n_leads = sum(cell.lead is not None for cell in grid.cells)
    if any(cell.lead_within_noise for cell in grid.cells):
        varied = "test rows and seeds" if n > 1 else "test rows"
        parts.append(
            f"{WITHIN_NOISE} The lead over the runner-up is within noise (paired bootstrap over {varied}, 5 % false "
            f"discoveries over the {n_leads} leads tested here: F1 and ECE)."
        )
    missing = [cell for cell in grid.cells if cell.mean is None]
    if missing:
        reasons = ", ".join(dict.fromkeys(cell.why_missing or "no result" for cell in missing))
        parts.append(f"{MISSING} missing: {len(missing)} of {len(grid.cells)} cells ({reasons}).")
    if any(cell.partial for cell in grid.cells):
        parts.append("(n=...) fewer seeds than the others.")
    return parts


def seeds_in_words(seeds: Sequence[int]) -> str:
    """How many seeds and which; nothing for none."""
    if not seeds:
        return ""
    if len(seeds) == 1:
        return f"One seed ({seeds[0]})."
    return f"n = {len(seeds)} seeds ({', '.join(str(seed) for seed in seeds)})."


def _number(value: float | None, decimals: int) -> str:
    if value is None:
        return MISSING
    text = f"{value:.{decimals}f}"
    return text.replace("-", MINUS)


def _difference(cell: Cell) -> str:
    """Of the printed numbers, so that it adds up on paper."""
    if cell.mean is None or cell.paper is None:
        return MISSING
    difference = round(cell.mean, cell.decimals) - round(cell.paper, cell.decimals)
    text = f"{difference:+.{cell.decimals}f}"
    return text.replace("-", MINUS)

"""Rows and numbers as text, before any markup: shared by Markdown, LaTeX and the page."""

from dataclasses import dataclass, replace

from benchmark.tables import Cell, Gap, GridRow

MISSING = "–"
PLUS_MINUS = "±"
MINUS = "−"
WITHIN_NOISE = "°"
NOT_TESTED = "‡"
WITHOUT_OPTIMUM = "§"
WORSE = "†"
MARKS = {
    WITHIN_NOISE: "lead within noise",
    NOT_TESTED: "lead not tested",
    WITHOUT_OPTIMUM: "no temperature found",
    WORSE: "worse beyond noise",
}


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
    ours = tuple(TextCell(ours_text(cell), cell.best, _mark(cell)) for cell in row.cells)
    if not compare:
        return [Line(row.label, None, ours)]
    return [
        Line(row.label, "ours", ours),
        Line("", "paper", tuple(TextCell(number(cell.paper, cell.decimals)) for cell in row.cells)),
        Line("", "difference", tuple(TextCell(signed(cell.from_paper, cell.decimals)) for cell in row.cells)),
    ]


def _mark(cell: Cell) -> str:
    if cell.without_optimum:
        return WITHOUT_OPTIMUM
    if cell.lead is not None and cell.lead.within_noise:
        return WITHIN_NOISE
    return NOT_TESTED if cell.lead_untested else ""


def ours_text(cell: Cell) -> str:
    """Mean, from two seeds on the sample standard deviation, and n where seeds are missing."""
    return " ".join(filter(None, [number(cell.mean, cell.decimals), spread_text(cell)]))


def gap_text(gap: Gap) -> TextCell:
    """A difference without its interval; in bold where it is better, marked where it is worse, beyond noise. One that
    is printed as 0 is neither.
    """
    decimals = gap.cell.decimals
    verdict = gap.verdict if gap.estimate is not None and _rounded(gap.estimate, decimals) else None
    mark = WITHOUT_OPTIMUM if gap.without_optimum else WORSE if verdict == "worse" else ""
    return TextCell(signed(gap.estimate, decimals), verdict == "better", mark)


def interval_text(gap: Gap) -> str:
    """The 95 % interval in brackets where there is one, and n where seeds are missing."""
    decimals, parts = gap.cell.decimals, []
    if gap.tested is not None:
        parts.append(f"({signed(gap.tested.low, decimals)} to {signed(gap.tested.high, decimals)})")
    if gap.partial:
        parts.append(f"(n={len(gap.seeds)})")
    return " ".join(parts)


def gap_with_interval(gap: Gap) -> TextCell:
    """The two in one."""
    cell = gap_text(gap)
    return replace(cell, text=" ".join(filter(None, [cell.text, interval_text(gap)])))


def spread_text(cell: Cell) -> str:
    """What stands behind the mean: nothing where there is none, or where it is that of the only seed."""
    if cell.mean is None:
        return ""
    spread = "" if cell.deviation is None else f"{PLUS_MINUS} {cell.deviation:.{cell.decimals}f}"
    return " ".join(filter(None, [spread, f"(n={len(cell.values)})" if cell.partial else ""]))


def number(value: float | None, decimals: int) -> str:
    """A number with a minus sign of its own, or the mark of a missing one."""
    return MISSING if value is None else f"{_rounded(value, decimals):.{decimals}f}".replace("-", MINUS)


def signed(value: float | None, decimals: int) -> str:
    """A difference, which always has a sign, or the mark of a missing one."""
    return MISSING if value is None else f"{_rounded(value, decimals):+.{decimals}f}".replace("-", MINUS)


def _rounded(value: float, decimals: int) -> float:
    return round(float(value), decimals) + 0.0  # which makes 0 of -0

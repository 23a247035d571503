"""A grid as lines of text cells, before any markup: shared by Markdown and LaTeX."""

from dataclasses import dataclass
from itertools import compress

from benchmark.tables import (
    ONE_SEED,
    Cell,
    Grid,
    GridRow,
    as_sentence,
    seeds_in_words,
    trained_in,
    without_effect,
    without_rows,
)

MISSING = "–"
PLUS_MINUS = "±"
MINUS = "−"
WITHIN_NOISE = "°"
NOT_TESTED = "‡"
WITHOUT_OPTIMUM = "§"
MARKS = {
    WITHIN_NOISE: "lead within noise",
    NOT_TESTED: "lead not tested",
    WITHOUT_OPTIMUM: "no temperature found, never best",
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


def spread_text(cell: Cell) -> str:
    """What stands behind the mean: nothing where there is none, or where it is that of the only seed."""
    if cell.mean is None:
        return ""
    spread = "" if cell.deviation is None else f"{PLUS_MINUS} {cell.deviation:.{cell.decimals}f}"
    return " ".join(filter(None, [spread, f"(n={len(cell.values)})" if cell.partial else ""]))


def caption(grid: Grid) -> str:
    """The caption and all that must be known to read the numbers."""
    return " ".join([as_sentence(grid.caption), *([grid.note] if grid.note else []), *notes(grid)])


def notes(grid: Grid) -> list[str]:
    """What must be known to read the numbers, in sentences."""
    parts = []
    if grid.seeds:
        parts.append(seeds_in_words(grid.seeds, f"Mean {PLUS_MINUS} sample standard deviation over"))
    for size in sorted({cell.trainings for cell in grid.cells if cell.values and cell.trainings > 1}):
        parts.append(f"Each value of an ensemble is of {size} seeds: its own and the {size - 1} that follow.")
    parts.append("Best as printed in bold.")
    parts += filter(None, [_trained(grid), without_effect(grid)])
    leads = [cell.lead for cell in grid.cells if cell.lead is not None]
    counted = f"{len(leads)} lead{'s' if len(leads) > 1 else ''}"
    if any(lead.within_noise for lead in leads):
        several = any(len(lead.seeds) > 1 for lead in leads)
        varied = "test rows and the spread over seeds" if several else "test rows"
        parts.append(
            f"{WITHIN_NOISE} The lead over the runner-up is within noise (paired bootstrap over {varied}, 5 % false "
            f"discoveries over the {counted} tested here: {_tested(grid)}, ties left out)."
        )
    if untested := dict.fromkeys(cell.lead_untested for cell in grid.cells if cell.lead_untested):
        parts.append(f"{NOT_TESTED} The lead over the runner-up is not tested: {', or '.join(untested)}.")
    if any(not lead.of_all for lead in leads):
        parts.append("Leads are tested over the seeds that both have.")
    if any(len(lead.seeds) == 1 for lead in leads):
        parts.append(ONE_SEED)
    if absent := without_rows(max((cell.labels_without_rows for cell in grid.cells), default=0)):
        parts.append(absent)
    if any(cell.without_optimum for cell in grid.cells):
        parts.append(
            f"{WITHOUT_OPTIMUM} Never best by what a temperature moves: none was found, its search ended at a bound."
        )
    missing = [cell for cell in grid.cells if cell.mean is None]
    if missing:
        reasons = ", ".join(dict.fromkeys(cell.why_missing or "no result" for cell in missing))
        parts.append(f"{MISSING} missing: {len(missing)} of {len(grid.cells)} cells ({reasons}).")
    if any(cell.partial for cell in grid.cells):
        parts.append("(n=...) fewer values than seeds.")
    return parts


def _tested(grid: Grid) -> str:
    """By which measures there are leads that are tested."""
    measures = [label for column in grid.columns for label in column.metrics]
    tested = [any(row.cells[place].lead for row in grid.every_row) for place in range(len(measures))]
    *others, last = dict.fromkeys(compress(measures, tested))
    return f"{', '.join(others)} and {last}" if others else last


def _trained(grid: Grid) -> str:
    """That a table has trainings in several precisions, and which columns where each has one."""
    if len(grid.precisions) < 2 or any(len(column.precisions) > 1 for column in grid.columns):
        return trained_in(grid.precisions)
    parts = []
    for precision in grid.precisions:
        labels = [column.label for column in grid.columns if column.precisions == (precision,)]
        parts.append(f"{precision} ({', '.join(labels)})")
    return f"Trained in {' and in '.join(parts)}."


def number(value: float | None, decimals: int) -> str:
    """A number with a minus sign of its own, or the mark of a missing one."""
    return MISSING if value is None else f"{_rounded(value, decimals):.{decimals}f}".replace("-", MINUS)


def signed(value: float | None, decimals: int) -> str:
    """A difference, which always has a sign, or the mark of a missing one."""
    return MISSING if value is None else f"{_rounded(value, decimals):+.{decimals}f}".replace("-", MINUS)


def _rounded(value: float, decimals: int) -> float:
    return round(float(value), decimals) + 0.0  # which makes 0 of -0

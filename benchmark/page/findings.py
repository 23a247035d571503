"""What a table says, in a sentence for each of its groups of columns."""

from dataclasses import dataclass

from benchmark.page.details import lead_in_words
from benchmark.render.text import number
from benchmark.tables import Grid, GridColumn, GridRow


@dataclass(frozen=True)
class Finding:
    """A group of columns by its label, and in words which row is best by each of its metrics."""

    label: str
    says: str


def findings(grid: Grid) -> list[Finding]:
    """One for every group of columns in which at least two rows have a number; the first row is the baseline."""
    rows = [row for group in grid.groups for row in group]
    found, first = [], 0
    for column in grid.columns:
        places = range(first, first + len(column.metrics))
        parts = [_best(rows, place, metric) for place, metric in zip(places, column.metrics, strict=True)]
        if all(parts):
            found.append(Finding(column.label, " ".join([*parts, _baseline(rows[0], column, places)]).strip()))
        first += len(column.metrics)
    return found


def _best(rows: list[GridRow], place: int, metric: str) -> str:
    """The best rows by one metric; nothing where none is."""
    winners = [row for row in rows if row.cells[place].best]
    if not winners:
        return ""
    cell = winners[0].cells[place]
    names = " and ".join(row.label for row in winners)
    best = f"{'Highest' if cell.better == 'higher' else 'Lowest'} {metric}: {names}, {number(cell.mean, cell.decimals)}"
    return f"{best}." if cell.lead is None else f"{best}, {lead_in_words(cell)}."


def _baseline(row: GridRow, column: GridColumn, places: range) -> str:
    cells = [row.cells[place] for place in places]
    if any(cell.mean is None for cell in cells):
        return ""
    numbers = [
        f"{metric} {number(cell.mean, cell.decimals)}" for metric, cell in zip(column.metrics, cells, strict=True)
    ]
    return f"{row.label}, the first row: {', '.join(numbers)}."

"""Loss terms that a training declares and that never moved it."""

import math
from collections.abc import Iterable, Iterator

from benchmark.specs import UncertaintyTerm
from benchmark.store import Result
from benchmark.tables.grid import Grid, GridRow, full_label

# What RAU is, before its weight, for a batch with right and wrong rows of which none is certain, or with wrong ones of
# which every one is: its gradient is then 0.
_AT_REST = math.log(2)
_NEARLY = 1e-3  # of an epoch's mean; one certain row in an epoch of 3,000 moves it by about 2e-4


def rau_was_idle(result: Result) -> bool:
    """Whether RAU joined a training and in no epoch had more than a trace of an effect, because next to no training row
    came below its threshold, or next to none stayed above.
    """
    places = [
        index for index, term in enumerate(result.run.loss) if isinstance(term, UncertaintyTerm) and term.term == "rau"
    ]
    epochs = result.training.epochs if result.training else []
    values = [value for epoch in epochs for place in places if (value := epoch.terms[place]) is not None]
    return bool(values) and all(abs(value - _AT_REST) < _NEARLY for value in values)


def without_effect(grid: Grid) -> str:
    """In which of a grid's rows, and under which of its columns where not under all, RAU had no effect; nothing where
    it had one everywhere.
    """
    return idle_in_words(
        (full_label(row, group[0]), column) for group in grid.groups for row in group for column in _idle(grid, row)
    )


def _idle(grid: Grid, row: GridRow) -> Iterator[str]:
    """The columns; one that is called nothing where it is all that have values."""
    found, known, end = [], 0, 0
    for column in grid.columns:
        cells, end = row.cells[end : end + len(column.metrics)], end + len(column.metrics)
        known += any(cell.values for cell in cells)
        if any(cell.rau_was_idle for cell in cells):
            found.append(column.label)
    yield from [""] if found and len(found) == known else found


def idle_in_words(where: Iterable[tuple[str, str]]) -> str:
    """That RAU had no effect in these rows under these columns ("" for all); nothing for none."""
    columns: dict[str, dict[str, None]] = {}
    for row, column in where:
        columns.setdefault(row, {}).setdefault(column)
    rows: dict[tuple[str, ...], list[str]] = {}
    for row, found in columns.items():
        rows.setdefault(tuple(filter(None, found)), []).append(row)
    places = [
        f"{', '.join(named)} ({', '.join(found)})" if found else ", ".join(named) for found, named in rows.items()
    ]
    why = "next to no training row was certain, or next to none uncertain"
    return f"RAU had no effect in {'; '.join(places)}: {why}." if places else ""

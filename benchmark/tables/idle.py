"""Loss terms that a training declares and that never moved it."""

import math
from collections.abc import Iterable

from benchmark.specs import UncertaintyTerm
from benchmark.store import Result
from benchmark.tables.grid import Grid

# What RAU is, before its weight, where no row of a batch is certain, or every one: its gradient is then 0.
_AT_REST = math.log(2)
_NEARLY = 1e-3  # of an epoch's mean; one certain row in an epoch of 3,000 moves it by about 2e-4


def rau_was_idle(result: Result) -> bool:
    """Whether a training declares RAU and in none of its epochs had it more than a trace of an effect, because next to
    no training row came below its threshold, or next to none stayed above.
    """
    places = [
        index for index, term in enumerate(result.run.loss) if isinstance(term, UncertaintyTerm) and term.term == "rau"
    ]
    if not places or result.training is None:
        return False
    values = [epoch.terms[place] for epoch in result.training.epochs for place in places]
    return all(value is None or abs(value - _AT_REST) < _NEARLY for value in values)


def without_effect(grid: Grid) -> str:
    """In which of a grid's rows, and under which columns, RAU had no effect; nothing where it had one everywhere."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in grid.every_row:
        ends = 0
        columns = []
        for column in grid.columns:
            cells, ends = row.cells[ends : ends + len(column.metrics)], ends + len(column.metrics)
            if any(cell.rau_was_idle for cell in cells):
                columns.append(column.label)
        if columns:
            found.setdefault(tuple(columns), []).append(row.label)
    return idle_in_words(f"{', '.join(rows)} ({', '.join(columns)})" for columns, rows in found.items())


def idle_in_words(where: Iterable[str]) -> str:
    """That RAU had no effect in these methods; nothing for none."""
    methods = ", ".join(where)
    why = "next to no training row was certain, or next to none uncertain"
    return f"RAU had no effect in {methods}: {why}." if methods else ""

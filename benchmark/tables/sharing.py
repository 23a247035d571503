"""A grid whose rows can be compared: every one over the same seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

from benchmark.declarations import Table
from benchmark.tables.building import GridBuilder
from benchmark.tables.grid import Grid, GridRow

_MOST_SETS = 1_000


@dataclass(frozen=True)
class SharedGrid:
    """The grid; ``rows``: those with a value for each of its seeds, and ``ensembles``: those made of just these seeds,
    so that their mean stands beside the others' means; both group by group. ``short``: the labels of those that have
    some of the values or other seeds.
    """

    grid: Grid
    rows: tuple[GridRow, ...]
    ensembles: tuple[GridRow, ...]
    short: tuple[str, ...]


def over_shared_seeds(builder: GridBuilder, name: str, table: Table) -> SharedGrid:
    """The grid of a table over seeds that its rows share, for means over other seeds would compare seeds, not methods.

    Where not all rows have the same seeds, those are taken that allow the most comparisons with the first row that has
    results, counted once a seed; of as many, those that leave the fewest rows out. So one row that is behind does not
    cost the others their seeds. Ensembles, which have one value for several seeds, do not restrict them.
    """
    grid = builder.build(name, table)
    partly = [row.has_values for row in grid.every_row]
    single = [
        set.intersection(*(set(cell.seeds) for cell in row.cells if cell.values))
        for row in grid.every_row
        if row.has_values and not row.is_ensemble
    ]
    shared = _most_compared(builder.seeds, single)
    if shared != builder.seeds:
        grid = builder.over(shared).build(name, table)
    rows: list[GridRow] = []
    ensembles: list[GridRow] = []
    short: list[str] = []
    for row, some in zip(grid.every_row, partly, strict=True):
        if shared and all(cell.seeds_behind == frozenset(shared) for cell in row.cells):
            (ensembles if row.is_ensemble else rows).append(row)
        elif some:
            short.append(row.label)
    return SharedGrid(grid=grid, rows=tuple(rows), ensembles=tuple(ensembles), short=tuple(short))


def _most_compared(asked: Sequence[int], rows: Sequence[set[int]]) -> tuple[int, ...]:
    """Of the asked seeds those of the most comparisons of the other rows with the first one, as sets of seeds.

    Rows that each lack other seeds share sets without end: of more than a thousand only the best so far are followed.
    """
    if not rows:
        return tuple(asked)

    def worth(taken: frozenset[int]) -> tuple[int, int, int, list[int]]:
        others = sum(taken <= row for row in rows[1:])
        return others * len(taken), others, len(taken), sorted(-seed for seed in taken)

    found = {frozenset(rows[0].intersection(asked))}  # what the first row shares with any of the others
    for row in rows[1:]:
        found |= {taken & row for taken in found}
        if len(found) > _MOST_SETS:
            found = set(nlargest(_MOST_SETS, found, key=worth))
    best = max(filter(None, found), key=worth, default=frozenset[int]())
    return tuple(seed for seed in asked if seed in best)

"""A grid whose rows can be compared: every one over the same seeds."""

from dataclasses import dataclass

from benchmark.declarations import Table
from benchmark.registry import calibrator_of
from benchmark.specs import DeepEnsemble
from benchmark.tables.building import GridBuilder
from benchmark.tables.grid import Grid, GridRow


@dataclass(frozen=True)
class SharedGrid:
    """The grid; ``rows``: those with all values, group by group; ``short``: the labels of those with some."""

    grid: Grid
    rows: tuple[GridRow, ...]
    short: tuple[str, ...]


def over_shared_seeds(builder: GridBuilder, name: str, table: Table) -> SharedGrid:
    """The grid of a table over those seeds that all its rows with results have, for means over other seeds would
    compare seeds, not methods.

    Ensembles, which have one value for several seeds, do not restrict them, and are short where the others have more.
    """
    grid = builder.build(name, table)
    methods = [row.method for group in table.rows for row in group]
    rows = [row for group in grid.groups for row in group]
    single = [
        set.intersection(*(set(cell.seeds) for cell in row.cells))
        for row, method in zip(rows, methods, strict=True)
        if _has_some(row) and not isinstance(calibrator_of(builder.registry, method), DeepEnsemble)
    ]
    shared = tuple(seed for seed in builder.seeds if all(seed in seeds for seeds in single))
    if shared != builder.seeds:
        grid = builder.over(shared).build(name, table)
        rows = [row for group in grid.groups for row in group]
    return SharedGrid(
        grid=grid,
        rows=tuple(row for row in rows if shared and all(len(cell.values) == len(shared) for cell in row.cells)),
        short=tuple(row.label for row in rows if _has_some(row) and any(cell.partial for cell in row.cells)),
    )


def _has_some(row: GridRow) -> bool:
    return any(cell.values for cell in row.cells)

"""A grid whose rows can be compared: every one over the same seeds."""

from dataclasses import dataclass

from benchmark.declarations import Table
from benchmark.registry import calibrator_of
from benchmark.specs import DeepEnsemble
from benchmark.tables.building import GridBuilder
from benchmark.tables.grid import Grid, GridRow


@dataclass(frozen=True)
class SharedGrid:
    """The grid; ``rows``: those with a value for each of its seeds, and ``ensembles``: those with fewer, made of just
    these seeds, so that their mean stands beside the others' means; both group by group. ``short``: the labels of those
    that have some of the values.
    """

    grid: Grid
    rows: tuple[GridRow, ...]
    ensembles: tuple[GridRow, ...]
    short: tuple[str, ...]


def over_shared_seeds(builder: GridBuilder, name: str, table: Table) -> SharedGrid:
    """The grid of a table over those seeds that all its rows with results have, for means over other seeds would
    compare seeds, not methods. Ensembles, which have one value for several seeds, do not restrict them.
    """
    grid = builder.build(name, table)
    members = [_members(builder, row.method) for group in table.rows for row in group]
    single = [
        set.intersection(*(set(cell.seeds) for cell in row.cells))
        for row, count in zip(_rows(grid), members, strict=True)
        if count == 1 and any(cell.values for cell in row.cells)
    ]
    shared = tuple(seed for seed in builder.seeds if all(seed in seeds for seeds in single))
    if shared != builder.seeds:
        grid = builder.over(shared).build(name, table)
    counts = [
        (row, count, {len(cell.values) for cell in row.cells}) for row, count in zip(_rows(grid), members, strict=True)
    ]
    rows = [row for row, _, values in counts if shared and values == {len(shared)}]
    ensembles = [row for row, count, values in counts if shared and values == {len(shared) / count} != {len(shared)}]
    return SharedGrid(
        grid=grid,
        rows=tuple(rows),
        ensembles=tuple(ensembles),
        short=tuple(row.label for row, _, values in counts if row not in [*rows, *ensembles] and values != {0}),
    )


def _rows(grid: Grid) -> list[GridRow]:
    return [row for group in grid.groups for row in group]


def _members(builder: GridBuilder, method: str) -> int:
    """Of how many runs a value of the method is made."""
    calibrator = calibrator_of(builder.registry, method)
    return calibrator.members if isinstance(calibrator, DeepEnsemble) else 1

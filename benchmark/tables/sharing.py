"""A grid whose rows can be compared: every one over the same seeds."""

from dataclasses import dataclass

from benchmark.declarations import Table
from benchmark.registry import calibrator_of
from benchmark.specs import DeepEnsemble
from benchmark.tables.building import GridBuilder
from benchmark.tables.grid import Cell, Grid, GridRow


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
    """The grid of a table over those seeds that all its rows with results have, for means over other seeds would
    compare seeds, not methods. Ensembles, which have one value for several seeds, do not restrict them.
    """
    grid = builder.build(name, table)
    calibrators = [_ensemble(builder, row.method) for group in table.rows for row in group]
    single = [
        set.intersection(*(set(cell.seeds) for cell in row.cells if cell.values))
        for row, ensemble in zip(_rows(grid), calibrators, strict=True)
        if ensemble is None and any(cell.values for cell in row.cells)
    ]
    shared = tuple(seed for seed in builder.seeds if all(seed in seeds for seeds in single))
    if shared != builder.seeds:
        grid = builder.over(shared).build(name, table)
    rows: list[GridRow] = []
    ensembles: list[GridRow] = []
    short: list[str] = []
    for row, ensemble in zip(_rows(grid), calibrators, strict=True):
        behind = {_seeds_behind(cell, ensemble) for cell in row.cells}
        if shared and behind == {frozenset(shared)}:
            (rows if ensemble is None else ensembles).append(row)
        elif behind != {frozenset()}:
            short.append(row.label)
    return SharedGrid(grid=grid, rows=tuple(rows), ensembles=tuple(ensembles), short=tuple(short))


def _rows(grid: Grid) -> list[GridRow]:
    return [row for group in grid.groups for row in group]


def _ensemble(builder: GridBuilder, method: str) -> DeepEnsemble | None:
    calibrator = calibrator_of(builder.registry, method)
    return calibrator if isinstance(calibrator, DeepEnsemble) else None


def _seeds_behind(cell: Cell, ensemble: DeepEnsemble | None) -> frozenset[int]:
    """The seeds whose runs the values of a cell are made of."""
    if ensemble is None:
        return frozenset(cell.seeds)
    return frozenset(seed for first in cell.seeds for seed in ensemble.seeds(first))

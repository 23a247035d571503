"""F1 against ECE, ours and the paper's, from the cells of a table."""

from dataclasses import dataclass

from benchmark.declarations import Table
from benchmark.registry import clean_columns
from benchmark.tables import Cell, Grid


@dataclass(frozen=True)
class Point:
    """One row of a table on one data set: percents, one a seed that has both; the paper's, where it has both."""

    key: str
    label: str
    f1: tuple[float, ...]
    ece: tuple[float, ...]
    seeds: tuple[int, ...]
    paper: tuple[float, float] | None  # F1, ECE


@dataclass(frozen=True)
class ScatterPanel:
    """The points of one data set, given by its role; the labels of rows without a result, and why."""

    dataset: str
    points: tuple[Point, ...]
    missing: tuple[str, ...]


def scatter_panels(grid: Grid, table: Table) -> tuple[ScatterPanel, ...]:
    """A panel for each data set that the table has both scores of, clean and over all labels; one without any result
    has no points.
    """
    panels = []
    for column in clean_columns(table, {"f1", "ece"}):
        assert column.dataset is not None, "these columns have a data set"
        points, missing = [], []
        for row in grid.every_row:
            f1, ece = (grid.cell(row.key, column.label, metric) for metric in ("f1", "ece"))
            assert f1 is not None, "the grid is that of the table"
            assert ece is not None, "the grid is that of the table"
            point = _point(row.key, row.label, f1, ece)
            if point.seeds:
                points.append(point)
            else:
                missing.append(f"{row.label} ({f1.why_missing or ece.why_missing})")
        panels.append(ScatterPanel(column.dataset, tuple(points), tuple(missing)))
    return tuple(panels)


def _point(key: str, label: str, f1: Cell, ece: Cell) -> Point:
    seeds = tuple(seed for seed in f1.seeds if seed in ece.seeds)
    paper = None if f1.paper is None or ece.paper is None else (f1.paper, ece.paper)
    ours_f1, ours_ece = (tuple(cell.values[cell.seeds.index(seed)] for seed in seeds) for cell in (f1, ece))
    return Point(key, label, ours_f1, ours_ece, seeds, paper)

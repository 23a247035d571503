"""A grid as the page shows it: every number of ours, the paper's, their difference, and how far it is from the first
row's, with what stands behind it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmark.declarations import Table
from benchmark.page.details import NO_RESULT, Detail, detail
from benchmark.render.notes import notes, notes_on_differences
from benchmark.render.text import TextCell, gap_text, interval_text, lines, number, spread_text
from benchmark.tables import Cell, GapRow, Grid, GridColumn, GridRow, differences, mark_best

WIDE = 10  # more cells in a row than these, and a printed table lies on its side


@dataclass(frozen=True)
class CellView:
    """One cell: four texts, the numbers that it is sorted by (None: missing), its detail."""

    ours: TextCell
    spread: str  # printed after ours, smaller
    paper: TextCell
    difference: TextCell
    gap: TextCell  # from the first row
    interval: str  # printed under it, smaller; in the first row its spread
    sort_by: dict[str, float | None]
    missing: str | None
    detail: Detail


@dataclass(frozen=True)
class RowView:
    """One row; ``full_label`` tells it from all others of its table, out of its group, too."""

    label: str
    full_label: str
    cells: tuple[CellView, ...]


@dataclass(frozen=True)
class MetricView:
    """One column: its metric's label, alone and with the group of columns, and whether higher or lower is better."""

    label: str
    full_label: str
    better: str


@dataclass(frozen=True)
class TableView:
    """One table."""

    name: str
    number: str
    caption: str
    note: str | None  # of the profile
    notes: tuple[str, ...]  # all that must be known to read ours
    notes_on_gaps: tuple[str, ...]  # and the differences from the first row
    columns: tuple[GridColumn, ...]
    metrics: tuple[MetricView, ...]
    groups: tuple[tuple[RowView, ...], ...]
    wide: bool
    spread: bool  # whether any number has a spread
    partial: bool  # whether seeds are missing anywhere
    has_gaps: bool  # whether any row is compared with another


def view_table(grid: Grid, table: Table, files: Mapping[str, str]) -> TableView:
    """The grid, ready for the template. ``files``: the file of each result by its run id."""
    metrics, full_labels = _metrics(grid), [_full_labels(grid, group) for group in grid.groups]
    per_group = table.best_in == "row_group"
    papers = _papers_best(grid, per_group)
    from_first = differences(grid, {row.key for row in grid.every_row}, per_group)
    return TableView(
        name=grid.name,
        number=grid.number,
        caption=grid.caption,
        note=grid.note,
        notes=(*([grid.note] if grid.note else []), *notes(grid)),
        notes_on_gaps=(*([grid.note] if grid.note else []), *notes_on_differences(from_first)),
        columns=grid.columns,
        metrics=metrics,
        groups=tuple(
            tuple(
                RowView(row.row.label, label, _cells(row, label, paper, metrics, grid.seeds, files))
                for row, label, paper in zip(group, labels, paper_group, strict=True)
            )
            for group, labels, paper_group in zip(from_first.groups, full_labels, papers, strict=True)
        ),
        wide=len(metrics) > WIDE,
        spread=any(cell.deviation is not None for cell in grid.cells),
        partial=any(cell.partial for cell in grid.cells),
        has_gaps=bool(from_first.gaps),
    )


def _metrics(grid: Grid) -> tuple[MetricView, ...]:
    labels = [(column.label, metric) for column in grid.columns for metric in column.metrics]
    better = [cell.better for cell in grid.groups[0][0].cells]
    return tuple(
        MetricView(metric, f"{column} {metric}", way) for (column, metric), way in zip(labels, better, strict=True)
    )


def _papers_best(grid: Grid, per_group: bool) -> tuple[tuple[GridRow, ...], ...]:
    """The rows with the paper's numbers as values, the best of them marked as ours are."""

    def papers(cell: Cell) -> Cell:
        return Cell(() if cell.paper is None else (cell.paper,), 1, cell.decimals, cell.better)

    groups = [[replace(row, cells=tuple(map(papers, row.cells))) for row in group] for group in grid.groups]
    return mark_best(groups, per_group)


def _full_labels(grid: Grid, group: tuple[GridRow, ...]) -> list[str]:
    """Labels that different rows of several groups have are told apart by their group's first."""
    rows_of = {label: {row.key for row in grid.every_row if row.label == label} for label in {r.label for r in group}}
    return [
        row.label if len(rows_of[row.label]) == 1 or row is group[0] else f"{group[0].label} {row.label}"
        for row in group
    ]


def _cells(
    row: GapRow,
    label: str,
    paper: GridRow,
    metrics: tuple[MetricView, ...],
    seeds: tuple[int, ...],
    files: Mapping[str, str],
) -> tuple[CellView, ...]:
    ours, papers, from_paper = (line.cells for line in lines(row.row, compare=True))
    views = []
    for position, (cell, metric) in enumerate(zip(row.row.cells, metrics, strict=True)):
        value, gap = replace(ours[position], text=number(cell.mean, cell.decimals)), row.gap(position)
        views.append(
            CellView(
                ours=value,
                spread=spread_text(cell),
                paper=replace(papers[position], bold=paper.cells[position].best),
                difference=from_paper[position],
                gap=TextCell(value.text) if gap is None else gap_text(gap),
                interval=spread_text(cell) if gap is None else interval_text(gap),
                sort_by={
                    "ours": cell.mean,
                    "paper": cell.paper,
                    "difference": cell.from_paper,
                    "gap": (None if cell.mean is None else 0.0) if gap is None else gap.estimate,
                },
                missing=(cell.why_missing or NO_RESULT) if cell.mean is None else None,
                detail=detail(
                    cell, f"{label}, {metric.full_label}", seeds, from_paper[position].text, files, gap, row.reference
                ),
            )
        )
    return tuple(views)

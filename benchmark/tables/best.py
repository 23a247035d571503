"""Which cells of a grid are best, and whether their lead is more than noise."""

from collections.abc import Iterable
from dataclasses import replace

from benchmark.significance import LEVEL, Difference, false_discoveries_controlled
from benchmark.tables.grid import Cell, GridRow, difference

Place = tuple[int, int]  # the row's id, the cell's position


def mark_best(groups: Iterable[Iterable[GridRow]], per_group: bool) -> tuple[tuple[GridRow, ...], ...]:
    """Mark the best cell of every column, over all rows or within each group, and leads that are within noise.

    Means are compared as they are printed, rounded: cells that print alike are best together. A missing cell never is,
    nor one whose temperature was not found, and a column in which only one cell has a value has no best. A lead is that
    of a single best cell over the runner-up; its p-value is adjusted for the number of leads in the table (false
    discovery rate). A lead by a measure that is resampled is marked as not tested where nothing pairs the two, or one
    is from before it was.
    """
    rows = [list(group) for group in groups]
    pools = rows if per_group else [[row for group in rows for row in group]]
    best: set[Place] = set()
    leads: dict[Place, Difference] = {}
    runners_up: dict[Place, str] = {}
    untested: set[Place] = set()
    for pool in pools:
        for column in range(len(pool[0].cells)):
            winners, runner_up = _best_rows(pool, column)
            best |= {(id(row), column) for row in winners}
            if len(winners) == 1 and runner_up is not None:
                place, ahead, behind = (id(winners[0]), column), winners[0].cells[column], runner_up.cells[column]
                lead = _lead(ahead, behind)
                if lead is not None:
                    leads[place] = lead
                    runners_up[place] = runner_up.label
                elif ahead.resample is not None and behind.resample is not None:
                    untested.add(place)
    adjusted = false_discoveries_controlled([lead.p_value for lead in leads.values()])
    noisy = {place for place, p_value in zip(leads, adjusted, strict=True) if p_value >= LEVEL}

    def marked(row: GridRow, column: int, cell: Cell) -> Cell:
        place = (id(row), column)
        return replace(
            cell,
            best=place in best,
            lead=leads.get(place),
            runner_up=runners_up.get(place),
            lead_within_noise=place in noisy,
            lead_untested=place in untested,
        )

    return tuple(
        tuple(
            replace(row, cells=tuple(marked(row, column, cell) for column, cell in enumerate(row.cells)))
            for row in group
        )
        for group in rows
    )


def _lead(winner: Cell, runner_up: Cell) -> Difference | None:
    """The difference over the seeds that both have. Where there the winner is not ahead, its other seeds made it the
    best, and nothing tells the two apart.
    """
    lead = difference(winner, runner_up)
    if lead is None or (lead.estimate > 0) == (winner.better == "higher"):
        return lead
    return replace(lead, p_value=1.0)


def _best_rows(pool: list[GridRow], column: int) -> tuple[list[GridRow], GridRow | None]:
    """The best rows, and the best of the others."""
    cells = {id(row): row.cells[column] for row in pool}
    means = {of: cell.mean for of, cell in cells.items() if cell.mean is not None and not cell.without_optimum}
    if len(means) < 2:
        return [], None
    decimals = pool[0].cells[column].decimals
    sign = -1 if pool[0].cells[column].better == "higher" else 1
    found = sorted((row for row in pool if id(row) in means), key=lambda row: sign * means[id(row)])
    wanted = round(means[id(found[0])], decimals)
    winners = [row for row in found if round(means[id(row)], decimals) == wanted]
    return winners, found[len(winners)] if len(winners) < len(found) else None

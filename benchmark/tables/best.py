"""Which cells of a grid are best, and whether their lead is more than noise."""

from collections.abc import Iterable
from dataclasses import replace

from benchmark.significance import LEVEL, false_discoveries_controlled
from benchmark.tables.grid import Cell, GridRow, Lead, difference, shared_seeds, why_untested

Place = tuple[int, str, int]  # the number of the pool, the row's key, the cell's position


def mark_best(groups: Iterable[Iterable[GridRow]], per_group: bool) -> tuple[tuple[GridRow, ...], ...]:
    """Mark the best cell of every column, over all rows or within each group, and leads that are within noise.

    Means are compared as they are printed, rounded: cells that print alike are best together. A missing cell never is,
    nor one whose temperature was not found, and a column in which only one cell has a value has no best. A row that
    stands in several groups is no rival of itself. A lead is that of a single best cell over the runner-up; its p-value
    is adjusted for the number of leads in the table (false discovery rate). A lead by a measure that is resampled is
    marked as not tested where nothing pairs the two, one is from before it was, or over the seeds that both have there
    is none.
    """
    rows = [list(group) for group in groups]
    pools = rows if per_group else [[row for group in rows for row in group]]
    best: set[Place] = set()
    leads: dict[Place, Lead] = {}
    untested: dict[Place, str] = {}
    for number, pool in enumerate(pools):
        rivals = list({row.key: row for row in pool}.values())
        for column in range(len(pool[0].cells)):
            winners, runner_up = _best_rows(rivals, column)
            best |= {(number, row.key, column) for row in winners}
            if len(winners) == 1 and runner_up is not None:
                ahead, behind = winners[0].cells[column], runner_up.cells[column]
                place, lead = (number, winners[0].key, column), _lead(ahead, behind, runner_up.label)
                if isinstance(lead, Lead):
                    leads[place] = lead
                elif ahead.resample is not None and behind.resample is not None:
                    untested[place] = lead
    adjusted = false_discoveries_controlled([lead.difference.p_value for lead in leads.values()])
    for (place, lead), p_value in zip(list(leads.items()), adjusted, strict=True):
        leads[place] = replace(lead, within_noise=bool(p_value >= LEVEL))

    def marked(number: int, row: GridRow) -> GridRow:
        places = [(number, row.key, column) for column in range(len(row.cells))]
        return replace(
            row,
            cells=tuple(
                replace(cell, best=place in best, lead=leads.get(place), lead_untested=untested.get(place, ""))
                for cell, place in zip(row.cells, places, strict=True)
            ),
        )

    return tuple(tuple(marked(number if per_group else 0, row) for row in group) for number, group in enumerate(rows))


def _lead(winner: Cell, runner_up: Cell, label: str) -> Lead | str:
    """The lead over the seeds that both have, or why it is not tested. Where there the winner is not ahead, its other
    seeds made it the best, and nothing tells the two apart.
    """
    found = difference(winner, runner_up)
    if found is None:
        return why_untested(winner, runner_up)
    if not (found.estimate > 0 if winner.better == "higher" else found.estimate < 0):
        return "over the seeds that both have it is none"
    return Lead(label, found, shared_seeds(winner, runner_up), of_all=winner.seeds == runner_up.seeds)


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

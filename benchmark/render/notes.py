"""What must be known to read a table's numbers, in sentences."""

from collections.abc import Iterable, Sequence
from itertools import compress

from benchmark.render.text import MISSING, NOT_TESTED, PLUS_MINUS, WITHIN_NOISE, WITHOUT_OPTIMUM, WORSE
from benchmark.tables import (
    ONE_SEED,
    Cell,
    DifferenceTable,
    Grid,
    in_a_row,
    seeds_in_words,
    trained_in,
    without_effect,
    without_rows,
)


def notes(grid: Grid) -> list[str]:
    """Of a table's own numbers."""
    leads = [cell.lead for cell in grid.cells if cell.lead is not None]
    tested = _measures(grid, [[cell.lead is not None for cell in row.cells] for row in grid.every_row])
    parts = [seeds_in_words(grid.seeds, f"Mean {PLUS_MINUS} sample standard deviation over"), *_ensembles(grid)]
    parts += ["Best as printed in bold.", _trained(grid), without_effect(grid)]
    if any(lead.within_noise for lead in leads):
        parts.append(
            f"{WITHIN_NOISE} The lead over the runner-up is within noise ({_bootstrap(lead.seeds for lead in leads)}, "
            f"5 % false discoveries over the {_counted(len(leads), 'lead')} tested here: {tested}, ties left out)."
        )
    if untested := dict.fromkeys(cell.lead_untested for cell in grid.cells if cell.lead_untested):
        parts.append(f"{NOT_TESTED} The lead over the runner-up is not tested: {', or '.join(untested)}.")
    if any(not lead.of_all for lead in leads):
        parts.append("Leads are tested over the seeds that both have.")
    parts += [_one_seed(lead.seeds for lead in leads), _absent(grid)]
    if any(cell.without_optimum for cell in grid.cells):
        parts.append(
            f"{WITHOUT_OPTIMUM} Never best by what a temperature moves: none was found, its search ended at a bound."
        )
    parts.append(_missing([cell.why_missing for cell in grid.cells if cell.mean is None], len(grid.cells), "cells"))
    parts.append("(n=...) fewer values than seeds." if any(cell.partial for cell in grid.cells) else "")
    return list(filter(None, parts))


def notes_on_differences(table: DifferenceTable, compare: bool = False) -> list[str]:
    """Of how its rows differ from the reference; with ``compare`` beside the paper's."""
    grid, gaps = table.grid, table.gaps
    if not gaps:
        return ["No row has another one to be compared with."]
    tested = [gap.seeds for gap in gaps if gap.tested is not None]
    parts = [_references(table), seeds_in_words(grid.seeds, "Means over"), *_ensembles(grid)]
    if tested:
        measures = _measures(
            grid, [[gap.tested is not None for gap in row.gaps] for row in table.every_row if row.gaps]
        )
        parts.append(
            f"In brackets 95 % intervals ({_bootstrap(tested)}). Bold: better beyond noise, {WORSE} worse beyond "
            f"noise, at 5 % false discoveries over the {_counted(len(tested), 'difference')} tested here ({measures}, "
            "ties left out). The intervals are not corrected for their number: one may leave out 0 without a mark."
        )
    if compare:
        parts.append("Below ours the paper's values and differences.")
    parts += [_trained(grid), without_effect(grid), _one_seed(tested), _absent(grid)]
    if untested := dict.fromkeys(gap.untested for gap in gaps if gap.untested):
        parts.append(f"Not tested, so without an interval: {', or '.join(untested)}.")
    if any(gap.without_optimum for gap in gaps):
        parts.append(
            f"{WITHOUT_OPTIMUM} Not tested: no temperature was found for this row or the one that it is compared with, "
            "its search ended at a bound."
        )
    if table.left_out:
        parts.append(f"Left out, for want of such a row in their group: {', '.join(table.left_out)}.")
    parts.append(_missing([gap.missing for gap in gaps if gap.estimate is None], len(gaps), "differences"))
    if any(gap.partial for gap in gaps) or any(cell.partial for cell in _shown_as_they_are(table)):
        parts.append("(n=...) fewer values than seeds; differences are over the seeds that both have.")
    return list(filter(None, parts))


def _references(table: DifferenceTable) -> str:
    spread = any(cell.deviation is not None for cell in _shown_as_they_are(table))
    whose = f"whose own values{f' ({PLUS_MINUS} sample standard deviation)' if spread else ''} are shown"
    own_group = ", each in its own group" if table.per_group else ""
    return f"Differences from {in_a_row(table.reference_labels)}{own_group}, {whose}."


def _shown_as_they_are(table: DifferenceTable) -> list[Cell]:
    return [cell for row in table.references for cell in row.cells]


def _bootstrap(seeds: Iterable[Sequence[int]]) -> str:
    several = any(len(some) > 1 for some in seeds)
    return f"paired bootstrap over test rows{' and the spread over seeds' if several else ''}"


def _one_seed(seeds: Iterable[Sequence[int]]) -> str:
    return ONE_SEED if any(len(some) == 1 for some in seeds) else ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def _ensembles(grid: Grid) -> list[str]:
    sizes = sorted({cell.trainings for cell in grid.cells if cell.values and cell.trainings > 1})
    return [f"Each value of an ensemble is of {size} seeds: its own and the {size - 1} that follow." for size in sizes]


def _absent(grid: Grid) -> str:
    return without_rows(max((cell.labels_without_rows for cell in grid.cells), default=0))


def _missing(reasons: Sequence[str | None], of: int, what: str) -> str:
    if not reasons:
        return ""
    why = ", ".join(dict.fromkeys(reason or "no result" for reason in reasons))
    return f"{MISSING} missing: {len(reasons)} of {of} {what} ({why})."


def _measures(grid: Grid, tested: Iterable[Sequence[bool]]) -> str:
    """By which measures something is tested, from a row of marks a row of the table."""
    labels = [label for column in grid.columns for label in column.metrics]
    return in_a_row(dict.fromkeys(compress(labels, map(any, zip(*tested, strict=True)))))


def _trained(grid: Grid) -> str:
    """That a table has trainings in several precisions, and which columns where each has one."""
    if len(grid.precisions) < 2 or any(len(column.precisions) > 1 for column in grid.columns):
        return trained_in(grid.precisions)
    parts = []
    for precision in grid.precisions:
        labels = [column.label for column in grid.columns if column.precisions == (precision,)]
        parts.append(f"{precision} ({', '.join(labels)})")
    return f"Trained in {' and in '.join(parts)}."

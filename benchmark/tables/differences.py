"""A table's rows less one of them: how far apart, how surely, for better or worse."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from benchmark.significance import LEVEL, Difference, false_discoveries_controlled
from benchmark.tables.grid import Cell, Grid, GridRow, difference, full_label, shared_seeds, why_untested

Verdict = Literal["better", "worse", "within noise", "not tested"]


@dataclass(frozen=True)
class Gap:
    """A cell less the reference's of the same column. ``estimate``: of the unrounded means over ``seeds``, those that
    both have; None where there are none. ``p_value``: of ``tested``, adjusted for all gaps of the table. ``paper``: the
    paper's gap.
    """

    cell: Cell
    estimate: float | None
    missing: str  # why there is none
    seeds: tuple[int, ...]
    tested: Difference | None
    untested: str  # why not; nothing where no temperature was found, or the two are the same on every resample
    without_optimum: bool  # whether a temperature behind it was not found; never tested
    paper: float | None
    p_value: float | None = None

    @property
    def partial(self) -> bool:
        """Whether it is of some but not all of the expected seeds."""
        return 0 < len(self.seeds) < self.cell.expected

    @property
    def verdict(self) -> Verdict:
        """Whether it is more than noise, and for better or worse."""
        if self.tested is None or self.p_value is None:
            return "not tested"
        if self.p_value >= LEVEL:
            return "within noise"
        return "better" if (self.tested.estimate > 0) == (self.cell.better == "higher") else "worse"


@dataclass(frozen=True)
class GapRow:
    """A row, and how it differs from its reference; no gaps for the reference itself."""

    row: GridRow
    gaps: tuple[Gap, ...] = ()

    def gap(self, position: int) -> Gap | None:
        """That of the row's cell there; None in the reference."""
        return self.gaps[position] if self.gaps else None


@dataclass(frozen=True)
class DifferenceTable:
    """``references``: the labels of the rows that the others are compared with, one, or one a group."""

    grid: Grid
    references: tuple[str, ...]
    groups: tuple[tuple[GapRow, ...], ...]

    @property
    def every_row(self) -> tuple[GapRow, ...]:
        """The rows, whatever group they are in."""
        return tuple(row for group in self.groups for row in group)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """All of them, row by row."""
        return tuple(gap for row in self.every_row for gap in row.gaps)


def differences(grid: Grid, references: Collection[str], per_group: bool) -> DifferenceTable:
    """Every row less the first one whose key is among ``references``, with ``per_group`` the first of its own group.
    Groups without one are left out.

    A gap that is tested has an interval and a p-value by a paired bootstrap over test rows and seeds; the p-values are
    adjusted for their number in the table (false discovery rate), the intervals are not.
    """
    labels, groups = [], []
    for pool in [[group] for group in grid.groups] if per_group else [grid.groups]:
        rows = {row.key: row for group in pool for row in group}
        base = next((row for key, row in rows.items() if key in references), None)
        if base is None:
            continue
        labels.append(full_label(base, pool[0][0]))
        groups += [[_less(row, base) for row in group] for group in pool]
    tested = [gap.tested.p_value for group in groups for row in group for gap in row.gaps if gap.tested is not None]
    adjusted = iter(false_discoveries_controlled(tested))

    def judged(gap: Gap) -> Gap:
        return replace(gap, p_value=float(next(adjusted))) if gap.tested is not None else gap

    judged_groups = tuple(tuple(replace(row, gaps=tuple(map(judged, row.gaps))) for row in group) for group in groups)
    return DifferenceTable(grid, tuple(labels), judged_groups)


def _less(row: GridRow, base: GridRow) -> GapRow:
    if row.key == base.key:
        return GapRow(row)
    return GapRow(row, tuple(_gap(cell, other) for cell, other in zip(row.cells, base.cells, strict=True)))


def _gap(cell: Cell, base: Cell) -> Gap:
    estimate, seeds = _estimate(cell, base)
    unfound = cell.without_optimum or base.without_optimum
    found = None if unfound else difference(cell, base)
    same = found is not None and found.standard_error == 0 and found.estimate == 0
    tested = None if same else found
    return Gap(
        cell=cell,
        estimate=estimate if found is None else found.estimate,
        missing="" if estimate is not None else cell.why_missing or base.why_missing or why_untested(cell, base),
        seeds=seeds,
        tested=tested,
        untested="" if estimate is None or unfound or found is not None else _why_untested(cell, base),
        without_optimum=unfound,
        paper=None if cell.paper is None or base.paper is None else cell.paper - base.paper,
    )


def _estimate(cell: Cell, base: Cell) -> tuple[float | None, tuple[int, ...]]:
    """Over the seeds that both have. An ensemble, whose one value is of several seeds, is compared with the mean over
    all that the other has.
    """
    if cell.mean is None or base.mean is None:
        return None, ()
    if cell.trainings != base.trainings:
        return cell.mean - base.mean, max(cell.seeds, base.seeds, key=len)
    shared = shared_seeds(cell, base)
    if not shared:
        return None, ()
    ours, theirs = ([one.values[one.seeds.index(seed)] for seed in shared] for one in (cell, base))
    return fmean(ours) - fmean(theirs), shared


def _why_untested(cell: Cell, base: Cell) -> str:
    if cell.resample is None:
        return "this measure is not resampled"
    return why_untested(cell, base)

"""A table's rows less one of them: how far apart, how surely, for better or worse."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from benchmark.significance import LEVEL, Difference, false_discoveries_controlled
from benchmark.tables.grid import (
    Cell,
    Grid,
    GridRow,
    difference,
    full_label,
    shared_seeds,
    shared_values,
    why_untested,
)

Verdict = Literal["better", "worse", "within noise", "not tested"]


@dataclass(frozen=True)
class Gap:
    """A cell less the reference's of the same column. ``estimate``: of the unrounded means over ``seeds``, those that
    both have (of an ensemble and a single method all of either); None where there is nothing to subtract. ``p_value``:
    of ``tested``, adjusted for all gaps of the table. ``paper``: the paper's gap.
    """

    cell: Cell
    estimate: float | None
    missing: str  # why there is none
    seeds: tuple[int, ...]
    tested: Difference | None
    untested: str  # why not, but for an unfound temperature; nothing where the two are the same on every resample
    without_optimum: bool  # whether of the cell or the reference a temperature was not found; then it is not tested
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
    """A row, the label of its reference, and how it differs from that; no gaps for the reference itself."""

    row: GridRow
    reference: str
    gaps: tuple[Gap, ...] = ()

    def gap(self, position: int) -> Gap | None:
        """That of the row's cell there; None in the reference."""
        return self.gaps[position] if self.gaps else None


@dataclass(frozen=True)
class DifferenceTable:
    """``references``: the rows that the others are compared with, one, or with ``per_group`` one a group.
    ``left_out``: the labels of the rows of groups that have none.
    """

    grid: Grid
    per_group: bool
    references: tuple[GridRow, ...]
    groups: tuple[tuple[GapRow, ...], ...]
    left_out: tuple[str, ...]

    @property
    def every_row(self) -> tuple[GapRow, ...]:
        """The rows, whatever group they are in."""
        return tuple(row for group in self.groups for row in group)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """All of them, row by row."""
        return tuple(gap for row in self.every_row for gap in row.gaps)

    @property
    def reference_labels(self) -> tuple[str, ...]:
        """Those of the references, each once."""
        return tuple(dict.fromkeys(row.reference for row in self.every_row))


def differences(grid: Grid, references: Collection[str], per_group: bool) -> DifferenceTable:
    """Every row less the first one whose key is among ``references``, with ``per_group`` the first of its own group.
    Groups without one are left out.

    A gap that is tested has an interval and a p-value by a paired bootstrap over test rows and seeds; the p-values are
    adjusted for their number in the table (false discovery rate), the intervals are not.
    """
    found, groups, left_out = [], [], []
    for pool in [[group] for group in grid.groups] if per_group else [grid.groups]:
        rows = [(row, full_label(row, group[0])) for group in pool for row in group]
        base, label = next((found for found in rows if found[0].key in references), (None, ""))
        if base is None:
            left_out += [label for _, label in rows]
            continue
        found.append(base)
        groups += [[_less(row, base, label) for row in group] for group in pool]
    gaps = [gap for group in groups for row in group for gap in row.gaps]
    adjusted = iter(false_discoveries_controlled([gap.tested.p_value for gap in gaps if gap.tested is not None]))

    def judged(gap: Gap) -> Gap:
        return replace(gap, p_value=float(next(adjusted))) if gap.tested is not None else gap

    return DifferenceTable(
        grid=grid,
        per_group=per_group,
        references=tuple(found),
        groups=tuple(tuple(replace(row, gaps=tuple(map(judged, row.gaps))) for row in group) for group in groups),
        left_out=tuple(left_out),
    )


def _less(row: GridRow, base: GridRow, label: str) -> GapRow:
    if row.key == base.key:
        return GapRow(row, label)
    return GapRow(row, label, tuple(_gap(cell, other) for cell, other in zip(row.cells, base.cells, strict=True)))


def _gap(cell: Cell, base: Cell) -> Gap:
    estimate, seeds = _estimate(cell, base)
    unfound = cell.without_optimum or base.without_optimum
    found = None if unfound else difference(cell, base)
    same = found is not None and found.standard_error == 0 and found.estimate == 0
    return Gap(
        cell=cell,
        estimate=estimate if found is None else found.estimate,
        missing=_why_missing(cell, base) if estimate is None else "",
        seeds=seeds,
        tested=None if same else found,
        untested=_why_untested(cell, base) if estimate is not None and found is None and not unfound else "",
        without_optimum=unfound,
        paper=None if cell.paper is None or base.paper is None else cell.paper - base.paper,
    )


def _estimate(cell: Cell, base: Cell) -> tuple[float | None, tuple[int, ...]]:
    if cell.mean is None or base.mean is None:
        return None, ()
    if cell.trainings != base.trainings:
        return cell.mean - base.mean, max(cell.seeds, base.seeds, key=len)
    ours, theirs = shared_values(cell, base)
    return (fmean(ours) - fmean(theirs) if ours else None), shared_seeds(cell, base)


def _why_missing(cell: Cell, base: Cell) -> str:
    without = [one for one in (cell, base) if one.mean is None]
    return (without[0].why_missing or "no result") if without else why_untested(cell, base)


def _why_untested(cell: Cell, base: Cell) -> str:
    return "this measure is not resampled" if cell.resample is None else why_untested(cell, base)

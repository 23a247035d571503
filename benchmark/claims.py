"""Do the paper's claims hold in the results at hand? One verdict each, with our number beside the paper's."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from benchmark.declarations import Claim, Comparison, Tolerance
from benchmark.tables import Cell, Grid, GridBuilder, difference, full_label, shared_seeds, why_untested

Verdict = Literal["reproduced", "direction only", "not reproduced", "cannot be told"]
Outcome = Literal["wrong", "missing", "noise", "right"]  # of several, the first one decides

OF_TESTED: dict[Verdict, str] = {
    "cannot be told": "cannot be told (within noise)"
}  # the only reason that a tested claim is left open


Item = TypeVar("Item")


@dataclass(frozen=True)
class Judgement:
    """A claim and what became of it. ``ours``: the difference between the row and the other one that decides,
    of the unrounded means; ``interval``: its 95 % interval; ``paper``: the paper's difference between the same two,
    where ours is missing that which would decide there.
    """

    name: str
    says: str
    place: str
    verdict: Verdict
    why: str
    ours: float | None = None
    interval: tuple[float, float] | None = None
    paper: float | None = None
    tested: bool = True  # False where the verdict is left open because runs are missing
    seeds: tuple[int, ...] = ()  # that both rows have
    fewest_seeds: int = 0  # of the comparisons that could be made
    mixed: tuple[str, ...] = ()  # the precisions of the trainings of one comparison, where they are several
    idle: tuple[tuple[str, str], ...] = ()  # rows of any comparison in which RAU had no effect, and under which column


@dataclass(frozen=True)
class _Compared:
    """One comparison: its outcome and the difference to the row that decides it, the sign being that of row - other."""

    outcome: Outcome
    margin: float  # how far the row is on the claimed side, negative on the other one; where it is missing, the paper's
    ours: float | None = None
    interval: tuple[float, float] | None = None
    paper: float | None = None
    text: str = ""
    seeds: tuple[int, ...] = ()
    precisions: tuple[str, ...] = ()  # of the trainings of both
    idle: tuple[tuple[str, str], ...] = ()  # rows, by their labels, in which RAU had no effect, and the column


def judge_all(builder: GridBuilder) -> list[Judgement]:
    """A verdict on each claim of the registry, from the results that the builder knows."""
    registry = builder.registry
    grids = {
        table: builder.build(table, registry.tables[table])
        for table in dict.fromkeys(claim.table for claim in registry.claims.values())
    }
    return [judge(name, claim, grids[claim.table], registry.tolerance) for name, claim in registry.claims.items()]


def tested_first(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The claims that could be tested, then those whose runs are missing, each in their order."""
    return sorted(judgements, key=lambda judgement: not judgement.tested)


def counted(judgements: Iterable[Judgement]) -> dict[Verdict, int]:
    """How many of the claims that could be tested have each verdict."""
    verdicts = [judgement.verdict for judgement in judgements if judgement.tested]
    return {verdict: verdicts.count(verdict) for verdict in get_args(Verdict)}


def size_rule(tolerance: Tolerance) -> str:
    """When a size counts as the paper's, in words."""
    share = f"{100 * tolerance.share:g} % of the paper's"
    points = f"{tolerance.points:g} point{'' if tolerance.points == 1 else 's'}"
    return f"ours is off by at most {share} or by {points}, or the paper's lies in our interval"


def judge(name: str, claim: Claim, grid: Grid, tolerance: Tolerance) -> Judgement:
    """The verdict on one claim from the grid of its table.

    *Not reproduced*: some comparison comes out the other way, beyond noise. *Cannot be told*: runs are missing, or a
    difference is within noise (95 % interval of the paired bootstrap, not corrected for the number of claims).
    *Direction only*: every difference has the claimed sign, but its size is neither within the tolerance of the
    paper's nor is the paper's inside the interval. *Reproduced*: otherwise.
    """
    compared = [_compare(claim, comparison, grid) for comparison in claim.comparisons]
    decisive = min(compared, key=_strength)
    verdict, why = _verdict(claim, decisive, compared, tolerance)
    return Judgement(
        name=name,
        says=claim.says,
        place=claim.place,
        verdict=verdict,
        why=why,
        ours=decisive.ours,
        interval=decisive.interval,
        paper=decisive.paper,
        tested=decisive.outcome != "missing",
        seeds=decisive.seeds,
        fewest_seeds=min((len(item.seeds) for item in compared if item.seeds), default=0),
        mixed=next((item.precisions for item in compared if len(item.precisions) > 1), ()),
        idle=tuple(dict.fromkeys(place for item in compared for place in item.idle)),
    )


def _verdict(claim: Claim, decisive: _Compared, compared: list[_Compared], tolerance: Tolerance) -> tuple[Verdict, str]:
    count = sum(item.outcome == decisive.outcome for item in compared)
    of_all = f" ({count} of {len(compared)} comparisons)" if len(compared) > 1 else ""
    if decisive.outcome == "missing":
        several = f"{count} of {len(compared)} comparisons, among them " if len(compared) > 1 else ""
        return "cannot be told", f"missing: {several}{decisive.text}"
    if decisive.outcome == "wrong":
        return "not reproduced", f"{decisive.text} comes out the other way{of_all}"
    if decisive.outcome == "noise":
        return "cannot be told", f"{decisive.text} is within noise{of_all}"
    if claim.by is None or decisive.ours is None or _size_fits(claim.by, decisive.ours, decisive.interval, tolerance):
        return "reproduced", decisive.text
    return "direction only", f"{decisive.text}, by another size"


def _size_fits(by: float, ours: float, interval: tuple[float, float] | None, tolerance: Tolerance) -> bool:
    if abs(abs(ours) - by) <= max(tolerance.share * by, tolerance.points):
        return True
    low, high = sorted(abs(end) for end in interval or (ours, ours))
    return low <= by <= high


def _compare(claim: Claim, comparison: Comparison, grid: Grid) -> _Compared:
    row = grid.cell(comparison.row, comparison.column, comparison.metric)
    labels = {row.key: full_label(row, group[0]) for group in grid.groups for row in group}
    cell_name = f"{comparison.column} {comparison.metric.upper()}"
    text = f"{cell_name}: {labels.get(comparison.row, comparison.row)}"
    others = {key: grid.cell(key, comparison.column, comparison.metric) for key in comparison.against}
    if row is None or not _has_value(row):
        found = _missing(text, row)
    else:
        against = [_against(claim, row, cell, text, labels.get(key, key)) for key, cell in others.items()]
        found = _deciding(claim, against, _strength if claim.holds != "not_best" else _strength_for)
    cells = {comparison.row: row, **others}
    idle = tuple((labels[key], comparison.column) for key, cell in cells.items() if cell and cell.rau_was_idle)
    found = replace(found, idle=idle)
    paper = found.paper if found.paper is not None else _paper(claim, row, list(others.values()))
    if found.outcome == "missing" and row is not None and paper is not None:
        return replace(found, paper=paper, margin=_side(claim, row) * paper)
    return replace(found, paper=paper)


def _against(claim: Claim, row: Cell, other: Cell | None, text: str, label: str) -> _Compared:
    both = f"{text} against {label}"
    if other is None or not _has_value(other):
        return _missing(both, other)
    found = difference(row, other)
    if found is None:
        return _Compared("missing", 0.0, text=f"{both} ({why_untested(row, other)})")
    margin = _side(claim, row) * found.estimate
    outcome: Outcome = "noise" if found.within_noise else "right" if margin > 0 else "wrong"
    paper = None if row.paper is None or other.paper is None else row.paper - other.paper
    seeds = shared_seeds(row, other)
    precisions = tuple(sorted({*row.precisions, *other.precisions}))
    return _Compared(outcome, margin, found.estimate, (found.low, found.high), paper, both, seeds, precisions)


def _has_value(cell: Cell) -> bool:
    """Whether there is a result to judge by: where no temperature was found, the numbers are those of none."""
    return cell.mean is not None and not cell.without_optimum


def _missing(text: str, cell: Cell | None) -> _Compared:
    why = "not in this table" if cell is None else cell.why_missing or "no result"
    if cell is not None and cell.without_optimum:
        why = "no temperature was found"
    return _Compared("missing", 0.0, text=f"{text} ({why})")


def _strength(item: _Compared) -> tuple[int, float]:
    return get_args(Outcome).index(item.outcome), item.margin


def _strength_for(item: _Compared) -> tuple[int, float]:
    """Where one row ahead is enough, one that is missing leaves more open than one within noise."""
    order: tuple[Outcome, ...] = ("wrong", "noise", "missing", "right")
    return order.index(item.outcome), item.margin


def _side(claim: Claim, row: Cell) -> int:
    """The sign that the difference row - other has where the claim holds."""
    better = 1 if row.better == "higher" else -1
    return better if claim.holds == "best" else -better


def _deciding(claim: Claim, items: Iterable[Item], strength: Callable[[Item], Any]) -> Item:
    """The comparison that says most against the claim; for "not best", where one row ahead is enough, most for it."""
    return max(items, key=strength) if claim.holds == "not_best" else min(items, key=strength)


def _paper(claim: Claim, row: Cell | None, others: list[Cell | None]) -> float | None:
    """The paper's difference where ours is missing: to the row that decides there."""
    numbers = [cell.paper for cell in others if cell is not None and cell.paper is not None]
    if row is None or row.paper is None or len(numbers) < len(others):
        return None
    side, printed = _side(claim, row), row.paper
    return _deciding(claim, [printed - number for number in numbers], lambda gap: side * gap)

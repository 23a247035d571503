"""Which method to use on a data set: the best calibrated one that loses no F1, in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmark.declarations import Metric, Table, TableColumn
from benchmark.registry import Subject, clean_columns
from benchmark.render.text import number, signed
from benchmark.significance import Difference
from benchmark.tables import Cell, GridBuilder, GridRow, at_shared_seeds, difference

# By these a reader may want to decide instead; the answer is said to differ where it does.
OTHER_MEASURES = ("top_label_ece", "adaptive_ece", "brier", "nll", "aurc")
_DECIDING = ("f1", "ece")
_FEW_ROWS = 200


@dataclass(frozen=True)
class Recommendation:
    """The advice for one data set: its label, the label of the recommended method, and why, sentence by sentence."""

    dataset: str
    method: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """All in one paragraph."""
        return " ".join(self.sentences)


@dataclass(frozen=True)
class _Candidate:
    """A method beside the baseline: what it gains or loses against it."""

    row: GridRow
    f1: Cell
    ece: Cell
    f1_gain: Difference
    ece_gain: Difference

    @property
    def loses_f1(self) -> bool:
        return self.f1_gain.estimate < 0 and not self.f1_gain.within_noise


def recommend(builder: GridBuilder, table: Table) -> list[Recommendation]:
    """The advice for every clean data set in a table whose rows are methods on the base encoder, the first of them the
    baseline.

    Recommended is the method with the lowest ECE of those whose F1 is not lower than the baseline's beyond noise
    (paired bootstrap, 95 %). Where its ECE is not lower than the baseline's beyond noise, that is said. A data set for
    which fewer than two methods have results is left out.
    """
    found = []
    for column in clean_columns(table, set()):
        assert column.dataset is not None, "a clean column looks at a data set"
        advice = _advise(builder, table, column.dataset)
        if advice is not None:
            found.append(advice)
    return found


def first_advice(builder: GridBuilder, tables: Iterable[Table]) -> list[Recommendation]:
    """The advice from the first table that gives any."""
    return next((found for table in tables if (found := recommend(builder, table))), [])


def _advise(builder: GridBuilder, table: Table, dataset: str) -> Recommendation | None:
    rows = tuple(tuple(row for row in group if row.encoder == "base") for group in table.rows)
    label = builder.registry.datasets[builder.profile.datasets[dataset]].label
    others = tuple(name for name in OTHER_MEASURES if name in builder.registry.metrics)
    column = TableColumn(label=label, dataset=dataset, metrics=(*_DECIDING, *others))
    asked = table.model_copy(update={"rows": tuple(filter(None, rows)), "columns": (column,), "best_in": "column"})
    if not asked.rows or not set(_DECIDING) <= builder.registry.metrics.keys():
        return None
    grid = builder.build("recommendation", asked)
    baseline = grid.groups[0][0]
    candidates = [found for group in grid.groups for row in group if (found := _candidate(row, baseline)) is not None]
    if len(candidates) < 2 or candidates[0].row is not baseline:
        return None
    allowed = [candidate for candidate in candidates if not candidate.loses_f1]
    chosen = min(allowed, key=lambda candidate: candidate.ece.mean or 0.0)
    measures = [builder.registry.metrics[name] for name in others]
    sentences = [
        _verdict(chosen, candidates[0]),
        _ahead(chosen, candidates[0], measures),
        _ties(chosen, allowed),
        _losers(candidates),
        _few_rows(builder, dataset, baseline.key),
        _by_other_measures(chosen, allowed, measures),
    ]
    return Recommendation(label, chosen.row.label, tuple(filter(None, sentences)))


def _candidate(row: GridRow, baseline: GridRow) -> _Candidate | None:
    f1, ece = row.cells[:2]
    gains = [difference(cell, base) for cell, base in zip(row.cells[:2], baseline.cells[:2], strict=True)]
    if f1.mean is None or ece.mean is None or gains[0] is None or gains[1] is None:
        return None
    return _Candidate(row, f1, ece, gains[0], gains[1])


def _verdict(chosen: _Candidate, baseline: _Candidate) -> str:
    name, base = chosen.row.label, baseline.row.label
    if chosen is baseline:
        ece = number(chosen.ece.mean, chosen.ece.decimals)
        return f"{base}, without calibration, has the lowest ECE, {ece}, of the methods that lose no F1: keep it."
    ece, there = _over_shared_seeds(chosen.ece, baseline.ece)
    numbers = f"ECE {ece} against {there} of {base} ({_interval(chosen.ece_gain, chosen.ece.decimals)})"
    f1, before = _over_shared_seeds(chosen.f1, baseline.f1)
    kept = f"F1 {f1} against {before} ({_interval(chosen.f1_gain, chosen.f1.decimals)})"
    if chosen.ece_gain.within_noise:
        return f"No method has a lower ECE than {base} beyond noise: keep it. Lowest is {name}: {numbers}; {kept}."
    return f"Use {name}: {numbers}; {kept}."


def _over_shared_seeds(first: Cell, second: Cell) -> tuple[str, str]:
    """Both means over the seeds that both have, as their difference is."""
    ours, theirs = at_shared_seeds(first, second)
    means = [fmean(cell.values[place] for place in places) for cell, places in ((first, ours), (second, theirs))]
    return number(means[0], first.decimals), number(means[1], second.decimals)


def _ahead(chosen: _Candidate, baseline: _Candidate, metrics: Sequence[Metric]) -> str:
    """By how many other measures the lowest one is ahead of the baseline, where ECE cannot tell the two apart."""
    if chosen is baseline or not chosen.ece_gain.within_noise:
        return ""
    ahead, known = 0, 0
    for place, metric in enumerate(metrics, start=len(_DECIDING)):
        ours, theirs = chosen.row.cells[place].mean, baseline.row.cells[place].mean
        if ours is not None and theirs is not None:
            known += 1
            ahead += (ours < theirs) if metric.better == "lower" else (ours > theirs)
    return f"By {ahead} of {known} other measures it is ahead of {baseline.row.label}." if known else ""


def _interval(gain: Difference, decimals: int) -> str:
    low, high = signed(gain.low, decimals), signed(gain.high, decimals)
    return f"{signed(gain.estimate, decimals)}, 95 % interval {low} to {high}"


def _ties(chosen: _Candidate, allowed: Sequence[_Candidate]) -> str:
    """Those whose ECE cannot be told from the chosen one's."""
    near = []
    for other in allowed:
        gap = difference(other.ece, chosen.ece)
        if other is not chosen and gap is not None and gap.within_noise:
            near.append(f"{other.row.label} ({number(other.ece.mean, other.ece.decimals)})")
    return f"By ECE it cannot be told from {', '.join(near)}." if near else ""


def _losers(candidates: Sequence[_Candidate]) -> str:
    lost = [
        f"{candidate.row.label} ({signed(candidate.f1_gain.estimate, candidate.f1.decimals)})"
        for candidate in candidates
        if candidate.loses_f1
    ]
    return f"Set aside because they lose F1: {', '.join(lost)}." if lost else ""


def _by_other_measures(chosen: _Candidate, allowed: Sequence[_Candidate], metrics: Sequence[Metric]) -> str:
    """What other measures of calibration would choose of the same methods, where that is another one."""
    parts = []
    for place, metric in enumerate(metrics, start=len(_DECIDING)):
        known = [candidate for candidate in allowed if candidate.row.cells[place].mean is not None]
        if not known:
            continue
        sign = 1 if metric.better == "lower" else -1
        best = min(known, key=lambda candidate: sign * (candidate.row.cells[place].mean or 0.0))
        cells = [candidate.row.cells[place] for candidate in (best, chosen)]
        here, there = (number(cell.mean, cell.decimals) for cell in cells)
        if here != there:
            parts.append(f"{metric.label} {best.row.label} ({here} against {there})")
    return f"By other measures the best differs: {', '.join(parts)}." if parts else ""


def _few_rows(builder: GridBuilder, dataset: str, method: str) -> str:
    """A caution where so few test rows stand behind it all that one of them moves the numbers."""
    found = [builder.finder.scored(Subject(dataset, "base", method), seed) for seed in builder.seeds]
    rows = min((one.data.rows["test"] for one in found if not isinstance(one, str)), default=_FEW_ROWS)
    return f"Only {rows} test rows stand behind this." if rows < _FEW_ROWS else ""

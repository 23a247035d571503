"""Which method to use on a data set: the best calibrated one, by a measure of choice, that loses no F1, in words."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmark.cautions import (
    about_rows,
    by_chance,
    leanings,
    learnt_nothing,
    nearly_uniform,
    seeds_without_learning,
    whose_seeds,
    within_chance,
    without_results,
)
from benchmark.declarations import Metric, Table, TableColumn, TableRow
from benchmark.registry import Registry, clean_columns
from benchmark.render.text import number, signed
from benchmark.significance import Difference
from benchmark.specs import RESAMPLED
from benchmark.tables import (
    Cell,
    GridBuilder,
    GridRow,
    difference,
    over_shared_seeds,
    trained_in,
    without_rows,
)

MEASURES = ("ece", *RESAMPLED)  # those that can decide: lower is better, and noise can be told
# By these a reader may want to decide instead; the answer is said to differ where it does.
_OTHER_MEASURES = ("ece", "top_label_ece", "adaptive_ece", "brier", "nll", "aurc")
_BINNED = {"ece", "top_label_ece"}
_FEW_SEEDS = {
    1: "That is one training each; another seed may say otherwise.",
    2: "Two seeds hardly say how far trainings scatter; with a third, intervals are much narrower.",
}
_TO_RESAMPLE = "benchmark.run scores again what has its logits at hand, and with --redo it trains the others again"


@dataclass(frozen=True)
class Recommendation:
    """The advice for one data set: its label, the label of the recommended method (None where what was found can carry
    no advice), and why, sentence by sentence.
    """

    dataset: str
    method: str | None
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class _Candidate:
    """A method beside the baseline: what it gains or loses against it, by F1 and by the measure that decides."""

    row: GridRow
    measure: str  # the label of the one that decides
    f1: Cell
    error: Cell
    f1_gain: Difference
    error_gain: Difference

    @property
    def name(self) -> str:
        return self.row.label

    @property
    def loses_f1(self) -> bool:
        return self.f1_gain.estimate < 0 and not self.f1_gain.within_noise

    @property
    def gains_f1(self) -> bool:
        return self.f1_gain.estimate > 0 and not self.f1_gain.within_noise

    @property
    def lowers_error(self) -> bool:
        return self.error_gain.estimate < 0 and not self.error_gain.within_noise


def rule_in_words(registry: Registry, by: str = "ece") -> str:
    """How the advice by that measure is found, in words."""
    label = registry.metrics[by].label
    on_few_rows = f"On few rows {label} favours the surer of two models that are equally far from calibrated. "
    return (
        f"The rule: of the methods that lower {label} and do not lose F1, both against the first one and beyond noise, "
        f"the one with the lowest {label}; where there is none, the first one. "
        f"{on_few_rows if by in _BINNED else ''}Noise: a paired bootstrap over test rows and, from two seeds on, "
        "the spread over seeds; 95 %, not corrected for the number of methods. Differences are of the unrounded means."
    )


def recommend(builder: GridBuilder, tables: Iterable[Table], by: str = "ece") -> list[Recommendation]:
    """The advice for every clean data set in tables whose rows are methods on the base encoder. The first row of the
    first table is the baseline; the methods of all tables that begin with it are compared. Where it has no results,
    another table does not quietly put another baseline in its place.

    Recommended is, of the methods whose F1 is not lower than the baseline's beyond noise and whose error, the measure
    ``by``, one of ``MEASURES``, is lower beyond noise (each beside the baseline, 95 %), the one with the lowest; the
    baseline where there is none. A method whose ECE says nothing (``nearly_uniform``; other measures see it) or whose
    temperature was not found is set aside; the baseline cannot be, and nothing is recommended where its ECE says
    nothing and no method is better, or where what would be recommended has learnt nothing. All over seeds that all of
    them have, which may leave out a method that is behind (``over_shared_seeds``). A data set for which fewer than two
    methods have results is left out; where the baseline was scored before the measure was resampled, that is said.
    """
    able = [table for table in tables if _on_base_encoder(table) and clean_columns(table, set())]
    alike = [table for table in able if _on_base_encoder(table)[0].method == _on_base_encoder(able[0])[0].method]
    rows: dict[str, dict[str, TableRow]] = {}
    for table in alike:
        for column in clean_columns(table, set()):
            assert column.dataset is not None, "a clean column looks at a data set"
            rows.setdefault(column.dataset, {}).update({row.method: row for row in _on_base_encoder(table)})
    advice = [_advise(builder, dataset, tuple(methods.values()), by) for dataset, methods in rows.items()]
    return [item for item in advice if item is not None]


def _on_base_encoder(table: Table) -> list[TableRow]:
    """A table's rows, those on other encoders left out."""
    return [row for row in table.every_row if row.encoder == "base"]


def _advise(builder: GridBuilder, dataset: str, rows: tuple[TableRow, ...], by: str) -> Recommendation | None:
    label = builder.registry.dataset_label(builder.profile, dataset)
    metrics = builder.registry.metrics
    deciding = ("f1", by)
    others = {name: metrics[name] for name in _OTHER_MEASURES if name in metrics and name != by}
    column = TableColumn(label=label, dataset=dataset, metrics=(*deciding, *others))
    if not metrics.keys() >= {*deciding}:
        return None
    asked = Table(number="recommendation", caption="Recommendation.", rows=(rows,), columns=(column,))
    shared = over_shared_seeds(builder, "recommendation", asked)
    first = shared.grid.every_row[0]
    before = [row for row in shared.rows if row.cells[1].resampled is None]
    if first in before:
        because = f"{first.label} was scored before there were resamples of it; {_TO_RESAMPLE}"
        return Recommendation(label, None, (f"No method can be recommended by {metrics[by].label}: {because}.",))
    candidates = [found for row in shared.rows if (found := _candidate(row, first, metrics[by])) is not None]
    if len(candidates) < 2 or candidates[0].row is not first:
        return None
    baseline, seeds = candidates[0], shared.grid.seeds
    uniform = {one.name: caution for one in candidates if (caution := nearly_uniform(builder, dataset, seeds, one.row))}
    blind = uniform if by == "ece" else {}
    aside = blind | {one.name: caution for one in candidates if (caution := _without_optimum(one))}
    allowed = [one for one in candidates if one is baseline or not (one.loses_f1 or one.name in aside)]
    better = [candidate for candidate in allowed if candidate.lowers_error]
    by_error = sorted(allowed, key=lambda candidate: candidate.error.known)
    lowest = by_error[0]
    advised = min(better, key=lambda candidate: candidate.error.known) if better else baseline
    nothing = learnt_nothing(builder, dataset, seeds, [baseline.row, advised.row])
    none_learnt = len(seeds_without_learning(builder, dataset, seeds, advised.row)) == len(seeds)
    doubt = " ".join(filter(None, [blind.get(advised.name, ""), nothing if none_learnt else ""]))
    compared = [one.row for one in (baseline, advised, *by_error[:2])]
    unclear = better and by == "ece" and baseline.name not in blind
    few_rows = within_chance(builder, dataset, seeds, baseline.row) if unclear else ""
    verdict = " ".join(filter(None, [_verdict(advised, lowest, baseline), few_rows]))
    about_advised = [
        _ties(advised if better else lowest, allowed),
        *_by_f1(candidates, baseline, advised),
        _by_other_measures(advised, allowed, others, uniform),
    ]
    sentences = [
        f"No method can be recommended. {doubt}" if doubt else verdict,
        "" if none_learnt else nothing,
        f"Beware of {aside[advised.name]}" if advised.name in aside.keys() - blind.keys() else "",
        *(f"Set aside: {caution}" for name, caution in aside.items() if name != advised.name),
        _worse_by_others(advised, baseline, list(others.values())),
        _FEW_SEEDS.get(len(seeds), ""),
        about_rows(builder, dataset, seeds, baseline.row),
        leanings(builder, dataset, seeds, compared),
        by_chance(builder, dataset, seeds, compared) if by == "ece" else "",
        *([] if doubt else about_advised),
        whose_seeds(shared, builder.seeds),
        _from_before([row.label for row in before], metrics[by].label),
        without_results(shared),
        trained_in(shared.grid.precisions),
        without_rows(max(candidate.f1.labels_without_rows for candidate in candidates)),
        f"Compared: {', '.join(candidate.name for candidate in candidates)}.",
    ]
    return Recommendation(label, None if doubt else advised.name, tuple(filter(None, sentences)))


def _candidate(row: GridRow, baseline: GridRow, measure: Metric) -> _Candidate | None:
    f1, error = row.cells[:2]
    gains = [difference(cell, base) for cell, base in zip(row.cells[:2], baseline.cells[:2], strict=True)]
    if f1.mean is None or error.mean is None or gains[0] is None or gains[1] is None:
        return None
    return _Candidate(row, measure.label, f1, error, gains[0], gains[1])


def _verdict(advised: _Candidate, lowest: _Candidate, baseline: _Candidate) -> str:
    """What to use and why; and which other method has the lowest error, where that is not one beyond noise."""
    keep, measure, of = f"Keep {baseline.name}", baseline.measure, "of the methods not shown to lose F1"
    if lowest is baseline:
        return f"{keep}: it has the lowest {measure}, {_printed(baseline.error)}, {of}."
    if advised is baseline:
        none = f"{of} none has a lower {measure} beyond noise"
        return f"{keep}: {none}. Lowest is {lowest.name}: {_beside(lowest, baseline)}."
    use = f"Use {advised.name}: {_beside(advised, baseline)}."
    if lowest is advised:
        return use
    error, gain = _printed(lowest.error), _interval(lowest.error_gain, lowest.error.decimals)
    return f"{use} {lowest.name} has a lower mean, {error}, but is not below {baseline.name} beyond noise ({gain})."


def _beside(one: _Candidate, baseline: _Candidate) -> str:
    """Both deciding measures beside the baseline's."""
    error, f1 = (
        f"{_printed(cell)} against {_printed(before)}"
        for cell, before in ((one.error, baseline.error), (one.f1, baseline.f1))
    )
    error_gain, f1_gain = _interval(one.error_gain, one.error.decimals), _interval(one.f1_gain, one.f1.decimals)
    unchanged = one.f1_gain.estimate == one.f1_gain.standard_error == 0  # as under a temperature
    f1_beside = "unchanged" if unchanged else f"{f1} ({f1_gain})"
    return f"{one.measure} {error} of {baseline.name} ({error_gain}); F1 {f1_beside}"


def _printed(cell: Cell) -> str:
    return number(cell.mean, cell.decimals)


def _interval(gain: Difference, decimals: int) -> str:
    low, high = signed(gain.low, decimals), signed(gain.high, decimals)
    return f"{signed(gain.estimate, decimals)}, 95 % interval {low} to {high}"


def _without_optimum(method: _Candidate) -> str:
    """A caution where the method's temperature is none that the validation rows asked for: where all of them are right,
    say, the surer the better, however often it is wrong on others.
    """
    seeds = [str(found.seed) for found in method.error.temperatures if found.at_bound]
    if not seeds:
        return ""
    ended = f"the search for its temperature ended at a bound (seed {', '.join(seeds)})"
    return f"{method.name}, because {ended}: the validation rows name no best one."


def _ties(one: _Candidate, allowed: Sequence[_Candidate]) -> str:
    """Those whose error cannot be told from its own."""
    near = []
    for other in allowed:
        gap = difference(other.error, one.error)
        if other is not one and gap is not None and gap.within_noise:
            near.append(f"{other.name} ({_printed(other.error)})")
    return f"By {one.measure} {one.name} cannot be told from {', '.join(near)}." if near else ""


def _by_f1(candidates: Sequence[_Candidate], baseline: _Candidate, advised: _Candidate) -> tuple[str, str]:
    """Whose F1 is another than the baseline's beyond noise: those that lost the contest by it, and others who gain."""
    gain, lost = (
        ", ".join(f"{one.name} ({signed(one.f1_gain.estimate, one.f1.decimals)})" for one in found)
        for found in (
            [one for one in candidates if one.gains_f1 and one is not advised],
            [one for one in candidates if one.loses_f1],
        )
    )
    return (
        f"F1 above that of {baseline.name} beyond noise, whatever the {baseline.measure}: {gain}." if gain else "",
        f"Set aside because they lose F1: {lost}." if lost else "",
    )


def _worse_by_others(advised: _Candidate, baseline: _Candidate, metrics: Sequence[Metric]) -> str:
    """By which other measures of calibration the advised method has a worse mean than the baseline."""
    parts = []
    for place, metric in enumerate(metrics, start=2):  # after those that decide
        here, there = (one.row.cells[place] for one in (advised, baseline))
        if here.printed != there.printed and (here.printed > there.printed) == (metric.better == "lower"):
            parts.append(f"{metric.label} ({_printed(here)} against {_printed(there)})")
    return f"By other measures {advised.name} is worse than {baseline.name}: {', '.join(parts)}." if parts else ""


def _by_other_measures(
    advised: _Candidate, allowed: Sequence[_Candidate], metrics: Mapping[str, Metric], uniform: Collection[str]
) -> str:
    """Which of the same methods have a better mean than the advised one by other measures of calibration, and whether
    beyond noise. By ECE those do not count whose ECE says nothing (``uniform``).
    """
    better, noise = [], []
    for place, (name, metric) in enumerate(metrics.items(), start=2):  # after those that decide
        sign = 1 if metric.better == "lower" else -1
        others = [one for one in allowed if one is advised or name != "ece" or one.name not in uniform]
        best = min(others, key=lambda candidate: sign * candidate.row.cells[place].known)
        here, there = (one.row.cells[place] for one in (best, advised))
        if _printed(here) != _printed(there):
            gap = difference(here, there)
            better.append(f"{metric.label} {best.name} ({_printed(here)} against {_printed(there)}")
            noise.append("not tested" if gap is None else "within noise" if gap.within_noise else "beyond noise")
    if not better:
        return ""
    of = f"another method than {advised.name} has the best mean"
    if set(noise) == {"not tested"}:
        return f"By other measures {of} (not tested): {', '.join(f'{one})' for one in better)}."
    return f"By other measures {of}: {', '.join(f'{one}, {how})' for one, how in zip(better, noise, strict=True))}."


def _from_before(labels: Sequence[str], measure: str) -> str:
    """Whom it cannot judge, having been scored before the deciding measure was resampled."""
    if not labels:
        return ""
    return f"Left out, scored before there were resamples of {measure} ({_TO_RESAMPLE}): {', '.join(labels)}."

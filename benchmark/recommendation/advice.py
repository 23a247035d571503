"""The decision in words: what to use, why, and what a reader must know before doing so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmark.declarations import Metric, Table, TableColumn, TableRow
from benchmark.recommendation.cautions import (
    about_rows,
    by_chance,
    cut_short,
    leanings,
    learnt_nothing,
    seeds_without_learning,
    trained_too_long,
    unlike_rows,
    whose_seeds,
    within_chance,
    without_results,
)
from benchmark.recommendation.deciding import Candidate, Decision, are_tied, by_metric, candidate, decide, unchecked
from benchmark.recommendation.evidence import Evidence
from benchmark.registry import Registry, clean_columns, told_apart
from benchmark.render.text import number, signed
from benchmark.significance import Difference
from benchmark.tables import (
    Cell,
    GridBuilder,
    GridRow,
    SharedGrid,
    difference,
    idle_in_words,
    over_shared_seeds,
    trained_in,
    without_rows,
)

# By these a reader may want to decide instead; the answer is said to differ where it does.
_OTHER_MEASURES = ("ece", "top_label_ece", "adaptive_ece", "brier", "nll", "aurc")
_WHERE_ECE_IS_BLIND = "top_label_ece"
_NOT_MEASURED = "No method can be recommended: fewer than two are scored by it, or metrics.yaml has no such measure."
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


def rule_in_words(registry: Registry, by: str = "ece") -> str:
    """How the advice by that measure is found, in words."""
    label = registry.metrics[by].label
    losing = "do not lose F1" if by == "nll" else "lose neither F1 nor NLL"
    on_few_rows = f"On few rows {label} favours the surer of two models that are equally far from calibrated"
    surer = {
        "ece": f"{on_few_rows}: a lower one does not count where chance makes as much of it, by the means, and NLL is "
        "not lower, too; where it cannot tell the first one from a calibrated model, top-label ECE decides. ",
        "top_label_ece": f"{on_few_rows}. ",
    }
    tied = "" if by == "nll" else ", of several that noise cannot tell from it the one with the lowest NLL"
    return (
        f"The rule: of the methods that lower {label} and {losing}, all against the first one and beyond noise, the "
        f"one with the lowest {label}{tied}; where there is none, the first one. {surer.get(by, '')}Noise: a paired "
        "bootstrap over test rows and, from two seeds on, the spread over seeds; 95 %, not corrected for the number of "
        "methods. Differences are of the unrounded means."
    )


def recommend(builder: GridBuilder, tables: Iterable[Table], by: str = "ece") -> list[Recommendation]:
    """The advice for every clean data set in tables whose rows are methods on the base encoder. The first row of the
    first table is the baseline; the methods of all tables that begin with it are compared. Where it has no results,
    another table does not quietly put another baseline in its place.

    Recommended is what ``decide`` does, by the measure ``by``, one of ``DECIDING_MEASURES``, over the seeds that all
    methods have, which may leave out a method that is behind (``over_shared_seeds``). Where ECE cannot tell the
    baseline from a calibrated model, top-label ECE decides. Nothing is recommended where what would be has learnt
    nothing, or is the baseline and its ECE says nothing. A data set for which fewer than two methods have results is
    left out; where the baseline was scored before the measure was resampled, that is said.
    """
    able = [table for table in tables if _on_base_encoder(table) and clean_columns(table, set())]
    alike = [table for table in able if _on_base_encoder(table)[0].method == _on_base_encoder(able[0])[0].method]
    rows: dict[str, dict[str, TableRow]] = {}
    for table in alike:
        for column in clean_columns(table, set()):
            assert column.dataset is not None, "a clean column looks at a data set"
            rows.setdefault(column.dataset, {}).update({row.method: row for row in _on_base_encoder(table)})
    apart = {dataset: told_apart(builder.registry, methods.values()) for dataset, methods in rows.items()}
    advice = [_advise(builder, dataset, methods, by) for dataset, methods in apart.items()]
    return [item for item in advice if item is not None]


def _on_base_encoder(table: Table) -> list[TableRow]:
    """A table's rows, those on other encoders left out."""
    return [row for row in table.every_row if row.encoder == "base"]


def _advise(builder: GridBuilder, dataset: str, rows: tuple[TableRow, ...], by: str) -> Recommendation | None:
    label = builder.registry.dataset_label(builder.profile, dataset)
    metrics = builder.registry.metrics
    if not metrics.keys() >= {"f1", by}:
        return None
    others = {name: metrics[name] for name in _OTHER_MEASURES if name in metrics and name != by}
    column = TableColumn(label=label, dataset=dataset, metrics=("f1", by, *others))
    asked = Table(number="recommendation", caption="Recommendation.", rows=(rows,), columns=(column,))
    shared = over_shared_seeds(builder, "recommendation", asked)
    first = shared.grid.every_row[0]
    from_before = _from_before(shared, column.metrics, by)
    if first in from_before:
        because = f"{first.label} was scored before there were resamples of it; {_TO_RESAMPLE}"
        return Recommendation(label, None, (f"No method can be recommended by {metrics[by].label}: {because}.",))
    candidates = [found for row in shared.rows if (found := candidate(row, first, column.metrics, by)) is not None]
    if len(candidates) < 2 or candidates[0].row is not first:
        return None
    evidence = Evidence(builder, dataset, shared.grid.seeds)
    decision = decide(evidence, candidates, by)
    if by == "ece" and first.label not in decision.uniform and (caution := within_chance(evidence, first)):
        instead = _advise(builder, dataset, rows, _WHERE_ECE_IS_BLIND) or Recommendation(label, None, (_NOT_MEASURED,))
        head, *rest = instead.sentences
        return Recommendation(label, instead.method, (f"{caution} By top-label ECE: {head}", *rest))
    return _in_words(label, evidence, shared, from_before, candidates, decision, metrics[by], others)


def _in_words(
    label: str,
    evidence: Evidence,
    shared: SharedGrid,
    from_before: Sequence[GridRow],
    candidates: Sequence[Candidate],
    decision: Decision,
    measure: Metric,
    others: Mapping[str, Metric],
) -> Recommendation:
    baseline, advised, aside = decision.baseline, decision.advised, decision.aside
    nothing = learnt_nothing(evidence, [baseline.row, advised.row])
    none_learnt = len(seeds_without_learning(evidence, advised.row)) == len(evidence.seeds)
    blind = aside[advised.name] if measure.score == "ece" and advised.name in decision.uniform else ""
    doubt = " ".join(filter(None, [blind, nothing if none_learnt else ""]))
    compared = [one.row for one in (baseline, advised, *decision.by_error[:2])]
    about_advised = [
        _ties(decision, measure.label),
        *_by_f1(candidates, decision, measure.label),
        _better_by_others(decision, others),
    ]
    sentences = [
        f"No method can be recommended. {doubt}" if doubt else _verdict(decision, measure.label),
        "" if none_learnt else nothing,
        cut_short(evidence, baseline.row),
        trained_too_long(evidence, baseline.row),
        f"Beware of {aside[advised.name]}" if advised.name in aside and not blind else "",
        *(f"Set aside: {caution}" for name, caution in aside.items() if name != advised.name),
        _worse_by_others(advised, baseline, others),
        _FEW_SEEDS.get(len(evidence.seeds), ""),
        about_rows(evidence, baseline.row),
        unlike_rows(evidence, baseline.row),
        leanings(evidence, compared),
        by_chance(evidence, compared) if measure.score == "ece" else "",
        unchecked(evidence, candidates, measure.score),
        *([] if doubt else about_advised),
        whose_seeds(shared, evidence.builder.seeds),
        _left_out_from_before(from_before, measure.label),
        without_results(shared),
        trained_in(shared.grid.precisions),
        idle_in_words((one.name, "") for one in candidates if one.f1.rau_was_idle),
        without_rows(max(one.f1.labels_without_rows for one in candidates)),
        f"Compared: {', '.join(one.name for one in candidates)}.",
    ]
    return Recommendation(label, None if doubt else advised.name, tuple(filter(None, sentences)))


def _verdict(decision: Decision, measure: str) -> str:
    """What to use and why; and which other method has the lowest error, where that is not one beyond noise."""
    advised, lowest, baseline = decision.advised, decision.lowest, decision.baseline
    keep = f"Keep {baseline.name}"
    of = "of the methods not set aside" if decision.aside else "of the methods not shown to lose F1"
    if lowest is baseline:
        return f"{keep}: it has the lowest {measure}, {_printed(baseline.error)}, {of}."
    if advised is baseline:
        none = f"{of} none has a lower {measure} beyond noise"
        verdict = f"{keep}: {none}. Lowest is {lowest.name}: {_beside(lowest, baseline, measure)}."
        if decision.is_better_by_f1(lowest):
            verdict += f" So where F1 counts, {lowest.name} is the one to use."
        return verdict
    parts = [f"Use {advised.name}: {_beside(advised, baseline, measure)}."]
    if not lowest.lowers_error:
        error, gain = _printed(lowest.error), _interval(lowest.error_gain, lowest.error.decimals)
        parts.append(
            f"{lowest.name} has a lower mean, {error}, but is not below {baseline.name} beyond noise ({gain})."
        )
    first = next(one for one in decision.by_error if one.lowers_error)
    if first is not advised:
        assert first.nll is not None, "ties are decided by NLL"
        assert advised.nll is not None, "ties are decided by NLL"
        nll = f"{_printed(advised.nll)} against {_printed(first.nll)}"
        parts.append(
            f"{first.name} has a lower mean, {_printed(first.error)}, from which noise cannot tell it: the lower NLL "
            f"decides ({nll})."
        )
    return " ".join(parts)


def _beside(one: Candidate, baseline: Candidate, measure: str) -> str:
    """Both deciding measures beside the baseline's."""
    error, f1 = (
        f"{_printed(cell)} against {_printed(before)}"
        for cell, before in ((one.error, baseline.error), (one.f1, baseline.f1))
    )
    error_gain, f1_gain = _interval(one.error_gain, one.error.decimals), _interval(one.f1_gain, one.f1.decimals)
    unchanged = one.f1_gain.estimate == one.f1_gain.standard_error == 0  # as under a temperature
    f1_beside = "unchanged" if unchanged else f"{f1} ({f1_gain})"
    return f"{measure} {error} of {baseline.name} ({error_gain}); F1 {f1_beside}"


def _printed(cell: Cell) -> str:
    return number(cell.mean, cell.decimals)


def _interval(gain: Difference, decimals: int) -> str:
    low, high = signed(gain.low, decimals), signed(gain.high, decimals)
    return f"{signed(gain.estimate, decimals)}, 95 % interval {low} to {high}"


def _ties(decision: Decision, measure: str) -> str:
    """Those whose error cannot be told from that of the advised one, or of the lowest where the baseline is kept."""
    one = decision.lowest if decision.advised is decision.baseline else decision.advised
    near = []
    for other in decision.by_error:
        if other is not one and are_tied(other, one):
            near.append(f"{other.name} ({_printed(other.error)})")
    return f"By {measure} {one.name} cannot be told from {', '.join(near)}." if near else ""


def _by_f1(candidates: Sequence[Candidate], decision: Decision, measure: str) -> tuple[str, str]:
    """Whose F1 is another than the baseline's beyond noise: those that lost the contest by it, and others who gain."""
    baseline, advised = decision.baseline, decision.advised
    said = (advised, decision.lowest) if advised is baseline else (advised,)  # whose F1 the verdict has
    gain, lost = (
        ", ".join(f"{one.name} ({signed(one.f1_gain.estimate, one.f1.decimals)})" for one in found)
        for found in (
            [one for one in candidates if one.gains_f1 and one not in said],
            [one for one in candidates if one.loses_f1],
        )
    )
    return (
        f"F1 above that of {baseline.name} beyond noise, whatever the {measure}: {gain}." if gain else "",
        f"Set aside because they lose F1: {lost}." if lost else "",
    )


def _worse_by_others(advised: Candidate, baseline: Candidate, metrics: Mapping[str, Metric]) -> str:
    """By which other measures of calibration the advised method has a worse mean than the baseline."""
    worse = []
    for name, metric in metrics.items():
        here, there = (one.cells[name] for one in (advised, baseline))
        if here.printed != there.printed and (here.printed > there.printed) == (metric.better == "lower"):
            worse.append((metric.label, here, there))
    return _by_other_measures(f"{advised.name} has a worse mean than {baseline.name}", worse)


def _better_by_others(decision: Decision, metrics: Mapping[str, Metric]) -> str:
    """Which of the same methods have a better mean than the advised one by other measures of calibration."""
    advised = decision.advised
    better = []
    for name, metric in metrics.items():
        sign = 1 if metric.better == "lower" else -1
        # the ECE of a nearly uniform one says nothing
        others = [
            one for one in decision.by_error if name != "ece" or one is advised or one.name not in decision.uniform
        ]
        best = min(others, key=lambda one: sign * one.cells[name].known)
        here, there = (one.cells[name] for one in (best, advised))
        if _printed(here) != _printed(there) and best is not decision.baseline:  # of which it was said
            better.append((f"{metric.label} {best.name}", here, there))
    return _by_other_measures(f"another method than {advised.name} has the best mean", better)


def _by_other_measures(what: str, pairs: Sequence[tuple[str, Cell, Cell]]) -> str:
    """In words, each pair of means with whether noise could make its difference; nothing for none."""
    if not pairs:
        return ""
    found = []
    for name, here, there in pairs:
        gap = difference(here, there)
        noise = "not tested" if gap is None else "within noise" if gap.within_noise else "beyond noise"
        found.append((f"{name} ({_printed(here)} against {_printed(there)}", noise))
    if {noise for _, noise in found} == {"not tested"}:
        return f"By other measures {what} (not tested): {', '.join(f'{one})' for one, _ in found)}."
    return f"By other measures {what}: {', '.join(f'{one}, {noise})' for one, noise in found)}."


def _from_before(shared: SharedGrid, metrics: Sequence[str], by: str) -> list[GridRow]:
    """The rows that were scored before the deciding measure was resampled."""
    return [row for row in shared.rows if by_metric(row, metrics)[by].resampled is None]


def _left_out_from_before(rows: Iterable[GridRow], measure: str) -> str:
    """Whom the deciding measure cannot judge."""
    labels = [row.label for row in rows]
    if not labels:
        return ""
    return f"Left out, scored before there were resamples of {measure} ({_TO_RESAMPLE}): {', '.join(labels)}."

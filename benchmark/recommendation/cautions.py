"""What to know before a recommendation is followed: of the rows, of what chance does, of models that learnt nothing, of
methods that are not compared.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from benchmark.recommendation.evidence import Evidence
from benchmark.render.text import MINUS, number, signed
from benchmark.tables import GridRow, SharedGrid, left_out, seeds_in_words

_FEW_ROWS = 200
_DECIMALS = 2  # of points of confidence less accuracy
_UNLIKELY = 2.576  # standard errors
_FAR_BELOW_CHANCE = 0.6  # simulated, 1 of 100 calibrated models is below 0.7 of it with 60 rows, below 0.87 with 1,000
_CUT_SHORT = -20.0  # points of confidence less accuracy; cross-entropy that has run its course leaves none so far below


def by_chance(evidence: Evidence, methods: Iterable[GridRow]) -> str:
    """The ECE that a perfectly calibrated model would have on so few rows, as sure as each of these methods, where that
    is known of two at least.
    """
    parts: list[str] = []
    for method in _once(methods):
        chance = evidence.mean(method, "ece_if_calibrated")
        if chance is not None:
            ece = evidence.printed("ece", chance)
            parts.append(f"as sure as {method.label} {ece if parts else f'would have an ECE of {ece}'}")
    if len(parts) < 2:
        return ""
    return f"By chance alone a perfectly calibrated model {', '.join(parts)}."


def within_chance(evidence: Evidence, method: GridRow) -> str:
    """A caution where the method's ECE is no higher than what chance alone makes of a calibrated model's: then a lower
    one, of a surer model, is no sign of better calibration.
    """
    chance, ece = (evidence.mean(method, score) for score in ("ece_if_calibrated", "ece"))
    if chance is None or ece is None or ece > chance:
        return ""
    here, made = (evidence.printed("ece", value) for value in (ece, chance))
    return (
        f"ECE cannot tell {method.label} from a calibrated model: its {here} is no more than chance alone makes of one "
        f"as sure ({made}), so that a lower ECE is no sign of better calibration."
    )


def merely_surer(evidence: Evidence, method: GridRow, baseline: GridRow) -> str:
    """A caution where the method's ECE is lower by no more than that of a calibrated model falls by chance from the
    baseline's confidence to the method's.
    """
    scores = ("ece", "ece_if_calibrated")
    (here, chance_here), (there, chance_there) = (
        [evidence.mean(one, of) for of in scores] for one in (method, baseline)
    )
    if here is None or there is None or chance_here is None or chance_there is None:
        return ""
    gain, by_chance_alone = here - there, chance_here - chance_there
    if gain < by_chance_alone:
        return ""
    lower, made = (evidence.printed_gap("ece", gap) for gap in (gain, by_chance_alone))
    return f"{method.label}, because its lower ECE ({lower}) is no more than its being surer makes by chance ({made})."


def leanings(evidence: Evidence, methods: Iterable[GridRow]) -> str:
    """By how much each of these methods is surer than it is right, or less sure."""
    parts = []
    for method in _once(methods):
        if (leaning := evidence.leaning(method)) is not None:
            parts.append(f"{method.label} {signed(leaning, _DECIMALS)}")
    if not parts:
        return ""
    return f"Mean confidence less accuracy, in points (+ over-, {MINUS} under-confident): {', '.join(parts)}."


def cut_short(evidence: Evidence, baseline: GridRow) -> str:
    """A caution where the baseline is so much less sure than it is right that its training had not come to an end."""
    leaning = evidence.leaning(baseline)
    if leaning is None or leaning > _CUT_SHORT:
        return ""
    return (
        f"{baseline.label} is far less sure than it is right ({signed(leaning, _DECIMALS)} points), as "
        "where training ends too early. More epochs or a higher learning rate may gain more than any method: try them "
        "first."
    )


def trained_too_long(evidence: Evidence, baseline: GridRow) -> str:
    """A caution where the baseline is so sure of wrong answers that knowing nothing has the better NLL."""
    nll = evidence.mean(baseline, "nll")
    if nll is None:
        return ""
    n_labels = max(len(one.view.per_label.support) for one in evidence.scored(baseline).values())
    if round(nll, 3) <= round(math.log(n_labels), 3):
        return ""
    here, knowing_nothing = (number(value, 3) for value in (nll, math.log(n_labels)))
    return (
        f"The NLL of {baseline.label}, {here}, is higher than that of giving every label the same probability "
        f"({knowing_nothing}), as where training goes on too long. Fewer epochs or a lower learning rate may gain more "
        "than any method: try them first."
    )


def unlike_rows(evidence: Evidence, baseline: GridRow) -> str:
    """A caution where the model is right on more of the validation rows than of the test rows, or on fewer, by more
    than chance makes at 1 % (two shares, normal approximation).
    """
    validation, test = evidence.accuracy(baseline, "validation"), evidence.accuracy(baseline, "test")
    if validation is None or test is None:
        return ""
    rows, right = validation.rows + test.rows, validation.rows * validation.share + test.rows * test.share
    share = right / rows
    error = math.sqrt(share * (1 - share) * (1 / validation.rows + 1 / test.rows))
    if abs(validation.share - test.share) <= _UNLIKELY * error:
        return ""
    here, there = (f"{number(100 * one.share, 2)} % of {one.rows:,}" for one in (validation, test))
    return (
        f"{baseline.label} is right on {here} validation rows and {there} test rows, more unlike than chance makes "
        "them: what a calibrator learns from the one may not hold for the other."
    )


def whose_seeds(shared: SharedGrid, asked: Sequence[int]) -> str:
    """Over which seeds all this is, where not over all, and whom it leaves out."""
    parts = []
    if shared.grid.seeds != tuple(asked):
        parts.append(
            f"All this is over the seeds that these methods share. {seeds_in_words(shared.grid.seeds, 'Means over')}"
        )
    parts.append(left_out([*(row.label for row in shared.ensembles), *shared.short]))
    return " ".join(filter(None, parts))


def without_results(shared: SharedGrid) -> str:
    """Which methods have no result at all, and why."""
    why: dict[str, list[str]] = {}
    for row in shared.grid.every_row:
        if not row.has_values and row.label not in shared.short:
            why.setdefault(row.cells[0].why_missing or "no result", []).append(row.label)
    parts = [f"{', '.join(labels)} ({reason})" for reason, labels in why.items()]
    return f"Not compared: {'; '.join(parts)}." if parts else ""


def nearly_uniform(evidence: Evidence, method: GridRow) -> str:
    """A caution where the method's probabilities are nearly the same for all labels, which the class-wise sum cannot
    see: its ECE is far below what chance makes of a calibrated model's, and below its top-label ECE, which looks at a
    single label.
    """
    scores = {seed: one.view.scores for seed, one in evidence.scored(method).items()}
    below = {
        seed: one
        for seed, one in scores.items()
        if one["ece"] < min(_FAR_BELOW_CHANCE * one.get("ece_if_calibrated", 0.0), one["top_label_ece"])
    }
    if not below:
        return ""
    ece, chance, top = (
        evidence.printed("ece", fmean(one[name] for one in below.values()))
        for name in ("ece", "ece_if_calibrated", "top_label_ece")
    )
    return (
        f"{method.label} is nearly as sure of every label (seed {', '.join(map(str, below))}), which this ECE cannot "
        f"see: {ece}, where chance alone makes {chance} of a calibrated model's. Its top-label ECE is {top}: go by "
        "that (--by top_label_ece), or by NLL (--by nll)."
    )


def seeds_without_learning(evidence: Evidence, method: GridRow) -> tuple[int, ...]:
    """The seeds with which a method is right on no more test rows than whoever always says their commonest label."""
    views = {seed: one.view for seed, one in evidence.scored(method).items()}
    return tuple(
        seed
        for seed, view in views.items()
        if view.scores["accuracy"] <= max(view.per_label.support) / sum(view.per_label.support)
    )


def learnt_nothing(evidence: Evidence, methods: Iterable[GridRow]) -> str:
    """A caution where there are such seeds of any of the methods."""
    parts = []
    for method in _once(methods):
        if none := seeds_without_learning(evidence, method):
            parts.append(f"{method.label} (seed {', '.join(map(str, none))})")
    commonest = "no more often right than whoever always says the commonest label"
    return f"Nothing was learnt by {' and '.join(parts)}: {commonest}; calibration then says little." if parts else ""


def about_rows(evidence: Evidence, method: GridRow) -> str:
    """What was found in the rows when they were trained on; of older results, which do not say it, whether so few test
    rows stand behind them that one of these moves the numbers.
    """
    found = evidence.scored(method).values()
    remarks = dict.fromkeys(remark for one in found for remark in one.data.remarks or ())
    if remarks:
        return f"Found in the rows: {'; '.join(remarks)}."
    rows = min((one.data.rows["test"] for one in found), default=_FEW_ROWS)
    return f"Only {rows} test rows stand behind this." if rows < _FEW_ROWS else ""


def _once(methods: Iterable[GridRow]) -> Iterable[GridRow]:
    return {row.key: row for row in methods}.values()

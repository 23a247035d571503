"""What to know before a recommendation is followed: of the rows, of what chance does, of models that learnt nothing, of
methods that are not compared.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean

from benchmark.registry import Subject
from benchmark.render.text import MINUS, number, signed
from benchmark.store import Reliability
from benchmark.tables import GridBuilder, GridRow, Scored, SharedGrid, left_out, seeds_in_words

_FEW_ROWS = 200
_FAR_BELOW_CHANCE = 0.6  # simulated, 1 of 100 calibrated models is below 0.7 of it with 60 rows, below 0.87 with 1,000


def by_chance(builder: GridBuilder, dataset: str, seeds: Sequence[int], methods: Sequence[GridRow]) -> str:
    """The ECE that a perfectly calibrated model would have on so few rows, as sure as each of these methods, where that
    is known of two at least.
    """
    parts, decimals = [], builder.registry.metrics["ece"].decimals
    for method in {row.key: row for row in methods}.values():
        chance = _mean_score(builder, dataset, seeds, method, "ece_if_calibrated")
        if chance is not None:
            parts.append(f"{number(100 * chance, decimals)} as sure as {method.label}")
    if len(parts) < 2:
        return ""
    return f"By chance alone a perfectly calibrated model would have an ECE of {', of '.join(parts)}."


def within_chance(builder: GridBuilder, dataset: str, seeds: Sequence[int], method: GridRow) -> str:
    """A caution where the method's ECE is no higher than what chance alone makes of a calibrated model's: then a lower
    one, of a surer model, is no sign of better calibration.
    """
    chance = _mean_score(builder, dataset, seeds, method, "ece_if_calibrated")
    ece = _mean_score(builder, dataset, seeds, method, "ece")
    if chance is None or ece is None or ece > chance:
        return ""
    decimals = builder.registry.metrics["ece"].decimals
    return (
        f"But ECE cannot tell {method.label} from a calibrated model: its {number(100 * ece, decimals)} "
        f"is no more than chance alone makes of one as sure ({number(100 * chance, decimals)}), so that a lower ECE is "
        "no sign of better calibration. Decide by top-label ECE (--by top_label_ece) or by NLL (--by nll)."
    )


def leanings(builder: GridBuilder, dataset: str, seeds: Sequence[int], methods: Sequence[GridRow]) -> str:
    """By how much each of these methods is surer than it is right, or less sure: its mean confidence less its accuracy,
    over all test rows and seeds.
    """
    parts, decimals = [], builder.registry.metrics["ece"].decimals
    for method in {row.key: row for row in methods}.values():
        gaps = [_gap(one.view.reliability) for one in _scored(builder, dataset, method, seeds).values()]
        if gaps:
            parts.append(f"{method.label} {signed(100 * fmean(gaps), decimals)}")
    return (
        f"Mean confidence less accuracy, in points (+ over-, {MINUS} under-confident): {', '.join(parts)}."
        if parts
        else ""
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


def _gap(reliability: Reliability) -> float:
    bins = zip(reliability.count, reliability.confidence, reliability.accuracy, strict=True)
    gaps = [count * (sure - right) for count, sure, right in bins if sure is not None and right is not None]
    return sum(gaps) / max(sum(reliability.count), 1)


def _mean_score(builder: GridBuilder, dataset: str, seeds: Sequence[int], method: GridRow, score: str) -> float | None:
    """Over the seeds, as a fraction; None where it is not known of all of them."""
    found = [one.view.scores.get(score) for one in _scored(builder, dataset, method, seeds).values()]
    known = [value for value in found if value is not None]
    return fmean(known) if known and len(known) == len(seeds) else None


def nearly_uniform(builder: GridBuilder, dataset: str, seeds: Sequence[int], method: GridRow) -> str:
    """A caution where the method's ECE is so far below what chance makes of a calibrated model's that its probabilities
    are nearly the same for all labels, which the class-wise sum cannot see.
    """
    scores = {seed: one.view.scores for seed, one in _scored(builder, dataset, method, seeds).items()}
    below = {
        seed: one for seed, one in scores.items() if one["ece"] < _FAR_BELOW_CHANCE * one.get("ece_if_calibrated", 0.0)
    }
    if not below:
        return ""
    decimals = builder.registry.metrics["ece"].decimals
    ece, chance, top = (
        number(100 * fmean(one[name] for one in below.values()), decimals)
        for name in ("ece", "ece_if_calibrated", "top_label_ece")
    )
    return (
        f"{method.label} is nearly as sure of every label (seed {', '.join(map(str, below))}), which this ECE cannot "
        f"see: {ece}, where chance alone makes {chance} of a calibrated model's. Its top-label ECE is {top}: go by "
        "that (--by top_label_ece), or by NLL (--by nll)."
    )


def seeds_without_learning(
    builder: GridBuilder, dataset: str, seeds: Sequence[int], method: GridRow
) -> tuple[int, ...]:
    """The seeds with which a method is right on no more test rows than whoever always says their commonest label."""
    views = {seed: one.view for seed, one in _scored(builder, dataset, method, seeds).items()}
    return tuple(
        seed
        for seed, view in views.items()
        if view.scores["accuracy"] <= max(view.per_label.support) / sum(view.per_label.support)
    )


def learnt_nothing(builder: GridBuilder, dataset: str, seeds: Sequence[int], methods: Sequence[GridRow]) -> str:
    """A caution where there are such seeds of any of the methods."""
    parts = []
    for method in {row.key: row for row in methods}.values():
        if none := seeds_without_learning(builder, dataset, seeds, method):
            parts.append(f"{method.label} (seed {', '.join(map(str, none))})")
    commonest = "no more often right than whoever always says the commonest label"
    return f"Nothing was learnt by {' and '.join(parts)}: {commonest}; calibration then says little." if parts else ""


def about_rows(builder: GridBuilder, dataset: str, seeds: Sequence[int], method: GridRow) -> str:
    """What was found in the rows when they were trained on; of older results, which do not say it, whether so few test
    rows stand behind them that one of these moves the numbers.
    """
    found = _scored(builder, dataset, method, seeds).values()
    remarks = dict.fromkeys(remark for one in found for remark in one.data.remarks or ())
    if remarks:
        return f"Of the rows it is known: {'; '.join(remarks)}."
    rows = min((one.data.rows["test"] for one in found), default=_FEW_ROWS)
    return f"Only {rows} test rows stand behind this." if rows < _FEW_ROWS else ""


def _scored(builder: GridBuilder, dataset: str, method: GridRow, seeds: Iterable[int]) -> dict[int, Scored]:
    """What there is of a method, by seed."""
    found = {seed: builder.finder.scored(Subject(dataset, "base", method.key), seed) for seed in seeds}
    return {seed: one for seed, one in found.items() if not isinstance(one, str)}

"""The decision itself: of the methods that have results on a data set, the one to use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.recommendation.cautions import merely_surer, nearly_uniform
from benchmark.recommendation.evidence import Evidence
from benchmark.render.text import number
from benchmark.significance import Difference
from benchmark.specs import RESAMPLED
from benchmark.tables import Cell, GridRow, difference

DECIDING_MEASURES = ("ece", *RESAMPLED)  # those that can decide: lower is better, and noise can be told


@dataclass(frozen=True)
class Candidate:
    """A method beside the baseline: its cells by metric, and what it gains or loses against it, by F1, by the measure
    ``by`` that decides, and by NLL, where that can be tested.
    """

    row: GridRow
    cells: Mapping[str, Cell]
    by: str
    f1_gain: Difference
    error_gain: Difference
    nll_gain: Difference | None

    @property
    def name(self) -> str:
        return self.row.label

    @property
    def f1(self) -> Cell:
        return self.cells["f1"]

    @property
    def error(self) -> Cell:
        return self.cells[self.by]

    @property
    def nll(self) -> Cell | None:
        return self.cells.get("nll")

    @property
    def loses_f1(self) -> bool:
        return self.f1_gain.is_fall

    @property
    def gains_f1(self) -> bool:
        return self.f1_gain.is_rise

    @property
    def lowers_error(self) -> bool:
        return self.error_gain.is_fall

    @property
    def raises_nll(self) -> bool:
        return self.nll_gain is not None and self.nll_gain.is_rise

    @property
    def lowers_nll(self) -> bool:
        return self.nll_gain is not None and self.nll_gain.is_fall


@dataclass(frozen=True)
class Decision:
    """``advised``: the method to use, the baseline where none is better. ``lowest``: of those allowed the one with the
    lowest error. ``aside``: why a method is not allowed, though its error may be the lowest, by its name; that the
    baseline would not be is said there, too. ``uniform``: those whose ECE says nothing.
    """

    baseline: Candidate
    advised: Candidate
    by_error: tuple[Candidate, ...]  # those allowed
    aside: dict[str, str]
    uniform: frozenset[str]

    @property
    def lowest(self) -> Candidate:
        return self.by_error[0]

    def is_better_by_f1(self, method: Candidate) -> bool:
        """Whether its F1 is above the baseline's beyond noise and no other allowed method's mean is higher, its NLL
        being known to be no higher than the baseline's beyond noise.
        """
        highest = max(one.f1.printed for one in self.by_error)
        return (
            method.gains_f1 and method.f1.printed == highest and method.nll_gain is not None and not method.raises_nll
        )


def candidate(row: GridRow, baseline: GridRow, metrics: Sequence[str], by: str) -> Candidate | None:
    """A row beside the baseline's; None where F1 or the measure ``by`` cannot be compared. ``metrics``: those of their
    cells, in order.
    """
    cells, there = by_metric(row, metrics), by_metric(baseline, metrics)
    gains = {name: difference(cells[name], there[name]) for name in cells.keys() & {"f1", by, "nll"}}
    f1_gain, error_gain = gains["f1"], gains[by]
    if cells["f1"].mean is None or cells[by].mean is None or f1_gain is None or error_gain is None:
        return None
    return Candidate(row, cells, by, f1_gain, error_gain, gains.get("nll"))


def by_metric(row: GridRow, metrics: Sequence[str]) -> dict[str, Cell]:
    """A row's cells by their metrics, given in order."""
    return dict(zip(metrics, row.cells, strict=True))


def decide(evidence: Evidence, candidates: list[Candidate], by: str) -> Decision:
    """Of the candidates, the first of which is the baseline, the one to use, by the measure ``by``.

    Allowed are those whose F1 is not lower than the baseline's beyond noise and that are not set aside: because their
    temperature was not found; because what they gain by the measure they lose by NLL, which is proper, beyond noise; by
    ECE because it says nothing of them (``nearly_uniform``), or is lower by no more than chance makes of a surer model
    (``merely_surer``) where NLL does not speak for them either. Advised is, of those allowed whose error is lower than
    the baseline's beyond noise, the one with the lowest; of several that cannot be told from it, the one with the
    lowest NLL.
    """
    baseline = candidates[0]
    uniform = {one.name: caution for one in candidates if (caution := nearly_uniform(evidence, one.row))}
    aside = dict(uniform) if by == "ece" else {}
    for one in candidates:
        because = _without_optimum(one)
        if not because and one.lowers_error and one.raises_nll:
            because = _worse_by_nll(one, baseline)
        by_chance = by == "ece" and one.lowers_error and not one.lowers_nll
        if not because and by_chance and not uniform.keys() & {one.name, baseline.name}:
            because = merely_surer(evidence, one.row, baseline.row)
        if because:
            aside[one.name] = because
    allowed = [one for one in candidates if one is baseline or not (one.loses_f1 or one.name in aside)]
    by_error = sorted(allowed, key=lambda one: one.error.known)
    better = [one for one in by_error if one.lowers_error]
    advised = _lowest_nll([one for one in better if are_tied(one, better[0])]) if better else baseline
    return Decision(baseline, advised, tuple(by_error), aside, frozenset(uniform))


def unchecked(evidence: Evidence, candidates: Sequence[Candidate], by: str) -> str:
    """Which rules of ``decide`` could not be asked of all methods, their results being too old to say; nothing where
    all could.
    """
    open_questions = []
    if by != "nll" and any(one.nll_gain is None for one in candidates):
        open_questions.append("whether a method loses NLL")
    if by == "ece" and any(evidence.mean(one.row, "ece_if_calibrated") is None for one in candidates):
        open_questions.append("whether chance alone makes a lower ECE")
    return f"Not checked, for want of the numbers: {' and '.join(open_questions)}." if open_questions else ""


def are_tied(one: Candidate, other: Candidate) -> bool:
    """Whether noise cannot tell the errors of the two apart, as those of one and the same."""
    if one is other:
        return True
    gap = difference(one.error, other.error)
    return gap is not None and gap.within_noise


def _lowest_nll(tied: list[Candidate]) -> Candidate:
    """Of methods in the order of their error, all tied by it; the first where the NLL of one is not known."""
    known = {one.name: one.nll.printed for one in tied if one.nll is not None and one.nll.mean is not None}
    return min(tied, key=lambda one: known[one.name]) if len(known) == len(tied) else tied[0]


def _without_optimum(method: Candidate) -> str:
    """A caution where the method's temperature is none that the validation rows asked for: where all of them are right,
    say, the surer the better, however often it is wrong on others.
    """
    seeds = [str(found.seed) for found in method.error.temperatures if found.at_bound]
    if not seeds:
        return ""
    ended = f"the search for its temperature ended at a bound (seed {', '.join(seeds)})"
    return f"{method.name}, because {ended}: the validation rows name no best one."


def _worse_by_nll(one: Candidate, baseline: Candidate) -> str:
    assert one.nll is not None, "what raises NLL has one"
    assert baseline.nll is not None, "what NLL is compared with has one"
    here, there = (number(cell.mean, cell.decimals) for cell in (one.nll, baseline.nll))
    return f"{one.name}, because its NLL is higher beyond noise ({here} against {there})."

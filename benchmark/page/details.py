"""What stands behind a cell: seeds, spread, lead, the paper's number, result files; in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.render.text import NOT_TESTED, PLUS_MINUS, WITHIN_NOISE, gap_with_interval, number
from benchmark.significance import Difference
from benchmark.tables import Cell, FittedTemperature, Gap, Lead, seed_list

NO_RESULT = "no result"
# the lines that come first where the tables show these numbers
PAPER, DIFFERENCE, GAP = "Paper", "Difference", "From the first row"


@dataclass(frozen=True)
class Detail:
    """Terms with their texts, and the files that hold the values."""

    title: str
    lines: tuple[tuple[str, str], ...]
    files: tuple[str, ...]


def detail(
    cell: Cell,
    title: str,
    seeds: Sequence[int],
    difference: str,
    files: Mapping[str, str],
    gap: Gap | None = None,
    reference: str = "",
) -> Detail:
    """All that is known of a cell of a table with these seeds; ``difference`` to the paper is as printed, ``gap`` is
    from the first row, which is called ``reference``.
    """
    lines = _ours(cell, seeds) if cell.values else [("Missing", cell.why_missing or NO_RESULT)]
    if cell.temperatures:
        lines.append(("Temperature", ", ".join(map(_temperature, cell.temperatures))))
    if cell.lead is not None:
        lines.append(("Lead", lead_in_words(cell, cell.lead)))
    if cell.lead_untested:
        lines.append(("Lead", f"not tested ({NOT_TESTED}): {cell.lead_untested}"))
    if gap is not None and gap.estimate is not None:
        lines.append((GAP, f"{reference}: {_gap_in_words(gap)}"))
    if cell.paper is not None:
        lines.append((PAPER, number(cell.paper, cell.decimals)))
        lines.append((DIFFERENCE, f"{difference}, ours minus the paper’s"))
    return Detail(title, tuple(lines), tuple(files[run_id] for run_id in cell.sources))


def _gap_in_words(gap: Gap) -> str:
    found = gap_with_interval(gap).text
    if gap.without_optimum:
        return f"{found}, not tested: no temperature was found for one of the two"
    if gap.tested is None:
        return f"{found}, not tested: {gap.untested}" if gap.untested else f"{found}, the same"
    within = gap.verdict == "within noise"
    noise = _noise(within, gap.tested, gap.seeds, "differences")
    return f"{found}, {noise}" if within else f"{found}, {gap.verdict}, {noise}"


def lead_in_words(cell: Cell, lead: Lead) -> str:
    """How far the best cell is ahead of the runner-up, and whether that is more than noise."""
    sign, found = 1 if cell.better == "higher" else -1, lead.difference
    low, high = sorted(sign * end for end in (found.low, found.high))
    ahead, *ends = (number(value, cell.decimals) for value in (sign * found.estimate, low, high))
    noise = _noise(lead.within_noise, found, lead.seeds, "leads") + (f" ({WITHIN_NOISE})" if lead.within_noise else "")
    over = "" if lead.of_all else f" over {_seeds(lead.seeds)}, which both have"
    return f"{ahead} {cell.better} than {lead.runner_up}{over} (95 % interval {' to '.join(ends)}), {noise}"


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {seed_list(seeds)}"


def _temperature(found: FittedTemperature) -> str:
    bound = ", a bound of the search" if found.at_bound else ""
    return f"{found.value:.3f}{bound} (seed {found.seed})"


def _noise(within: bool, alone: Difference, seeds: Sequence[int], among: str) -> str:
    """Whether a difference is more than noise: ``within`` once corrected for all those that it is ``among``."""
    if within:
        return "within noise" + ("" if alone.within_noise else f" once corrected for all {among} of the table")
    return "beyond noise" if len(seeds) > 1 else "beyond the test rows’ noise"


def _ours(cell: Cell, seeds: Sequence[int]) -> list[tuple[str, str]]:
    one = len(seeds) == 1
    values = [
        f"{number(value, cell.decimals)} (seed {seed})" for seed, value in zip(cell.seeds, cell.values, strict=True)
    ]
    lines = [
        ("Value" if one else "Mean", f"{number(cell.mean, cell.decimals)}, {cell.better} is better"),
        ("Seeds", f"n = {len(values)} of {cell.expected}: {', '.join(values)}"),
        ("Spread", _spread(cell)),
    ]
    absent: dict[str, list[int]] = {}
    for seed in seeds:
        if seed not in cell.seeds:
            absent.setdefault(cell.missing.get(seed, NO_RESULT), []).append(seed)
    if absent:
        lines.append(("Missing", "; ".join(f"{_seeds(of)}: {why}" for why, of in absent.items())))
    return lines


def _spread(cell: Cell) -> str:
    if cell.deviation is None:
        return "not known from one seed"
    ends = f"{number(min(cell.values), cell.decimals)} to {number(max(cell.values), cell.decimals)}"
    return f"{PLUS_MINUS} {number(cell.deviation, cell.decimals)} (sample standard deviation), {ends}"

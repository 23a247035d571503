"""What stands behind a cell: seeds, spread, lead, the paper's number, result files; in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.render.text import PLUS_MINUS, WITHIN_NOISE, number, signed
from benchmark.tables import Cell

NO_RESULT = "no result"


@dataclass(frozen=True)
class Detail:
    """Terms with their texts, and the files that hold the values."""

    title: str
    lines: tuple[tuple[str, str], ...]
    files: tuple[str, ...]


def detail(cell: Cell, title: str, seeds: Sequence[int], difference: str, files: Mapping[str, str]) -> Detail:
    """All that is known of a cell of a table with these seeds; ``difference`` to the paper is as printed."""
    lines = _ours(cell, seeds) if cell.values else [("Missing", cell.why_missing or NO_RESULT)]
    if cell.lead is not None:
        low, high = (signed(end, cell.decimals) for end in (cell.lead.low, cell.lead.high))
        noise = f"within noise ({WITHIN_NOISE})" if cell.lead_within_noise else "beyond noise"
        lead = f"{signed(cell.lead.estimate, cell.decimals)}, 95 % interval {low} to {high}, {noise}"
        lines.append(("Lead over the runner-up", lead))
    if cell.paper is not None:
        lines.append(("Paper", f"{number(cell.paper, cell.decimals)}, difference {difference}"))
    return Detail(title, tuple(lines), tuple(files[run_id] for run_id in cell.sources))


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
    absent = [str(seed) for seed in seeds if seed not in cell.seeds]
    if absent:
        lines.append(("Missing", f"seed {', '.join(absent)}: {cell.why_missing or NO_RESULT}"))
    return lines


def _spread(cell: Cell) -> str:
    if cell.deviation is None:
        return "not known from one seed"
    ends = f"{number(min(cell.values), cell.decimals)} to {number(max(cell.values), cell.decimals)}"
    return f"{PLUS_MINUS} {number(cell.deviation, cell.decimals)} (sample standard deviation), {ends}"

"""Scores against the share of noisy labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.figures.series.collecting import MethodResults, Source


@dataclass(frozen=True)
class NoiseLine:
    """One method. Each of ``f1`` and ``ece`` has a tuple of percents for each level, one a seed, empty for none."""

    method: str
    label: str
    f1: tuple[tuple[float, ...], ...]
    ece: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class NoiseSeries:
    """Lines over noise levels in percent, the first of which is 0, the clean runs."""

    levels: tuple[float, ...]
    lines: tuple[NoiseLine, ...]
    seeds: tuple[int, ...]
    missing: tuple[str, ...]  # of which method and level there is no result, and why
    partial: tuple[str, ...]  # of which there are fewer seeds than of others


def noise_series(
    source: Source, dataset: str, encoder: str, methods: Sequence[str], levels: Sequence[float]
) -> NoiseSeries | str:
    """The lines of the methods that have results for at least two levels, or why there is none."""
    all_levels = (0.0, *levels)
    found = [source.methods(dataset, encoder, methods, level) for level in all_levels]
    lines, missing = [], []
    for of_method in zip(*found, strict=True):
        label = of_method[0].label
        gaps = [(level, item) for level, item in zip(all_levels, of_method, strict=True) if not item.scored]
        if len(all_levels) - len(gaps) < 2:
            missing.append(f"{label} ({gaps[-1][1].why_missing})")
            continue
        missing += [f"{label} at {100 * level:g} % ({item.why_missing})" for level, item in gaps]
        f1, ece = (tuple(item.score(name) for item in of_method) for name in ("f1", "ece"))
        lines.append(NoiseLine(of_method[0].method, label, f1, ece))
    if not lines:
        return next((item.why_missing for item in found[-1] if item.why_missing), "no result")
    seeds = sorted({seed for row in found for item in row for seed in item.seeds})
    partial = [text for of_method in zip(*found, strict=True) for text in _fewer(of_method, all_levels, len(seeds))]
    return NoiseSeries(
        tuple(100 * level for level in all_levels), tuple(lines), tuple(seeds), tuple(missing), tuple(partial)
    )


def _fewer(of_method: Sequence[MethodResults], levels: Sequence[float], n_seeds: int) -> list[str]:
    """Where one method has some but not all seeds: "PosCal n = 2", or "PosCal n = 2 at 5, 10 %"."""
    where: dict[int, list[float]] = {}
    for level, item in zip(levels, of_method, strict=True):
        if 0 < len(item.seeds) < n_seeds:
            where.setdefault(len(item.seeds), []).append(100 * level)
    return [
        f"{of_method[0].label} n = {count}"
        + ("" if len(at) == len(levels) else f" at {', '.join(f'{level:g}' for level in at)} %")
        for count, at in where.items()
    ]

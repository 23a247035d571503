"""What the reliability diagrams draw: the fine bins of every method and seed, for the page to merge."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.declarations import Table
from benchmark.registry import Subject, encoder_name, table_subjects
from benchmark.store import RELIABILITY_BINS, Reliability, ViewRecord
from benchmark.tables import GridBuilder

BINS = (5, 10, 12, 15, 20, 30)  # into so many the fine bins can be merged

Setting = tuple[str, str, float]  # the roles of data set and encoder, the share of changed labels


def diagram_data(builder: GridBuilder, tables: Mapping[str, Table], seeds: Sequence[int]) -> dict[str, Any]:
    """Plain values for JSON: settings (a data set, perhaps with changed labels or another encoder), the methods in
    each, the test views of each seed.
    """
    labels = builder.registry.method_labels
    settings: dict[Setting, dict[str, Any]] = {}
    known: set[Subject] = set()
    for table_name, table in tables.items():
        for subject in table_subjects(builder.registry, table):
            views = [(seed, one.view) for seed, one in builder.finder.by_seed(subject, seeds).items()]
            if views and subject not in known:
                known.add(subject)
                entry = settings.setdefault(
                    (subject.dataset, subject.encoder, subject.corruption), _setting(builder, subject, table_name)
                )
                seen_in = [_seed(seed, view) for seed, view in views]
                entry["methods"].append({"label": labels[subject.method], "seeds": seen_in})
                if entry["table"] == table_name:
                    entry["compared"] = len(entry["methods"]) - 1
    ece_bins = builder.registry.scoring.ece_bins
    return {
        "fine": RELIABILITY_BINS,
        "bins": list(BINS),
        "chosen": ece_bins if ece_bins in BINS else BINS[1],
        "stored_bins": ece_bins,
        "several_seeds": len(seeds) > 1,
        "settings": list(settings.values()),
    }


def _setting(builder: GridBuilder, subject: Subject, table_name: str) -> dict[str, Any]:
    """``compared``: the last method of the table in which the setting comes first; in the paper's tables, its own."""
    return {"label": _label(builder, subject), "table": table_name, "methods": [], "compared": 0}


def _label(builder: GridBuilder, subject: Subject) -> str:
    label = builder.registry.dataset_label(builder.profile, subject.dataset)
    if subject.corruption:
        label += f", {100 * subject.corruption:g} % noisy labels"
    if subject.encoder != "base":
        encoder = encoder_name(builder.profile, subject.dataset, subject.encoder)
        label += f", encoder {builder.registry.encoders[encoder].label if encoder else subject.encoder}"
    return label


def _seed(seed: int, view: ViewRecord) -> dict[str, Any]:
    return {
        "seed": seed,
        "bins": _filled(view.reliability),
        "ece": round(view.scores["ece"], 6),
        "wrong_above_90": view.reliability.wrong_above_90,
    }


def _filled(reliability: Reliability) -> list[list[float]]:
    """The bins with rows: position, rows, mean confidence, rows that are right."""
    return [
        [position, count, round(confidence, 6), round(accuracy * count)]
        for position, (count, confidence, accuracy) in enumerate(
            zip(reliability.count, reliability.confidence, reliability.accuracy, strict=True)
        )
        if confidence is not None and accuracy is not None
    ]

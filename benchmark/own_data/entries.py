"""Data set, table, figure and profile for data of the user's own, as plain values."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.data import Row, read_rows
from benchmark.declarations import Encoder
from benchmark.errors import UserError
from benchmark.own_data.files import OwnFiles, format_of
from benchmark.own_data.settings import estimated_tokens, fitting_settings

SEEDS = (0, 1, 2)  # fewer than two do not tell how far seeds scatter
_TEST_SHARE, _VALIDATION_SHARE = 0.2, 0.1
_METRICS = ("accuracy", "f1", "ece", "top_label_ece", "adaptive_ece", "brier", "nll", "aurc")
# Unless others are asked for: the paper's, and calibrators beyond them, which train nothing (Dirichlet's matrix would
# grow with the labels' square).
METHODS = (("bert",), ("ts", "vector", "beta", "isotonic", "histogram"), ("ls", "poscal", "avuc"), ("hs_rau",))
_IN_EVERY_FIGURE = {"bert", "ts", "ls", "poscal", "avuc", "hs_rau"}  # figures.yaml has these
_PANELS = 6


def own_entries(
    files: OwnFiles,
    name: str,
    encoder: str,
    declared: Encoder,
    methods: Sequence[Sequence[str]] = METHODS,
    seeds: Sequence[int] = SEEDS,
) -> dict[str, Any]:
    """The entries as plain values, with settings that fit the number and the length of the rows. ``methods``: in
    groups, which tables part by a line; the first one is the baseline.
    """
    source, rows = _source_and_rows(files)
    held_out = _held_out(files, rows["train"])
    n_train = len(rows["train"]) - sum(held_out.values())
    lengths = sorted(estimated_tokens(row.text) for row in rows["train"])
    dataset = {
        "label": files.title,
        "source": source,
        **{split: {"rows": count, "seed": 0, "stratified": True} for split, count in held_out.items()},
        "tokens_per_text": round(sum(lengths) / len(lengths), 1),
        "training_rows": n_train,
    }
    table = {
        "number": "1",
        "caption": f"Calibration methods on {files.title}.",
        "rows": [[{"method": method} for method in group] for group in methods],
        "columns": [{"label": files.title, "dataset": name, "metrics": list(_METRICS)}],
    }
    profile = {
        "description": f"{files.title} with {declared.label}.",
        "seeds": list(seeds),
        "datasets": {name: name},
        "encoders": {"base": encoder},
        "training": [fitting_settings(n_train, lengths[int(0.99 * (len(lengths) - 1))], declared)],
    }
    return {
        "datasets": {name: dataset},
        "tables": {name: table},
        "profiles": {name: profile},
        "figures": {figure_name(name): _figure(name, [method for group in methods for method in group])},
    }


def _source_and_rows(files: OwnFiles) -> tuple[dict[str, Any], dict[str, list[Row]]]:
    """The source of a data set, and the rows of each split that has a file."""
    kind = format_of(files)
    delimiter = files.delimiter or ("\t" if files.train.suffix.lower() == ".tsv" else ",")
    rows = {
        split: list(read_rows(path, kind, files.text, (files.label,), delimiter)) for split, path in files.paths.items()
    }
    for split, path in files.paths.items():
        if not rows[split]:
            raise UserError(f"{path}: no row in this file.")
    folder = Path(os.path.commonpath([path.parent for path in files.paths.values()]))
    source: dict[str, Any] = {"kind": "files", "folder": str(folder), "format": kind, "delimiter": delimiter}
    source |= {split: [glob.escape(str(path.relative_to(folder)))] for split, path in files.paths.items()}
    return source | {"text": files.text, "intent": [files.label]}, rows


def figure_name(name: str) -> str:
    """What the figure of the entries of that name is called."""
    return f"{name}_more"


def _figure(name: str, methods: Sequence[str]) -> dict[str, Any]:
    """Reliability diagrams of those that no declared figure shows."""
    beyond = [method for method in methods if method not in _IN_EVERY_FIGURE] or list(methods)
    return {
        "kind": "reliability",
        "caption": "Reliability diagrams of the first method and those beyond the paper's.",
        "dataset": name,
        "methods": list(dict.fromkeys([methods[0], *beyond]))[:_PANELS],
    }


def _held_out(files: OwnFiles, train: list[Row]) -> dict[str, int]:
    """How many rows each split that has no file takes of the training file."""
    shares = {"validation": _VALIDATION_SHARE, "test": _TEST_SHARE}
    wanted = {split: max(round(share * len(train)), 1) for split, share in shares.items() if split not in files.paths}
    labels = len({row.label for row in train})
    spare = len(train) - labels  # a label keeps one training row
    if sum(wanted.values()) > spare:
        raise UserError(
            f"{files.train}: {len(train)} rows of {labels} labels are too few to hold out {sum(wanted.values())} "
            "and leave each label one; give more rows, or files of their own by --test-data and --validation-data."
        )
    return wanted

"""Data of the user's own: from a file to the entries in ``experiments/own`` by which all methods are compared on it."""

import glob
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmark.data import Corpus, Row, fetch_hub_splits, load_corpus, read_rows
from benchmark.declarations import BuiltSource, Encoder, PretrainedSource
from benchmark.errors import UserError, nearest
from benchmark.own_settings import estimated_tokens, fitting_settings
from benchmark.pseudo_words import pseudo_words
from benchmark.registry import OWN, Registry, is_taken_by_a_file, load_registry, to_yaml
from benchmark.whole_files import write_whole

SEEDS = (0, 1, 2)  # fewer than two do not tell how far seeds scatter
_TEST_SHARE, _VALIDATION_SHARE = 0.2, 0.1
_METRICS = ("accuracy", "f1", "ece", "top_label_ece", "adaptive_ece", "brier", "nll", "aurc")
# The paper's, and calibrators beyond them, which train nothing (Dirichlet's matrix would grow with the labels' square).
_METHODS = (("bert",), ("ts", "vector", "beta", "isotonic", "histogram"), ("ls", "poscal", "avuc"), ("hs_rau",))
_IN_EVERY_FIGURE = {"bert", "ts", "ls", "poscal", "avuc", "hs_rau"}  # figures.yaml has these
_PANELS = 6
_MOST_UNKNOWN = 0.5  # of the words
_FORMATS = {".csv": "csv", ".tsv": "csv", ".jsonl": "json_lines", ".json": "json_lines", ".parquet": "parquet"}
_HUB_ID = re.compile(r"(?P<id>\w[\w.-]*/\w[\w.-]*)(/(?P<config>\w[\w.-]*))?")
# Then the hash of what follows: a file that was changed since is the user's, and is not written over.
_WRITTEN = "# Written by `python -m benchmark.run --data`, which writes it anew as long as it is as written"
# By which option a part of the written source is given.
_OPTIONS = {
    "text": "--text-column",
    "intent": "--label-column",
    "delimiter": "--delimiter",
    "test": "--test-data",
    "validation": "--validation-data",
}
_LONGEST_NAME = 50  # figures have it with an ending, and names of entries at most 60 letters


@dataclass(frozen=True)
class OwnFiles:
    """Where the rows are, and what they are called. Without test or validation file, rows of the training file are
    held out.
    """

    title: str
    train: Path
    validation: Path | None
    test: Path | None
    text: str
    label: str
    delimiter: str | None = None

    @property
    def paths(self) -> dict[str, Path]:
        """The files that are given, by split."""
        given = {"train": self.train, "validation": self.validation, "test": self.test}
        return {split: path.resolve() for split, path in given.items() if path is not None}


class Written(NamedTuple):
    """The entries for data of the user's own: their name, their file, the data set, their encoder, and the methods and
    the encoder that entries of before were about and these are not.
    """

    name: str
    path: Path
    corpus: Corpus
    encoder: Encoder
    no_more: list[str]


def own_files(
    data: str, validation: str | None, test: str | None, text: str, label: str, delimiter: str | None, cache: Path
) -> OwnFiles:
    """Files by their paths; or, where ``data`` is no file but the id of a data set on the hub (owner/name, or
    owner/name/configuration), its split "train" and the splits that ``validation`` and ``test`` name, fetched into
    ``cache``.
    """
    if text == label:
        raise UserError(f'Text and label cannot both be the column "{text}".')
    hub = _HUB_ID.fullmatch(data)
    if hub and not Path(hub["id"]).parent.exists() and Path(data).suffix.lower() not in _FORMATS:
        if delimiter is not None:
            raise UserError("--delimiter is for a .csv or .tsv file, not for a data set of the hub; leave it out.")
        splits = {"train": "train", "validation": validation, "test": test}
        wanted = {role: split for role, split in splits.items() if split is not None}
        found = fetch_hub_splits(hub["id"], wanted, cache, hub["config"])
        return OwnFiles(data, found["train"], found.get("validation"), found.get("test"), text, label)
    paths = [None if path is None else Path(path) for path in (validation, test)]
    if delimiter is not None:
        delimiter = delimiter.replace("\\t", "\t")
        if len(delimiter) != 1 or delimiter in '"\r\n' or Path(data).suffix.lower() not in (".csv", ".tsv"):
            raise UserError("--delimiter is one character between the values of a .csv or .tsv file.")
    return OwnFiles(Path(data).stem, Path(data), paths[0], paths[1], text, label, delimiter)


def write_own_entries(
    experiments: Path,
    files: OwnFiles,
    name: str | None,
    encoder: str,
    methods: Sequence[str] = (),
    seeds: Sequence[int] = SEEDS,
) -> Written:
    """Write ``own/<name>.yaml``: a data set, a table and a profile of that name. ``methods``: those to compare, the
    first one the baseline; none for the paper's and the calibrators beyond them.

    Raises UserError, and leaves all as it was, for files that cannot be read, a name that is taken, an encoder or
    method that is not declared, rows that cannot be split or compared on.
    """
    name = _name(files.title.partition("/")[2] or files.title) if name is None else name
    path = experiments / OWN / f"{name}.yaml"
    registry = load_registry(experiments)
    _check_name(registry, name, path)
    if encoder not in registry.encoders:
        raise UserError(f'--encoder: there is no encoder "{encoder}"; known: {", ".join(registry.encoders)}.')
    for index, method in enumerate(methods):
        if method in methods[:index]:
            raise UserError(f'--methods: "{method}" is named twice; name it once.')
        if method not in registry.methods.methods:
            known = list(registry.methods.methods)
            raise UserError(f'--methods: there is no method "{method}"; {nearest(method, known)}')
    chosen = (tuple(methods),) if methods else _METHODS
    entries = own_entries(files, name, encoder, registry.encoders[encoder], chosen, seeds)
    there = _entries_before(path, entries["datasets"][name]["source"])
    text = to_yaml(entries)
    before = path.read_bytes().decode() if path.is_file() else None  # its line ends stay as they are
    _write(path, f"{_WRITTEN} ({_hash(text)}).\n{text}")
    try:
        registry = load_registry(experiments)
        if mistake := registry.left_out.get(path):
            raise UserError(f"{files.train}: no entries can be made of it. {mistake}")
        corpus = load_corpus(name, registry.datasets[name], ())
        _check_words(encoder, registry.encoders[encoder].source, corpus.train.texts, files.train)
    except BaseException:
        if before is None:
            path.unlink()
        else:
            _write(path, before)
        raise
    no_more = [] if there is None else _no_more(there, entries, name)
    return Written(name, path, corpus, registry.encoders[encoder], no_more)


def _no_more(there: dict[str, Any], entries: dict[str, Any], name: str) -> list[str]:
    """What the entries of before compare and the new ones do not: methods, an encoder."""

    def compared(content: dict[str, Any]) -> list[str]:
        methods = [row["method"] for group in content["tables"][name]["rows"] for row in group]
        return [*methods, *content["profiles"][name]["encoders"].values()]

    now = compared(entries)
    return [one for one in compared(there) if one not in now]


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode("utf-8"))
    except UnicodeEncodeError:
        raise UserError(f"{str(path)!a}: a path or a column's name here is not Unicode; rename it.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _entries_before(path: Path, source: dict[str, Any]) -> dict[str, Any] | None:
    """The entries that are there from before, if any. UserError where the user has changed them, or they are about
    other data.
    """
    if not path.is_file():
        return None
    first, _, rest = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    if first != f"{_WRITTEN} ({_hash(rest)}).":
        raise UserError(
            f"{path} is there already and is not as this command wrote it: run it by --profile {path.stem}, choose "
            "another --name, or delete it."
        )
    entries: dict[str, Any] = yaml.safe_load(rest)
    there = entries["datasets"][path.stem]["source"]
    other = [key for key in there.keys() | source.keys() if there.get(key) != source.get(key)]
    if {"folder", "train"} & set(other):
        file = Path(there["folder"]) / there["train"][0]
        raise UserError(f'The name "{path.stem}" stands for {file} already; choose another by --name.')
    if other:
        options = " and ".join(sorted(_OPTIONS.get(key, key) for key in other))
        raise UserError(
            f'The name "{path.stem}" stands for the same file with another {options} already; '
            f"choose another by --name, or delete {path}."
        )
    return entries


def own_entries(
    files: OwnFiles,
    name: str,
    encoder: str,
    declared: Encoder,
    methods: Sequence[Sequence[str]] = _METHODS,
    seeds: Sequence[int] = SEEDS,
) -> dict[str, Any]:
    """The entries as plain values, with settings that fit the number and the length of the rows."""
    kind = _format(files)
    delimiter = files.delimiter or ("\t" if files.train.suffix.lower() == ".tsv" else ",")
    rows = {
        split: list(read_rows(path, kind, files.text, (files.label,), delimiter)) for split, path in files.paths.items()
    }
    for split, path in files.paths.items():
        if not rows[split]:
            raise UserError(f"{path}: no row in this file.")
    held_out = _held_out(files, rows["train"])
    n_train = len(rows["train"]) - sum(held_out.values())
    folder = Path(os.path.commonpath([path.parent for path in files.paths.values()]))
    source: dict[str, Any] = {"kind": "files", "folder": str(folder), "format": kind, "delimiter": delimiter}
    source |= {split: [glob.escape(str(path.relative_to(folder)))] for split, path in files.paths.items()}
    lengths = sorted(estimated_tokens(row.text) for row in rows["train"])
    dataset: dict[str, Any] = {
        "label": files.title,
        "source": source | {"text": files.text, "intent": [files.label]},
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
    compared = [method for group in methods for method in group]
    beyond = [method for method in compared if method not in _IN_EVERY_FIGURE] or compared
    figure = {
        "kind": "reliability",
        "caption": "Reliability diagrams of the first method and those beyond the paper's.",
        "dataset": name,
        "methods": list(dict.fromkeys([compared[0], *beyond]))[:_PANELS],
    }
    entries = {"datasets": {name: dataset}, "tables": {name: table}, "profiles": {name: profile}}
    return entries | {"figures": {f"{name}_more": figure}}


def _check_words(name: str, source: PretrainedSource | BuiltSource, texts: Sequence[str], file: Path) -> None:
    """UserError where an encoder that is built here, for generated texts, knows few of the words."""
    if isinstance(source, BuiltSource):
        known = set(pseudo_words(source.vocabulary))
        words = [word for text in texts for word in text.split()]
        unknown = sum(word not in known for word in words)
        if unknown > _MOST_UNKNOWN * len(words):
            raise UserError(
                f'--encoder: "{name}" knows generated words alone, and {unknown / len(words):.0%} of those of {file} '
                "are none; take a pretrained one."
            )


def _check_name(registry: Registry, name: str, path: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or len(name) > _LONGEST_NAME:
        raise UserError(
            f'--name: "{name}" cannot be a name; use small letters, digits and _, a letter first, at most '
            f"{_LONGEST_NAME} in all."
        )
    if is_taken_by_a_file(name):
        raise UserError(f'--name: "{name}" is what another file beside the tables is called; choose another name.')
    if path.is_file():
        return
    for kind, entries in (
        ("data set", registry.datasets),
        ("table", registry.tables),
        ("profile", registry.profiles),
    ):
        if name in entries:
            raise UserError(f'There is a {kind} "{name}" already; choose another name by --name.')


def _name(title: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return (name if re.match("[a-z]", name) else f"data_{name}".rstrip("_"))[:_LONGEST_NAME].rstrip("_")


def _format(files: OwnFiles) -> str:
    found = {}
    for path in files.paths.values():
        if path.is_dir():
            raise UserError(f"{path} is a folder; name the file in it, and those of other splits by --test-data, ....")
        if not path.is_file():
            raise UserError(f"{path} is not a file.")
        if path.suffix.lower() not in _FORMATS:
            raise UserError(f"{path}: the ending must tell the format; known: {', '.join(_FORMATS)}.")
        found[path] = _FORMATS[path.suffix.lower()]
    if len({path.suffix.lower() for path in found}) > 1 and set(found.values()) != {"json_lines"}:
        raise UserError(f"{', '.join(map(str, found))} must have one format.")
    return found[files.paths["train"]]


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

"""``experiments/own/<name>.yaml``: the entries for data of the user's own, written, checked and written anew."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmark.data import Corpus, load_corpus
from benchmark.declarations import BuiltSource, Encoder, PretrainedSource
from benchmark.errors import UserError, nearest
from benchmark.own_data.entries import METHODS, SEEDS, figure_name, own_entries
from benchmark.own_data.files import OwnFiles
from benchmark.pseudo_words import pseudo_words
from benchmark.registry import OWN, Registry, is_reserved, load_registry, to_yaml
from benchmark.whole_files import write_whole

_MOST_UNKNOWN = 0.5  # of the words
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


class Written(NamedTuple):
    """The entries for data of the user's own: their name, their file, the data set, their encoder, and the methods and
    the encoder that entries of before were about and these are not.
    """

    name: str
    path: Path
    corpus: Corpus
    encoder: Encoder
    no_more: list[str]


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
            hint = nearest(method, registry.methods.methods)
            raise UserError(f'--methods: there is no method "{method}"; {hint}')
    chosen = (tuple(methods),) if methods else METHODS
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


def declares_profile(own_folder: Path, name: str) -> bool:
    """Whether the profile of that name is one of the user's own data: declared in the file that bears its name."""
    path = own_folder / f"{name}.yaml"
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, yaml.YAMLError):  # not there, or left out
        return False
    return isinstance(entries, dict) and name in (entries.get("profiles") or {})


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
        raise UserError(
            f"{str(path)!a}: a path or a column's name here is not Unicode; rename it, or set PYTHONUTF8=1."
        ) from None
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
    file = Path(there["folder"]) / there["train"][0]
    if file != Path(source["folder"]) / source["train"][0]:
        raise UserError(f'The name "{path.stem}" stands for {file} already; choose another by --name.')
    other = [key for key in there.keys() | source.keys() if _part(there, key) != _part(source, key)]
    if other:
        options = " and ".join(sorted(_OPTIONS.get(key, key) for key in other))
        raise UserError(
            f'The name "{path.stem}" stands for the same file with another {options} already; '
            f"choose another by --name, or delete {path}."
        )
    return entries


def _part(source: dict[str, Any], key: str) -> Any:
    """A part of a source, files from the root: the folder of them all is another one where a file is added."""
    if key == "folder":
        return None
    if key in ("train", "validation", "test"):
        return [Path(source["folder"]) / file for file in source.get(key) or []]
    return source.get(key)


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
    if is_reserved(name):
        raise UserError(
            f'--name: "{name}" is what another file beside the tables is called, or all of them; choose another name.'
        )
    if path.is_file():
        return
    for kind, entries, written in (
        ("data set", registry.datasets, name),
        ("table", registry.tables, name),
        ("profile", registry.profiles, name),
        ("figure", registry.figures, figure_name(name)),
    ):
        if written in entries:
            raise UserError(f'There is a {kind} "{written}" already; choose another name by --name.')


def _name(title: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return (name if re.match("[a-z]", name) else f"data_{name}".rstrip("_"))[:_LONGEST_NAME].rstrip("_")

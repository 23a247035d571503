"""``experiments/*.yaml`` to a validated registry; every mistake in them is one sentence with file, line and key."""

from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from benchmark.declarations import (
    ClaimsFile,
    Dataset,
    Encoder,
    Method,
    MethodsFile,
    MetricsFile,
    Profile,
    Search,
    Table,
)
from benchmark.declarations.figures import Figure
from benchmark.errors import UserError
from benchmark.own_code import source_hash
from benchmark.registry.contents import Registry
from benchmark.registry.mistakes import explained, written
from benchmark.registry.references import wrong_references
from benchmark.registry.yaml_files import Key, dotted, read_yaml
from benchmark.specs import Calibrator, Declared, Head, LossTerm, Name, OwnFunction

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
OWN = "own"  # the folder in it of the user's entries


class _DatasetsFile(Declared):
    datasets: dict[Name, Dataset]


class _EncodersFile(Declared):
    encoders: dict[Name, Encoder]


class _TablesFile(Declared):
    tables: dict[Name, Table]


class _FiguresFile(Declared):
    figures: dict[Name, Figure]


class _ProfilesFile(Declared):
    profiles: dict[Name, Profile]


class _SearchesFile(Declared):
    searches: dict[Name, Search]


class _OwnFile(Declared):
    """Entries of a user's own beside the registry's, any of them."""

    datasets: dict[Name, Dataset] = Field(default={})
    encoders: dict[Name, Encoder] = Field(default={})
    heads: dict[Name, Head] = Field(default={})
    losses: dict[Name, LossTerm] = Field(default={})
    calibrators: dict[Name, Calibrator] = Field(default={})
    methods: dict[Name, Method] = Field(default={})
    tables: dict[Name, Table] = Field(default={})
    figures: dict[Name, Figure] = Field(default={})
    profiles: dict[Name, Profile] = Field(default={})
    searches: dict[Name, Search] = Field(default={})


class _PaperFile(Declared):
    """The paper's printed numbers: table, row, column label, metric."""

    source: str
    tables: dict[Name, dict[str, dict[str, dict[Name, float]]]]


def load_registry(folder: Path = EXPERIMENTS) -> Registry:
    """Read and check the registry: its files, and entries of the user's own in ``own/*.yaml`` of the folder.

    Raises UserError holding one sentence for each mistake in the registry's files, a line each: unknown key or name
    (with the nearest valid one), wrong type, a value out of range, a number that YAML reads as text. A file of own
    entries with a mistake, or with a name that is taken, is left out, so that it stops nothing but itself; what is
    wrong with it stands in ``Registry.left_out``.
    """
    files = {name: _File(folder / f"{name}.yaml", model) for name, model in _MODELS.items()}
    own, left_out = [], {}
    for path in sorted((*(folder / OWN).glob("*.yaml"), *(folder / OWN).glob("*.yml"))):
        try:
            own.append(_File(path, _OwnFile))
        except UserError as error:
            left_out[path] = str(error)
    accepted, mistakes = _without_mistakes(folder, files, own, bool(left_out))
    return _assembled(folder, files, accepted, left_out | mistakes)


def _without_mistakes(
    folder: Path, files: dict[str, "_File"], own: list["_File"], others_left_out: bool
) -> tuple[list["_File"], dict[Path, str]]:
    """Those of the own files that can stand beside the registry's and each other, and what is wrong with the others.

    Files that have mistakes when all are together are left out, then those that stood on them, and so on. Where that
    leaves none to blame (two files say the same name, say), files are added one at a time. Of a file that may have
    stood on one left out before it, a single sentence is kept: the others would hide the one that matters.
    """
    accepted, mistakes = list(own), dict[Path, str]()
    while accepted:
        try:
            _assembled(folder, files, accepted, {})
            return accepted, mistakes
        except UserError as error:
            blamed = {file.path: _of_file(str(error), file.path) for file in accepted}
            wrong = {path: sentence for path, sentence in blamed.items() if sentence}
            if not wrong:
                break
            if mistakes or others_left_out:
                wrong = {path: _first_of(sentences) for path, sentences in wrong.items()}
            mistakes |= wrong
            accepted = [file for file in accepted if file.path not in wrong]
    return _one_at_a_time(folder, files, [file for file in own if file.path not in mistakes], mistakes)


def _first_of(sentences: str) -> str:
    first, *others = sentences.splitlines()
    return f"{first} And {len(others)} more, which may all come from the files left out before." if others else first


def _of_file(sentences: str, path: Path) -> str:
    """Those of the sentences, a line each, that are about a file."""
    return "\n".join(line for line in sentences.splitlines() if line.startswith(f"{path}:"))


def _one_at_a_time(
    folder: Path, files: dict[str, "_File"], own: list["_File"], mistakes: dict[Path, str]
) -> tuple[list["_File"], dict[Path, str]]:
    accepted: list[_File] = []
    found: dict[Path, str] = {}
    pending, before = own, -1
    while pending and len(accepted) > before:  # again and again, for one may need another's entries
        before = len(accepted)
        for file in pending:
            try:
                _assembled(folder, files, [*accepted, file], {})
                accepted.append(file)
            except UserError as error:
                found[file.path] = str(error)
        pending = [file for file in pending if file not in accepted]
    return accepted, mistakes | {file.path: found[file.path] for file in pending}


def _assembled(folder: Path, files: dict[str, "_File"], own: list["_File"], left_out: dict[Path, str]) -> Registry:
    """The registry of these files, its names checked against each other."""

    def entries(file: str, kind: str) -> dict[str, Any]:
        return _merged(kind, [files[file], *own])

    def place(file: str, at: tuple[Key, ...]) -> str:
        holder = next((one for one in own if file != "paper" and at[:2] in one.lines), files[file])
        return holder.place(at)

    parts = {kind: entries("methods", kind) for kind in ("heads", "losses", "calibrators", "methods")}
    for kind in ("heads", "losses", "calibrators"):
        for name, entry in parts[kind].items():
            if isinstance(entry, OwnFunction):
                parts[kind][name] = _hashed(entry, folder / OWN, place("methods", (kind, name, "function")))
    metrics, claims = files["metrics"].content, files["claims"].content
    registry = Registry(
        datasets=entries("datasets", "datasets"),
        encoders=entries("encoders", "encoders"),
        methods=MethodsFile(**parts),
        metrics=metrics.metrics,
        scoring=metrics.scoring,
        tables=entries("tables", "tables"),
        figures=entries("figures", "figures"),
        profiles=entries("profiles", "profiles"),
        searches=entries("searches", "searches"),
        paper=files["paper"].content.tables,
        claims=claims.claims,
        tolerance=claims.tolerance,
        left_out=left_out,
    )
    mistakes = wrong_references(registry, place)
    if mistakes:
        raise UserError("\n".join(mistakes))
    return registry


def _hashed(entry: OwnFunction, folder: Path, place: str) -> OwnFunction:
    """The entry with the hash of its function's source, which becomes part of what a run is."""
    try:
        found = source_hash(entry.function, folder, entry.n_arrays, entry.settings)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    if entry.sha256 not in (None, found):
        raise UserError(f"{place}: the source of {entry.function} is another one than its sha256 says: {found}.")
    return entry.model_copy(update={"sha256": found})


def _merged(kind: str, files: list["_File"]) -> dict[str, Any]:
    """The entries of a kind from several files; no name may be in two of them."""
    merged: dict[str, Any] = {}
    holders: dict[str, _File] = {}
    for file in files:
        for name, entry in getattr(file.content, kind).items():
            if name in merged:
                there = holders[name].place((kind, name)).rpartition(":")[0]
                raise UserError(f"{file.place((kind, name))}: the name is taken by {there}; choose another.")
            merged[name], holders[name] = entry, file
    return merged


_MODELS: dict[str, type[Declared]] = {
    "datasets": _DatasetsFile,
    "encoders": _EncodersFile,
    "methods": MethodsFile,
    "metrics": MetricsFile,
    "tables": _TablesFile,
    "figures": _FiguresFile,
    "profiles": _ProfilesFile,
    "searches": _SearchesFile,
    "paper": _PaperFile,
    "claims": ClaimsFile,
}


class _File:
    """One registry file, validated, with the line of each key."""

    def __init__(self, path: Path, model: type[Declared]) -> None:
        self.path = path
        values, self.lines = read_yaml(path)
        try:
            self.content: Any = TypeAdapter(model).validate_python(values)
        except ValidationError as error:
            found = explained(error.errors(), self.lines)
            sentences = [f"{self.place(at)}: {said}{'' if said.endswith(('?', '.')) else '.'}" for at, said in found]
            raise UserError("\n".join(sentences)) from None

    def place(self, at: tuple[Key, ...]) -> str:
        """``file:line: key`` of the deepest part of ``at`` that the file holds (models add parts of their own)."""
        found = written(at, self.lines)
        return f"{self.path}:{self.lines.get(found, 1)}: {dotted(found)}"

"""``experiments/*.yaml`` to a validated registry; every mistake in them is one sentence with file, line and key."""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from benchmark.declarations import (
    ClaimsFile,
    Dataset,
    Encoder,
    MethodsFile,
    MetricsFile,
    Profile,
    Table,
)
from benchmark.declarations.figures import Figure
from benchmark.errors import UserError
from benchmark.registry.contents import Registry
from benchmark.registry.references import wrong_references
from benchmark.registry.yaml_files import Key, Lines, dotted, read_yaml
from benchmark.specs import Declared, Name

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


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


class _PaperFile(Declared):
    """The paper's printed numbers: table, row, column label, metric."""

    source: str
    tables: dict[Name, dict[str, dict[str, dict[Name, float]]]]


def load_registry(folder: Path = EXPERIMENTS) -> Registry:
    """Read and check the registry.

    Raises UserError holding one sentence for each mistake, a line each: unknown key or name (with the nearest valid
    one), wrong type, a value out of range, a number that YAML reads as text.
    """
    files = [_File(folder / f"{name}.yaml", model) for name, model in _MODELS.items()]
    datasets, encoders, methods, metrics, tables, figures, profiles, paper, claims = (file.content for file in files)
    registry = Registry(
        datasets.datasets,
        encoders.encoders,
        methods,
        metrics.metrics,
        metrics.scoring,
        tables.tables,
        figures.figures,
        profiles.profiles,
        paper.tables,
        claims.claims,
        claims.tolerance,
    )
    by_name = {file.path.stem: file for file in files}
    mistakes = wrong_references(registry, lambda file, at: by_name[file].place(at))
    if mistakes:
        raise UserError("\n".join(mistakes))
    return registry


_MODELS: dict[str, type[Declared]] = {
    "datasets": _DatasetsFile,
    "encoders": _EncodersFile,
    "methods": MethodsFile,
    "metrics": MetricsFile,
    "tables": _TablesFile,
    "figures": _FiguresFile,
    "profiles": _ProfilesFile,
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
            raise UserError("\n".join(dict.fromkeys(self._sentence(item) for item in error.errors()))) from None

    def place(self, at: tuple[Key, ...]) -> str:
        """``file:line: key`` of the deepest part of ``at`` that the file holds (models add parts of their own)."""
        return f"{self.path}:{_line(self.lines, at)}: {dotted(_written(self.lines, at))}"

    def _sentence(self, item: Any) -> str:
        at = tuple(item["loc"])
        message = item["msg"][0].lower() + item["msg"][1:]
        if item["type"] == "unknown_key":
            at = (*_written(self.lines, at), item["ctx"]["key"])
        elif item["type"] == "union_tag_not_found":
            message = f"the key {item['ctx']['discriminator']} is missing"
        elif item["type"] != "missing" and not isinstance(item["input"], dict | list):
            message += f", not {item['input']!r}"
        return f"{self.place(at)}: {message}."


def _written(lines: Lines, at: tuple[Key, ...]) -> tuple[Key, ...]:
    """The parts of a validation path that the author wrote; the tags of unions are not among them."""
    found: tuple[Key, ...] = ()
    for part in at:
        if (*found, part) in lines:
            found = (*found, part)
    return found


def _line(lines: Lines, at: tuple[Key, ...]) -> int:
    return lines.get(_written(lines, at), 1)

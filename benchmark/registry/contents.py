"""All that ``experiments/`` declares, as one object."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmark.declarations import (
    Claim,
    Dataset,
    Encoder,
    MethodsFile,
    Metric,
    Profile,
    Scoring,
    Search,
    Table,
    Tolerance,
)
from benchmark.declarations.figures import AnyFigure
from benchmark.errors import UserError, nearest

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Registry:
    """All that ``experiments/`` declares, its names checked against each other."""

    datasets: dict[str, Dataset]
    encoders: dict[str, Encoder]
    methods: MethodsFile
    metrics: dict[str, Metric]
    scoring: Scoring
    tables: dict[str, Table]
    figures: dict[str, AnyFigure]
    profiles: dict[str, Profile]
    searches: dict[str, Search]
    paper: dict[str, dict[str, dict[str, dict[str, float]]]]
    claims: dict[str, Claim]
    tolerance: Tolerance
    left_out: dict[Path, str] = field(default_factory=dict)  # files of own entries with mistakes, and which

    def profile(self, name: str) -> Profile:
        """The profile of that name; UserError with the nearest name if there is none, and with the mistake of the file
        of own entries that bears its name, if that was left out.
        """
        for path, mistake in self.left_out.items():
            if path.stem == name and name not in self.profiles:
                raise UserError(f'there is no profile "{name}": its file is left out. {mistake.splitlines()[0]}')
        return _named(self.profiles, name, "profile")

    def dataset_label(self, profile: Profile, role: str) -> str:
        """The label of the data set that stands behind a table's name for one in this profile."""
        return self.datasets[profile.datasets[role]].label

    @property
    def method_labels(self) -> dict[str, str]:
        """What to call each method where those of several tables stand together: its label; where another one bears the
        same, with its name after it.
        """
        labels = {name: method.label for name, method in self.methods.methods.items()}
        times = Counter(labels.values())
        return {name: label if times[label] == 1 else f"{label} ({name})" for name, label in labels.items()}

    @property
    def measures(self) -> frozenset[str]:
        """The scores that every view should have."""
        return frozenset(metric.score for metric in self.metrics.values())

    def search(self, name: str) -> Search:
        """The search of that name; UserError with the nearest name if there is none."""
        return _named(self.searches, name, "search")


def row_key(method: str, encoder: str) -> str:
    """The name of a table's row in the paper's numbers: the method, after the encoder's role if it is not the base."""
    return method if encoder == "base" else f"{encoder} {method}"


def _named(entries: dict[str, Entry], name: str, what: str) -> Entry:
    require_known([name], entries, what)
    return entries[name]


def require_known(names: Iterable[str], known: Collection[str], what: str) -> None:
    """Raises UserError for a name that is not among those known, with the nearest one."""
    for name in names:
        if name not in known:
            raise UserError(f'there is no {what} "{name}"; {nearest(name, known)}')

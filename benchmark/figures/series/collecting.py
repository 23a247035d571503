"""What the results at hand have of some methods on one data set, seed by seed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmark.registry import Subject
from benchmark.tables import ResultFinder, Scored


@dataclass(frozen=True)
class MethodResults:
    """One method on one data set: its results, one a seed that has any; why there is none, where there is none."""

    method: str
    label: str
    scored: tuple[Scored, ...]
    why_missing: str | None = None

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(scored.result.run.seed for scored in self.scored)

    def score(self, name: str) -> tuple[float, ...]:
        """A score in percent, one value a seed."""
        return tuple(100 * scored.view.scores[name] for scored in self.scored)


@dataclass(frozen=True)
class Source:
    """Where a figure's numbers come from: the results at hand, of these seeds. ``labels``: what to call each method."""

    finder: ResultFinder
    seeds: tuple[int, ...]
    labels: Mapping[str, str]

    def methods(
        self, dataset: str, encoder: str, names: Sequence[str], corruption: float = 0.0
    ) -> tuple[MethodResults, ...]:
        """The results of each method on a data set (by its role) and encoder role, in the order given."""
        return tuple(self._method(Subject(dataset, encoder, name, corruption)) for name in names)

    def _method(self, subject: Subject) -> MethodResults:
        found = [self.finder.scored(subject, seed) for seed in self.seeds]
        scored = tuple(item for item in found if isinstance(item, Scored))
        why = next((item for item in found if isinstance(item, str)), "no result")
        return MethodResults(subject.method, self.labels[subject.method], scored, None if scored else why)


def fewer_seeds(found: Iterable[tuple[str, Sequence[int]]]) -> list[str]:
    """Half a sentence for each label that has fewer than all seeds that any of them has: "PosCal n = 2"."""
    counted = [(label, set(seeds)) for label, seeds in found if seeds]
    every = set().union(*(seeds for _, seeds in counted))
    return [f"{label} n = {len(seeds)}" for label, seeds in counted if seeds < every]

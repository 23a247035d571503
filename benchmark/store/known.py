"""The results at hand, to be looked up by the run that they are of."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from benchmark.specs import RunSpec, identity, own_functions, recipe_identity, without_sources
from benchmark.store.outline import Outline
from benchmark.store.result import Result

Known = TypeVar("Known", bound=Result | Outline, covariant=True)


class KnownResults(Generic[Known]):
    """Results or their outlines, successes and failures, found by run or, where an input's content is not known here,
    by recipe.
    """

    def __init__(self, by_run: Mapping[str, Known], with_logits: frozenset[str]) -> None:
        self.by_run = by_run
        self.with_logits = with_logits

    @staticmethod
    def of(results: Iterable[Known], with_logits: Iterable[str] = ()) -> "KnownResults[Known]":
        return KnownResults({result.run_id: result for result in results}, frozenset(with_logits))

    @cached_property
    def by_recipe(self) -> dict[str, list[Known]]:
        """Results by recipe; made when it is needed, for with thousands of results that takes seconds."""
        found: dict[str, list[Known]] = {}
        for result in self.by_run.values():
            found.setdefault(recipe_identity(result.run), []).append(result)
        return found

    def find(self, run: RunSpec) -> Known | None:
        """The result of a run. A fingerprint that the run leaves open (None) is taken from the results if they agree
        on it.
        """
        if run.data.fingerprint is not None and run.encoder.fingerprint is not None:
            return self.by_run.get(identity(run))
        fitting = [result for result in self.by_recipe.get(recipe_identity(run), ()) if _fits(run, result.run)]
        return fitting[0] if len(fitting) == 1 else None

    @cached_property
    def _without_sources(self) -> set[RunSpec]:
        done = (one.run for one in self.by_run.values() if one.status == "success")
        return {without_sources(run) for run in done if own_functions(run)}

    def has_of_other_source(self, run: RunSpec) -> bool:
        """Whether there is a success of the run but for the source of the user's own functions in it, which with that
        source there is not, whatever its inputs.
        """
        if not own_functions(run) or self.by_recipe.get(recipe_identity(run)):
            return False
        return without_sources(run) in self._without_sources


def _fits(run: RunSpec, other: RunSpec) -> bool:
    return all(
        ours is None or ours == theirs
        for ours, theirs in (
            (run.data.fingerprint, other.data.fingerprint),
            (run.encoder.fingerprint, other.encoder.fingerprint),
        )
    )

"""From a subject and a seed to the result behind it, or the reason why there is none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmark.errors import UserError, first_line
from benchmark.registry import Inputs, Registry, Subject, is_offered, method_view, resolve_run
from benchmark.specs import DeepEnsemble, RunSpec, ViewSpec, identity
from benchmark.store import DataRecord, KnownResults, Result, ViewRecord


@dataclass(frozen=True)
class Scored:
    """A successful result, its data, and the view of it that a subject asks for."""

    result: Result
    data: DataRecord
    view: ViewRecord


class ResultFinder:
    """Finds the results of one profile among those at hand."""

    def __init__(self, registry: Registry, profile_name: str, finished: KnownResults[Result], inputs: Inputs) -> None:
        self.registry = registry
        self.profile_name = profile_name
        self.profile = registry.profile(profile_name)
        self.finished = finished
        self.inputs = inputs
        # tables ask for the same ones again and again, with thousands of results for most of the time
        self._runs: dict[Subject, RunSpec | str] = {}  # of seed 0
        self._views: dict[str, ViewSpec] = {}  # by method
        self._scored: dict[tuple[Subject, int], Scored | str] = {}

    def scored(self, subject: Subject, seed: int) -> Scored | str:
        """The result and view of a subject, or half a sentence that says why there is none."""
        key = (subject, seed)
        if key not in self._scored:
            self._scored[key] = self._find(subject, seed)
        return self._scored[key]

    def by_seed(self, subject: Subject, seeds: Iterable[int]) -> dict[int, Scored]:
        """What there is of a subject, by seed."""
        found = {seed: self.scored(subject, seed) for seed in seeds}
        return {seed: one for seed, one in found.items() if isinstance(one, Scored)}

    def _find(self, subject: Subject, seed: int) -> Scored | str:
        result = self.result(subject, seed)
        if isinstance(result, str):
            return result
        view = result.view(self._view(subject))
        if view is None:
            return self._why_unscored(subject, result)
        if self.is_stale(view):
            return "one of its runs was made again since; benchmark.run scores it anew"
        assert result.data is not None, "a successful result has data"
        return Scored(result, result.data, view)

    def _run(self, subject: Subject) -> RunSpec | str:
        if subject not in self._runs:
            try:
                self._runs[subject] = resolve_run(self.registry, self.profile_name, subject, 0, self.inputs)
            except UserError as error:
                self._runs[subject] = f"it cannot be trained: {first_line(error)}"
        return self._runs[subject]

    def is_stale(self, view: ViewRecord) -> bool:
        """Whether an ensemble is of other logits than its members have now."""
        present = [(member, self.finished.by_run.get(member.run_id)) for member in view.members]
        return any(
            result is not None and result.logits is not None and result.logits.sha256 != member.logits
            for member, result in present
        )

    def _view(self, subject: Subject) -> ViewSpec:
        if subject.method not in self._views:
            self._views[subject.method] = method_view(self.registry, subject.method)
        return self._views[subject.method]

    def _why_unscored(self, subject: Subject, result: Result) -> str:
        view, seed = self._view(subject), result.run.seed
        calibrator = view.calibrator
        if isinstance(calibrator, DeepEnsemble):
            members = calibrator.seeds(seed)
            if not members:
                return "an ensemble starts at another seed"
            return f"an ensemble of seeds {members[0]} to {members[-1]}, which benchmark.run makes where it makes all"
        if because := result.unscored_because.get(identity(view)):
            return f"it could not be scored: {because.rstrip('.')}"
        return "not scored yet; benchmark.run does it, or says why it cannot"

    def seeds(self, subject: Subject, seeds: Sequence[int]) -> tuple[int, ...]:
        """The seeds that the subject has a view for: all, or where it is an ensemble those that one starts at."""
        calibrator = self._view(subject).calibrator
        if not isinstance(calibrator, DeepEnsemble):
            return tuple(seeds)
        return tuple(seed for seed in seeds if calibrator.seeds(seed))

    def trainings(self, subject: Subject) -> int:
        """How many trainings are behind one value of the subject."""
        calibrator = self._view(subject).calibrator
        return calibrator.members if isinstance(calibrator, DeepEnsemble) else 1

    def result(self, subject: Subject, seed: int) -> Result | str:
        """The successful result of a subject, or half a sentence that says why there is none."""
        if not is_offered(self.profile, subject):
            return f"not in profile {self.profile_name}"
        run = self._run(subject)
        if isinstance(run, str):
            return run
        of_seed = run.model_copy(update={"seed": seed})
        result = self.finished.find(of_seed)
        if result is None and self.finished.has_of_other_source(of_seed):
            return "its function has changed since; benchmark.run trains it anew"
        if result is None:
            return "no result"
        if result.status == "failed":
            return f"the run failed ({result.failure.kind if result.failure else 'unknown'})"
        return result

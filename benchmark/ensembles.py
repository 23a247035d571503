"""Deep ensembles: views of several runs that differ in their seed, scored from stored logits; nothing is trained."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmark.declarations import Table
from benchmark.errors import UserError
from benchmark.metrics import softmax
from benchmark.registry import Inputs, Registry, is_offered, method_view, resolve_run, table_subjects
from benchmark.scoring import score_all
from benchmark.specs import DeepEnsemble, RunSpec, ViewSpec
from benchmark.store import (
    HELD,
    SCORING_PATIENCE,
    KnownResults,
    Logits,
    Member,
    Outline,
    ResultFolder,
    claim,
    has_measures,
)


@dataclass(frozen=True)
class Ensemble:
    """A view, the runs that it is of (it is stored with the first), and the scores that it should have."""

    view: ViewSpec
    runs: tuple[RunSpec, ...]
    measures: frozenset[str]


def ensembles(
    registry: Registry, profile_name: str, tables: Mapping[str, Table], seeds: Iterable[int], inputs: Inputs
) -> Iterator[Ensemble]:
    """The ensembles that the tables ask for and whose seeds are all among ``seeds``."""
    wanted = frozenset(seeds)
    profile = registry.profile(profile_name)
    subjects = {subject for table in tables.values() for subject in table_subjects(registry, table)}
    for subject in sorted(subjects, key=str):
        view = method_view(registry, subject.method)
        if not isinstance(view.calibrator, DeepEnsemble) or not is_offered(profile, subject):
            continue
        for first in sorted(wanted):
            members = view.calibrator.seeds(first)
            if members and wanted.issuperset(members):
                runs = tuple(resolve_run(registry, profile_name, subject, seed, inputs) for seed in members)
                yield Ensemble(view, runs, registry.measures)


@dataclass
class EnsembleScores:
    """How many ensembles were scored, the results whose logits are not at hand, for which ensembles wait, and a
    sentence for each ensemble that could not be scored.
    """

    count: int = 0
    lacking: list[Outline] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def score_ensembles(
    folder: ResultFolder, wanted: Iterable[Ensemble], finished: KnownResults[Outline]
) -> EnsembleScores:
    """Score the ensembles whose runs are all done and that are not scored yet, or were before a run was made again."""
    scored = EnsembleScores()
    for ensemble in wanted:
        results = [finished.find(run) for run in ensemble.runs]
        done = [result for result in results if result is not None and result.status == "success" and result.logits]
        if len(done) < len(ensemble.runs):
            continue
        try:
            with claim(folder.claims, done[0].run, SCORING_PATIENCE) as ours:
                if ours:
                    _score(folder, ensemble, done, scored)
                else:
                    scored.failures.append(f"{folder.path(done[0].run)}: {HELD}")
        except UserError as error:
            scored.failures.append(str(error))
    return scored


def _score(folder: ResultFolder, ensemble: Ensemble, done: Sequence[Outline], scored: EnsembleScores) -> None:
    """Score one ensemble, where it is not up to date, and add what came of it to ``scored``."""
    members = [Member(run_id=result.run_id, logits=result.logits.sha256) for result in done if result.logits]
    first = folder.whole(done[0])
    known = first.view(ensemble.view)
    up_to_date = known is not None and known.members == members and has_measures(known, ensemble.measures)
    if first.logits != done[0].logits or up_to_date:
        return
    stored = [folder.read_logits(result) for result in done]
    logits = [one for one in stored if one is not None]
    if len(logits) < len(members):
        # as for a single run, a measure that came later is no reason to train again
        if known is None or known.members != members:
            scored.lacking += [result for result, one in zip(done, stored, strict=True) if one is None]
        return
    assert first.data is not None, "a successful result has data"
    records, failures = score_all([ensemble.view], combined(logits), first.data)
    scored.failures += [f"{folder.path(first.run)}: {failure}" for failure in failures.values()]
    new = [record.model_copy(update={"members": members}) for record in records]
    folder.save(first.with_views(new))
    scored.count += len(new)


def ensemble_sizes(registry: Registry, tables: Mapping[str, Table]) -> set[int]:
    """The sizes of the ensembles that the tables ask for."""
    subjects = (subject for table in tables.values() for subject in table_subjects(registry, table))
    views = [method_view(registry, method) for method in {subject.method for subject in subjects}]
    return {view.calibrator.members for view in views if isinstance(view.calibrator, DeepEnsemble)}


def combined(members: list[Logits]) -> Logits:
    """The logarithm of the members' mean probabilities, with the labels of the first.

    Source: Lakshminarayanan et al., 2017 (eq. in section 2.4: the mixture of the members' predictions).
    """
    first = members[0]
    return Logits(
        _mean_log_probabilities([one.validation_logits for one in members]),
        first.validation_labels,
        _mean_log_probabilities([one.test_logits for one in members]),
        first.test_labels,
    )


def _mean_log_probabilities(logits: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    mean = np.mean([softmax(one) for one in logits], axis=0)
    smallest = np.finfo(np.float64).tiny
    found: NDArray[np.float32] = np.log(np.maximum(mean, smallest)).astype(np.float32)
    return found

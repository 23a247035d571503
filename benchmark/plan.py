"""What to do, and why: the union of the runs that tables need, each trained, scored again, or skipped. Pure: opens
and prints nothing.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Literal

from benchmark.declarations import Dataset, Encoder, Table
from benchmark.registry import (
    Inputs,
    Registry,
    Subject,
    calibrator_of,
    composition,
    is_offered,
    method_view,
    resolve_run,
    run_if_whole,
    table_subjects,
    validation_view,
)
from benchmark.specs import (
    DeepEnsemble,
    McDropout,
    RunSpec,
    ViewSpec,
    identity,
    recipe_identity,
)
from benchmark.store import KnownResults, Outline, Result

Action = Literal["train", "score", "skip"]


@dataclass(frozen=True)
class PlannedRun:
    """One run: what to do with it and why, the views to have in the end, and who asks for it."""

    run: RunSpec
    views: tuple[ViewSpec, ...]
    action: Action
    reason: str
    methods: tuple[str, ...]
    tables: tuple[str, ...]
    dataset: Dataset
    encoder: Encoder
    asked: tuple[ViewSpec, ...] = ()  # those of the views that the tables given ask for
    settings: str = ""  # in words, where a search varies some
    measures: frozenset[str] = frozenset()  # the scores that a view should have

    @property
    def run_id(self) -> str:
        return identity(self.run)


def make_plan(
    registry: Registry,
    profile_name: str,
    tables: Mapping[str, Table],
    seeds: Iterable[int],
    inputs: Inputs,
    finished: KnownResults[Outline | Result],
    redo: bool = False,
    leave_out: bool = False,
) -> list[PlannedRun]:
    """The runs that the tables need, once each, seed by seed and, within a seed, input by input.

    ``redo`` trains finished runs again. Views are those that any table asks of a run that the profile has a part of,
    optional ones left out, and the tables given: a view costs little beside a training, and the next table then finds
    it. But only what the tables given ask for is a reason to train again a run whose logits are gone. Passes with
    dropout, which only a training makes, are asked for by the tables given alone. What a run that is trained again has
    of views that are still declared, it has afterwards, too.

    Raises UserError where the settings of a run are not whole, or do not go together; with ``leave_out`` such runs are
    left out.
    """
    wanted: dict[Subject, dict[str, None]] = {}
    for name, table in tables.items():
        for subject in table_subjects(registry, table):
            wanted.setdefault(subject, {})[name] = None
    profile = registry.profile(profile_name)
    common = {
        subject.method
        for table in registry.tables.values()
        if not table.optional
        for subject in table_subjects(registry, table)
        if is_offered(profile, subject) and not isinstance(calibrator_of(registry, subject.method), McDropout)
    }
    by_run: dict[RunSpec, list[Subject]] = {}  # of the first seed: those of another seed differ in nothing else
    order = list(dict.fromkeys(seeds))
    for subject in wanted if order else ():
        if not is_offered(profile, subject):
            continue
        resolve = run_if_whole if leave_out else resolve_run
        if (run := resolve(registry, profile_name, subject, order[0], inputs)) is not None:
            by_run.setdefault(run, []).append(subject)
    firsts = [
        _undecided(registry, run, subjects, wanted, common)
        for run, subjects in sorted(by_run.items(), key=lambda item: _input_order(item[0]))
    ]
    return [_decided(registry, finished, first, seed, redo) for seed in order for first in firsts]


def _undecided(
    registry: Registry,
    run: RunSpec,
    subjects: list[Subject],
    wanted: Mapping[Subject, Mapping[str, None]],
    common: Set[str],
) -> PlannedRun:
    """The run, before a look at what is finished."""
    asked = {subject.method for subject in subjects}
    return PlannedRun(
        run=run,
        views=_views(registry, subjects[0].method, common | asked),
        asked=_views(registry, subjects[0].method, asked),
        action="train",
        reason="no result yet",
        methods=tuple(dict.fromkeys(subject.method for subject in subjects)),
        tables=tuple(dict.fromkeys(table for subject in subjects for table in wanted[subject])),
        dataset=registry.datasets[run.data.dataset],
        encoder=registry.encoders[run.encoder.encoder],
        measures=registry.measures,
    )


def _decided(
    registry: Registry,
    finished: KnownResults[Outline | Result],
    planned: PlannedRun,
    seed: int,
    redo: bool,
) -> PlannedRun:
    planned = replace(planned, run=planned.run.model_copy(update={"seed": seed}))
    result = finished.find(planned.run)
    action, reason = _decide(finished, planned, result, redo)
    views = planned.views
    if action == "train" and result is not None:  # which the next one replaces
        views = tuple(dict.fromkeys([*views, *_held(registry, planned, result)]))
    return replace(planned, views=views, action=action, reason=reason)


def _decide(
    finished: KnownResults[Outline | Result],
    planned: PlannedRun,
    result: Result | Outline | None,
    redo: bool,
) -> tuple[Action, str]:
    if result is None:
        if finished.by_recipe.get(recipe_identity(planned.run)):
            return "train", "other data or encoder weights than the result at hand"
        changed = finished.has_of_other_source(planned.run)
        return "train", "its function is another one than that of the result at hand" if changed else "no result yet"
    if redo:
        return "train", "asked to do it again"
    if result.status == "failed":
        return "train", f"failed before ({result.failure.kind if result.failure else 'unknown'})"
    has_logits = result.run_id in finished.with_logits
    # a measure that came later is no reason to train again, which a table says for itself
    missing = result.unscored(planned.views, planned.measures) if has_logits else result.unscored(planned.asked)
    if not missing:
        return "skip", "done"
    if len(result.scorable(missing)) < len(missing):
        return "train", "passes with dropout are asked for, which only a training makes"
    if has_logits:
        return "score", f"{len(missing)} of {len(planned.views)} views not scored yet"
    return "train", "another scoring is asked for, and its logits are not here"


def _views(registry: Registry, method: str, asked: Set[str]) -> tuple[ViewSpec, ...]:
    """The plain views of both splits, and the test view of every method asked for that is the method's run with a
    calibrator on top.
    """
    methods = registry.methods.methods
    own = composition(registry, method)
    views = [
        method_view(registry, name)
        for name in methods
        if name in asked
        and composition(registry, name) == own
        and not isinstance(calibrator_of(registry, name), DeepEnsemble)
    ]
    plain = method_view(registry, method).model_copy(update={"calibrator": None})
    return tuple(dict.fromkeys([plain, validation_view(registry), *views]))


def _held(registry: Registry, planned: PlannedRun, before: Result | Outline) -> list[ViewSpec]:
    """What a result has of the views that are declared, and of passes with dropout, scored or not."""
    every = _views(registry, planned.methods[0], registry.methods.methods.keys())
    unscored = before.unscored(every)
    passes = before.logits.mc_dropout if before.logits is not None else []
    dropout = [every[0].model_copy(update={"calibrator": McDropout(kind="mc_dropout", passes=n)}) for n in passes]
    return [*(view for view in every if view not in unscored), *dropout]


def _input_order(run: RunSpec) -> tuple[str, int, str]:
    """Runs that share encoder and data set stand together, so that a worker loads each once."""
    return (run.encoder.encoder, run.encoder.max_length, run.data.dataset)

"""Searches: the candidates' runs, and which candidate the validation rows choose."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from benchmark.declarations import Search, Table, TableColumn, TableRow, Value
from benchmark.errors import UserError
from benchmark.plan import Finished, PlannedRun, make_plan
from benchmark.registry import (
    Candidate,
    Inputs,
    Registry,
    Subject,
    candidates,
    narrow,
    resolve_run,
    table_subjects,
    validation_view,
)
from benchmark.store import Result
from benchmark.tables import Cell


@dataclass(frozen=True)
class Tried:
    """A candidate of a search: its values in words, one an axis, and its scores on the validation rows."""

    values: tuple[str, ...]
    cells: tuple[Cell, ...]
    declared: bool  # whether the profile's tables are trained with it
    failed: bool  # with any seed
    chosen: bool = False


@dataclass(frozen=True)
class Choice:
    """A search for one method on one data set; nothing is chosen before all candidates have been trained."""

    method: str
    dataset: str
    axes: tuple[str, ...]
    metrics: tuple[str, ...]
    choose_by: str
    tried: tuple[Tried, ...]
    seeds: tuple[int, ...]


def searches_for(registry: Registry, profile_name: str) -> list[str]:
    """The searches that are meant for a profile and look at one of its data sets, by name."""
    datasets = registry.profile(profile_name).datasets
    return [
        name
        for name, search in registry.searches.items()
        if (not search.profiles or profile_name in search.profiles)
        and (not search.datasets or set(search.datasets) & datasets.keys())
    ]


def select_searches(
    registry: Registry,
    profile_name: str,
    names: Iterable[str],
    datasets: list[str] | None = None,
    methods: list[str] | None = None,
) -> dict[str, Table]:
    """Searches by name, each as a table with a row a method and a column a data set, narrowed to the profile and to
    what was asked for.

    Raises UserError for an unknown search, one that is not meant for the profile, and where nothing is left of one.
    """
    profile = registry.profile(profile_name)
    found = {}
    for name in names:
        search = registry.search(name)
        if search.profiles and profile_name not in search.profiles:
            raise UserError(f"Search {name} is for profile {', '.join(search.profiles)}, not for {profile_name}.")
        table = narrow(_as_table(name, search, search.datasets or tuple(profile.datasets)), profile, datasets, methods)
        if table is None:
            raise UserError(f"Profile {profile_name} has nothing of what was asked for in search {name}.")
        found[name] = table
    return found


def plan_searches(
    registry: Registry,
    profile_name: str,
    searches: Mapping[str, Table],
    seeds: Sequence[int],
    inputs: Inputs,
    finished: Finished[Any],
    redo: bool = False,
) -> list[PlannedRun]:
    """The runs of all candidates, once each; ``searches`` as ``select_searches`` gives them."""
    planned: dict[str, PlannedRun] = {}
    for name, table in searches.items():
        search = registry.search(name)
        for candidate in candidates(registry, profile_name, search):
            settings = in_words([axis.label for axis in search.axes], [value_in_words(one) for one in candidate.values])
            for run in make_plan(candidate.registry, profile_name, {name: table}, seeds, inputs, finished, redo):
                before = planned.get(run.run_id)
                tables = run.tables if before is None else tuple(dict.fromkeys([*before.tables, *run.tables]))
                planned[run.run_id] = replace(run, tables=tables, settings=settings)
    return list(planned.values())


def choices(
    registry: Registry,
    profile_name: str,
    name: str,
    table: Table,
    finished: Finished[Result],
    inputs: Inputs,
    seeds: Sequence[int],
) -> list[Choice]:
    """What a search found: a choice for each method and data set, by the mean of its measure over those of ``seeds``
    that every candidate has been trained with; where there is none, nothing is chosen and all of ``seeds`` are shown.

    A candidate whose training failed cannot be chosen.
    """
    search = registry.search(name)
    options = candidates(registry, profile_name, search)

    def choice(subject: Subject) -> Choice:
        declared = resolve_run(registry, profile_name, subject, 0, inputs)
        runs = [resolve_run(option.registry, profile_name, subject, 0, inputs) for option in options]
        found = [{seed: finished.find(run.model_copy(update={"seed": seed})) for seed in seeds} for run in runs]
        shared = [seed for seed in seeds if all(results[seed] is not None for results in found)]
        shown = tuple(shared or seeds)
        tried = [
            _tried(registry, search, option, [results[seed] for seed in shown], run == declared)
            for option, run, results in zip(options, runs, found, strict=True)
        ]
        return _chosen(registry, profile_name, search, subject, tried, shown)

    return [choice(subject) for subject in table_subjects(registry, table)]


def _tried(
    registry: Registry, search: Search, candidate: Candidate, results: Sequence[Result | None], declared: bool
) -> Tried:
    view = validation_view(registry)
    views = [None if result is None or result.status == "failed" else result.view(view) for result in results]
    scores = [scored.scores for scored in views if scored is not None]
    cells = []
    for metric in (registry.metrics[name] for name in search.metrics):
        values = tuple(metric.scale * score[metric.score] for score in scores)
        cells.append(Cell(values=values, expected=len(results), decimals=metric.decimals, better=metric.better))
    return Tried(
        values=tuple(value_in_words(value) for value in candidate.values),
        cells=tuple(cells),
        declared=declared,
        failed=any(result is not None and result.status == "failed" for result in results),
    )


def _chosen(
    registry: Registry,
    profile_name: str,
    search: Search,
    subject: Subject,
    tried: list[Tried],
    seeds: tuple[int, ...],
) -> Choice:
    by = search.metrics.index(search.choose_by)
    sign = -1.0 if registry.metrics[search.choose_by].better == "higher" else 1.0
    complete = [one for one in tried if len(one.cells[by].values) == one.cells[by].expected > 0]
    waiting = len(tried) - len(complete) - sum(one.failed for one in tried)
    if complete and not waiting:
        best = min(complete, key=lambda one: sign * fmean(one.cells[by].values))
        tried = [replace(one, chosen=one is best) for one in tried]
    return Choice(
        method=registry.methods.methods[subject.method].label,
        dataset=registry.datasets[registry.profile(profile_name).datasets[subject.dataset]].label,
        axes=tuple(axis.label for axis in search.axes),
        metrics=tuple(registry.metrics[metric].label for metric in search.metrics),
        choose_by=registry.metrics[search.choose_by].label,
        tried=tuple(tried),
        seeds=seeds,
    )


def in_words(axes: Iterable[str], values: Iterable[str]) -> str:
    """A candidate in one line: ``learning rate 0.0001; epochs 19``."""
    return "; ".join(f"{axis} {value}" for axis, value in zip(axes, values, strict=True))


def value_in_words(value: Value) -> str:
    """A value as a table shows it: ``0.0001``, ``after epochs 1``."""
    if isinstance(value, tuple):
        return ", ".join(value_in_words(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {value_in_words(part)}" for name, part in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def _as_table(name: str, search: Search, datasets: Sequence[str]) -> Table:
    return Table(
        number=name,
        caption=search.description,
        rows=(tuple(TableRow(method=method) for method in search.methods),),
        columns=tuple(TableColumn(label=dataset, dataset=dataset, metrics=search.metrics) for dataset in datasets),
    )

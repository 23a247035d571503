"""Searches: the candidates' runs, and which candidate the validation rows choose."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from benchmark.declarations import Search, Table, TableColumn, TableRow, Value
from benchmark.errors import UserError
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import (
    Candidate,
    Inputs,
    Registry,
    Subject,
    candidates,
    is_offered,
    narrow,
    require_known,
    run_if_whole,
    table_subjects,
    validation_view,
)
from benchmark.specs import RunSpec, ViewSpec, recipe_identity
from benchmark.store import KnownResults, Outline, Result
from benchmark.tables import Cell


@dataclass(frozen=True)
class Tried:
    """A candidate of a search: its values in words, one an axis, and its scores on the validation rows."""

    values: tuple[str, ...]
    cells: tuple[Cell, ...]
    failed: bool  # with any seed
    accuracy: float | None  # on the validation rows, a fraction
    declared: bool  # whether the profile's tables are trained with it
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
    left_out: tuple[int, ...]  # seeds that not every candidate has
    at_edge: tuple[str, ...]  # axes on which the chosen one is the smallest or largest tried
    rows: int | None  # of the validation split
    precisions: tuple[str, ...]  # of the trainings


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
    require_known(datasets or [], profile.datasets, f"data set of profile {profile_name} called")
    require_known(methods or [], registry.methods.methods, "method")
    found, without = {}, []
    for name in dict.fromkeys(names):
        search = registry.search(name)
        if search.profiles and profile_name not in search.profiles:
            raise UserError(f"Search {name} is for profile {', '.join(search.profiles)}, not for {profile_name}.")
        table = narrow(_as_table(name, search, search.datasets or tuple(profile.datasets)), profile, datasets, methods)
        if table is None:
            without.append(name)
        else:
            found[name] = table
    if without and not found:
        raise UserError(f"Profile {profile_name} has nothing of what was asked for in search {', '.join(without)}.")
    return found


def plan_searches(
    registry: Registry,
    profile_name: str,
    searches: Mapping[str, Table],
    seeds: Sequence[int],
    inputs: Inputs,
    finished: KnownResults[Outline | Result],
    redo: bool = False,
    leave_out: bool = False,
) -> list[PlannedRun]:
    """The runs of all candidates, once each; ``searches`` as ``select_searches`` gives them, the rest as for
    ``make_plan``.
    """
    planned: dict[str, PlannedRun] = {}
    for name, table in searches.items():
        search = registry.search(name)
        for candidate in candidates(registry, profile_name, search):
            settings = candidate_in_words(
                [axis.label for axis in search.axes], [value_in_words(one) for one in candidate.values]
            )
            for run in make_plan(
                candidate.registry, profile_name, {name: table}, seeds, inputs, finished, redo, leave_out
            ):
                before = planned.get(run.run_id)
                tables = run.tables if before is None else tuple(dict.fromkeys([*before.tables, *run.tables]))
                planned[run.run_id] = replace(run, tables=tables, settings=settings)
    return list(planned.values())


def choices(
    registry: Registry,
    profile_name: str,
    name: str,
    table: Table,
    finished: KnownResults[Result],
    inputs: Inputs,
    seeds: Sequence[int],
) -> list[Choice]:
    """What a search found: a choice for each method and data set, by the mean of its measure over those of ``seeds``
    that every candidate has been trained with; where there is none, nothing is chosen and all that have a result are
    shown.

    A candidate whose training failed with any of ``seeds`` cannot be chosen, and its other seeds do not count. Of those
    equal as printed the declared one is chosen, else the first.
    """
    search = registry.search(name)
    options = candidates(registry, profile_name, search)
    view = validation_view(registry)

    def choice(subject: Subject) -> Choice:
        declared = run_if_whole(registry, profile_name, subject, 0, inputs)
        runs = [run_if_whole(option.registry, profile_name, subject, 0, inputs) for option in options]
        found = [_by_seed(finished, run, seeds) for run in runs]
        failed = [any(_failed(result) for result in results.values()) for results in found]
        by = registry.metrics[search.choose_by].score
        scores = [{seed: _scores(result, view) for seed, result in results.items()} for results in found]
        usable = [one for one, fell in zip(scores, failed, strict=True) if not fell]
        shared = [seed for seed in seeds if usable and all(by in (one[seed] or {}) for one in usable)]
        looked_at = shared or [seed for seed in seeds if any(results[seed] is not None for results in found)]
        is_declared = [bool(run and declared and recipe_identity(run) == recipe_identity(declared)) for run in runs]
        tried = [
            _tried(registry, search, option, [one[seed] for seed in looked_at], fell, same)
            for option, one, fell, same in zip(options, scores, failed, is_declared, strict=True)
        ]
        if shared:
            tried = _with_choice(registry, search, tried)
        return Choice(
            method=registry.methods.methods[subject.method].label,
            dataset=registry.dataset_label(registry.profile(profile_name), subject.dataset),
            axes=tuple(axis.label for axis in search.axes),
            metrics=tuple(registry.metrics[metric].label for metric in search.metrics),
            choose_by=registry.metrics[search.choose_by].label,
            tried=tuple(tried),
            seeds=tuple(looked_at),
            left_out=tuple(seed for seed in seeds if shared and seed not in shared),
            at_edge=_at_edge(search, options, tried),
            rows=_validation_rows(found),
            precisions=_precisions(found, looked_at),
        )

    profile = registry.profile(profile_name)
    return [choice(subject) for subject in table_subjects(registry, table) if is_offered(profile, subject)]


def _by_seed(finished: KnownResults[Result], run: RunSpec | None, seeds: Sequence[int]) -> dict[int, Result | None]:
    if run is None:
        return dict.fromkeys(seeds)
    return {seed: finished.find(run.model_copy(update={"seed": seed})) for seed in seeds}


def _failed(result: Result | None) -> bool:
    return result is not None and result.status == "failed"


def _scores(result: Result | None, view: ViewSpec) -> Mapping[str, float] | None:
    """The scores of a result's validation rows; None where there are none."""
    record = None if result is None else result.view(view)
    return None if record is None else record.scores


def _tried(
    registry: Registry,
    search: Search,
    candidate: Candidate,
    scores: Sequence[Mapping[str, float] | None],
    failed: bool,
    declared: bool,
) -> Tried:
    made = [] if failed else [one for one in scores if one is not None]
    cells = []
    for metric in (registry.metrics[name] for name in search.metrics):
        values = tuple(metric.scale * one[metric.score] for one in made if metric.score in one)
        cells.append(Cell(values=values, expected=len(scores), decimals=metric.decimals, better=metric.better))
    accuracy = fmean(one["accuracy"] for one in made) if made else None
    words = tuple(value_in_words(value) for value in candidate.values)
    return Tried(values=words, cells=tuple(cells), failed=failed, accuracy=accuracy, declared=declared)


def _with_choice(registry: Registry, search: Search, tried: list[Tried]) -> list[Tried]:
    by = search.metrics.index(search.choose_by)
    sign = -1.0 if registry.metrics[search.choose_by].better == "higher" else 1.0
    best = min(
        (one for one in tried if not one.failed),
        key=lambda one: (sign * one.cells[by].printed, not one.declared),
    )
    return [replace(one, chosen=one is best) for one in tried]


def _at_edge(search: Search, options: Sequence[Candidate], tried: Sequence[Tried]) -> tuple[str, ...]:
    """The axes of three numbers or more on which the chosen candidate has the smallest or the largest."""
    chosen = next((option for option, one in zip(options, tried, strict=True) if one.chosen), None)
    if chosen is None:
        return ()
    return tuple(
        axis.label
        for axis, value in zip(search.axes, chosen.values, strict=True)
        if len(numbers := [one for one in axis.to if isinstance(one, int | float) and not isinstance(one, bool)]) > 2
        and value in (min(numbers), max(numbers))
    )


def _precisions(found: Sequence[Mapping[int, Result | None]], seeds: Sequence[int]) -> tuple[str, ...]:
    results = (by_seed[seed] for by_seed in found for seed in seeds)
    return tuple(sorted({result.training.precision for result in results if result is not None and result.training}))


def _validation_rows(found: Sequence[Mapping[int, Result | None]]) -> int | None:
    results = (result for by_seed in found for result in by_seed.values())
    return next((result.data.rows["validation"] for result in results if result is not None and result.data), None)


def candidate_in_words(axes: Iterable[str], values: Iterable[str]) -> str:
    """A candidate in one line: ``learning rate 0.0001; epochs 19``."""
    return "; ".join(f"{axis} {value}" for axis, value in zip(axes, values, strict=True))


def value_in_words(value: Value) -> str:
    """A value as a table shows it and YAML takes it: ``0.0001``, ``1.0e-05``, ``after_epochs 1``."""
    if isinstance(value, tuple):
        return ", ".join(value_in_words(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {value_in_words(part)}" for name, part in value.items())
    text = str(value)
    whole, exponent, power = text.partition("e")
    point = "" if not isinstance(value, float) or not exponent or "." in whole else ".0"
    return f"{whole}{point}{exponent}{power}"


def _as_table(name: str, search: Search, datasets: Sequence[str]) -> Table:
    return Table(
        number=name,
        caption=search.description,
        rows=(tuple(TableRow(method=method) for method in search.methods),),
        columns=tuple(TableColumn(label=dataset, dataset=dataset, metrics=search.metrics) for dataset in datasets),
    )

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
from benchmark.significance import standard_error_of_share
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
    near: bool = True  # whether it could be chosen by what decides last
    chosen: bool = False


@dataclass(frozen=True)
class Choice:
    """A search for one method on one data set; nothing is chosen before all candidates have been trained.
    ``then_by``: by what was chosen among those ``within`` so many points of the best by ``choose_by``.
    """

    method: str
    dataset: str
    axes: tuple[str, ...]
    metrics: tuple[str, ...]
    choose_by: str
    then_by: str | None
    within: float | None
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
    profile = registry.profile(profile_name)
    found = []
    for subject in table_subjects(registry, table):
        if is_offered(profile, subject):
            trials = _trials(registry, profile_name, options, subject, finished, inputs, seeds)
            found.append(
                _choice(registry, search, subject, trials, seeds, registry.dataset_label(profile, subject.dataset))
            )
    return found


@dataclass(frozen=True)
class _Trial:
    """A candidate for one method and data set: its results, and the scores of their validation rows, by seed."""

    candidate: Candidate
    declared: bool
    results: Mapping[int, Result | None]
    scores: Mapping[int, Mapping[str, float]]  # empty where there are none

    @property
    def failed(self) -> bool:
        return any(result is not None and result.status == "failed" for result in self.results.values())


def _trials(
    registry: Registry,
    profile_name: str,
    options: Sequence[Candidate],
    subject: Subject,
    finished: KnownResults[Result],
    inputs: Inputs,
    seeds: Sequence[int],
) -> list[_Trial]:
    declared, view = run_if_whole(registry, profile_name, subject, 0, inputs), validation_view(registry)
    trials = []
    for option in options:
        run = run_if_whole(option.registry, profile_name, subject, 0, inputs)
        results = _by_seed(finished, run, seeds)
        same = bool(run and declared and recipe_identity(run) == recipe_identity(declared))
        trials.append(_Trial(option, same, results, {seed: _scores(one, view) for seed, one in results.items()}))
    return trials


def _choice(
    registry: Registry, search: Search, subject: Subject, trials: Sequence[_Trial], seeds: Sequence[int], dataset: str
) -> Choice:
    by = registry.metrics[search.choose_by].score
    usable = [trial for trial in trials if not trial.failed]
    shared = [seed for seed in seeds if usable and all(by in trial.scores[seed] for trial in usable)]
    looked_at = shared or [seed for seed in seeds if any(trial.results[seed] is not None for trial in trials)]
    tried = [_tried(registry, search, trial, looked_at) for trial in trials]
    rows, within = _validation_rows(trials), None
    if shared:
        tried, within = _with_choice(registry, search, tried, rows)
    return Choice(
        method=registry.methods.methods[subject.method].label,
        dataset=dataset,
        axes=tuple(axis.label for axis in search.axes),
        metrics=tuple(registry.metrics[metric].label for metric in search.metrics),
        choose_by=registry.metrics[search.choose_by].label,
        then_by=None if within is None or search.then_by is None else registry.metrics[search.then_by].label,
        within=within,
        tried=tuple(tried),
        seeds=tuple(looked_at),
        left_out=tuple(seed for seed in seeds if shared and seed not in shared),
        at_edge=_at_edge(search, trials, tried),
        rows=rows,
        precisions=_precisions(trials, looked_at),
    )


def _by_seed(finished: KnownResults[Result], run: RunSpec | None, seeds: Sequence[int]) -> dict[int, Result | None]:
    if run is None:
        return dict.fromkeys(seeds)
    return {seed: finished.find(run.model_copy(update={"seed": seed})) for seed in seeds}


def _scores(result: Result | None, view: ViewSpec) -> Mapping[str, float]:
    record = None if result is None else result.view(view)
    return {} if record is None else record.scores


def _tried(registry: Registry, search: Search, trial: _Trial, seeds: Sequence[int]) -> Tried:
    made = [] if trial.failed else [trial.scores[seed] for seed in seeds if trial.scores[seed]]
    cells = []
    for metric in (registry.metrics[name] for name in search.metrics):
        values = tuple(metric.scale * one[metric.score] for one in made if metric.score in one)
        cells.append(Cell(values=values, expected=len(seeds), decimals=metric.decimals, better=metric.better))
    return Tried(
        values=tuple(value_in_words(value) for value in trial.candidate.values),
        cells=tuple(cells),
        failed=trial.failed,
        accuracy=fmean(one["accuracy"] for one in made) if made else None,
        declared=trial.declared,
    )


def _with_choice(
    registry: Registry, search: Search, tried: list[Tried], rows: int | None
) -> tuple[list[Tried], float | None]:
    """The candidates, the chosen one marked, and how far behind the best it may be, in points; None for not at all."""
    allowed = [one for one in tried if not one.failed]
    chosen = _best(registry, search, search.choose_by, allowed)
    within, near = None, allowed
    if search.then_by is not None and rows and chosen.accuracy is not None:
        by = search.metrics.index(search.choose_by)
        # of F1, too, for want of one of its own: about that of the share of right answers
        error = registry.metrics[search.choose_by].scale * standard_error_of_share(chosen.accuracy, rows)
        near = [one for one in allowed if chosen.cells[by].known - one.cells[by].known <= error]
        then = search.metrics.index(search.then_by)
        if all(len(one.cells[then].values) == one.cells[then].expected for one in near):
            chosen, within = _best(registry, search, search.then_by, near), error
    return [replace(one, near=within is None or one in near, chosen=one is chosen) for one in tried], within


def _best(registry: Registry, search: Search, metric: str, tried: Sequence[Tried]) -> Tried:
    """By one metric as printed; of equal ones the declared one, else the first."""
    place, sign = search.metrics.index(metric), -1.0 if registry.metrics[metric].better == "higher" else 1.0
    return min(tried, key=lambda one: (sign * one.cells[place].printed, not one.declared))


def _at_edge(search: Search, trials: Sequence[_Trial], tried: Sequence[Tried]) -> tuple[str, ...]:
    """The axes of three numbers or more on which the chosen candidate has the smallest or the largest."""
    chosen = next((trial.candidate for trial, one in zip(trials, tried, strict=True) if one.chosen), None)
    if chosen is None:
        return ()
    return tuple(
        axis.label
        for axis, value in zip(search.axes, chosen.values, strict=True)
        if len(numbers := [one for one in axis.to if isinstance(one, int | float) and not isinstance(one, bool)]) > 2
        and value in (min(numbers), max(numbers))
    )


def _precisions(trials: Sequence[_Trial], seeds: Sequence[int]) -> tuple[str, ...]:
    results = (trial.results[seed] for trial in trials for seed in seeds)
    return tuple(sorted({result.training.precision for result in results if result is not None and result.training}))


def _validation_rows(trials: Sequence[_Trial]) -> int | None:
    results = (result for trial in trials for result in trial.results.values())
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

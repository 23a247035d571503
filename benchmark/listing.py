"""What the registry offers, and how much of it is done: the text of ``benchmark.run --list``."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tabulate import tabulate

from benchmark.declarations import Method, Profile, Table
from benchmark.errors import UserError
from benchmark.plan import Finished, PlannedRun, make_plan
from benchmark.registry import Inputs, Registry, narrowed
from benchmark.search import plan_searches, searches_for, select_searches
from benchmark.store import Outline


def listing(registry: Registry, profile_name: str, finished: Callable[[str], Finished[Outline]]) -> str:
    """Profiles, and what the chosen one has: tables, methods, data sets, encoders, each with the trainings done.

    ``finished`` gives the results at hand of a profile. Inputs are not looked at: a result counts whatever the exact
    content of its data was, as long as all results agree on it.
    """
    known = {name: finished(name) for name in registry.profiles}
    plans = {name: _attempt(registry, name, known[name]) for name in registry.profiles}
    plan = plans[profile_name]
    if isinstance(plan, UserError):
        raise plan
    profile = registry.profile(profile_name)
    every = list(registry.tables)
    tables = narrowed(registry, profile_name, registry.tables)
    methods = registry.methods.methods

    def counts(methods: list[str] | None = None, *, of: list[str]) -> tuple[int, int]:
        """Each table and method is planned by itself: what only another one asks of a run does not count."""
        return _counts(_plan(registry, profile_name, known[profile_name], of, methods))

    sections = [
        _section(
            "Profiles (--profile)",
            ("name", "done", "of", "what"),
            [(name, *_done_and_what(plans[name], profile)) for name, profile in registry.profiles.items()],
        ),
        _section(
            f"Tables of profile {profile_name} (--table)",
            ("name", "number", "done", "of", "what"),
            [
                (name, table.number, *counts(of=[name]), _by_name(table) + table.caption)
                for name, table in tables.items()
            ],
        ),
        _section(
            "Methods (--methods)",
            ("name", "label", "done", "of", "composition"),
            [
                (name, method.label, *counts([name], of=every), _composition(method))
                for name, method in methods.items()
                if name in _methods(tables)
            ],
        ),
        *_inputs(registry, profile, plan),
        *_searches(registry, profile_name, known[profile_name]),
    ]
    return "\n\n".join(sections)


def _attempt(registry: Registry, name: str, finished: Finished[Outline]) -> list[PlannedRun] | UserError:
    """A profile's plan, or why it cannot be made, which keeps nobody from the others."""
    try:
        return _plan(registry, name, finished)
    except UserError as error:
        return error


def _done_and_what(plan: list[PlannedRun] | UserError, profile: Profile) -> tuple[object, object, str]:
    if isinstance(plan, UserError):
        return "-", "-", f"cannot be planned: {plan}"
    return (*_counts(plan), profile.description)


def _inputs(registry: Registry, profile: Profile, plan: Sequence[PlannedRun]) -> list[str]:
    """Data sets and encoders, each with the trainings done on it."""
    encoders = {planned.run.encoder.encoder for planned in plan}
    roles = {dataset: role for role, dataset in profile.datasets.items()}
    return [
        _section(
            "Data sets (--datasets)",
            ("name", "label", "done", "of", "entry in datasets.yaml"),
            [
                (
                    roles[name],
                    registry.datasets[name].label,
                    *_counts(run for run in plan if run.run.data.dataset == name),
                    name,
                )
                for name in roles
            ],
        ),
        _section(
            "Encoders",
            ("name", "done", "of", "what"),
            [
                (name, *_counts(run for run in plan if run.run.encoder.encoder == name), encoder.label)
                for name, encoder in registry.encoders.items()
                if name in encoders
            ],
        ),
    ]


def _searches(registry: Registry, profile_name: str, finished: Finished[Outline]) -> list[str]:
    """Searches that are meant for the profile, each with the trainings done."""
    seeds = registry.profile(profile_name).seeds
    rows = []
    for name, search in select_searches(registry, profile_name, searches_for(registry, profile_name)).items():
        plan = plan_searches(registry, profile_name, {name: search}, seeds, Inputs(), finished)
        rows.append((name, *_counts(plan), search.caption))
    return [_section("Searches (--search)", ("name", "done", "of", "what"), rows)] if rows else []


def _plan(
    registry: Registry,
    name: str,
    finished: Finished[Outline],
    names: Sequence[str] = ("all",),
    methods: list[str] | None = None,
) -> list[PlannedRun]:
    """The runs of those tables that the profile has, none where it has none."""
    tables = narrowed(registry, name, names, methods=methods)
    return make_plan(registry, name, tables, registry.profile(name).seeds, Inputs(), finished)


def _counts(plan: Iterable[PlannedRun]) -> tuple[int, int]:
    """Trainings done, and all."""
    runs = list(plan)
    return sum(run.action != "train" for run in runs), len(runs)


def _by_name(table: Table) -> str:
    return "(only where asked for) " if table.optional else ""


def _methods(tables: Mapping[str, Table]) -> set[str]:
    return {row.method for table in tables.values() for row in table.every_row}


def _composition(method: Method) -> str:
    parts = [method.head, " + ".join(method.loss), method.posthoc]
    return "; ".join(part for part in parts if part)


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return f"{title}\n{tabulate(rows, head, tablefmt='plain')}"

"""What the registry offers, and how much of it is done: the text of ``benchmark.run --list``."""

from collections.abc import Callable, Iterable, Sequence

from tabulate import tabulate

from benchmark.declarations import Method, Profile, Table
from benchmark.errors import UserError, first_line
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import Inputs, Registry, narrowed
from benchmark.search import plan_searches, searches_for, select_searches
from benchmark.store import KnownResults, Outline


def listing(registry: Registry, profile_name: str, finished: Callable[[str], KnownResults[Outline]]) -> str:
    """Profiles, and what the chosen one has: tables, methods, data sets, encoders, each with the trainings done.

    ``finished`` gives the results at hand of a profile. Inputs are not looked at: a result counts whatever the exact
    content of its data was, as long as all results agree on it.
    """
    profile = registry.profile(profile_name)
    known = {name: finished(name) for name in registry.profiles}
    plan = _plan(registry, profile_name, known[profile_name])
    every = list(registry.tables)
    tables = narrowed(registry, profile_name, registry.tables)
    compared = {row.method for table in tables.values() for row in table.every_row}

    def counts(methods: list[str] | None = None, *, of: list[str]) -> tuple[int, int]:
        """Trainings done of those tables, and all; each table and method is planned by itself: what only another one
        asks of a run does not count.
        """
        return _counts(_plan(registry, profile_name, known[profile_name], of, methods))

    sections = [
        _section(
            "Profiles (--profile)",
            ("name", "done", "of", "what"),
            [
                (name, *_counts(_plan(registry, name, known[name])), _what(registry, name, profile.description))
                for name, profile in registry.profiles.items()
            ],
        ),
        _section(
            f"Tables of profile {profile_name} (--table)",
            ("name", "number", "done", "of", "what"),
            [
                (
                    name,
                    table.number,
                    *counts(of=[name]),
                    _by_name(table) + _what(registry, profile_name, table.caption, [name]),
                )
                for name, table in tables.items()
            ],
        ),
        _section(
            "Methods (--methods)",
            ("name", "label", "done", "of", "composition"),
            [
                (name, method.label, *counts([name], of=every), _composition(method))
                for name, method in registry.methods.methods.items()
                if name in compared
            ],
        ),
        *_inputs(registry, profile, plan),
        *_searches(registry, profile_name, known[profile_name]),
    ]
    return "\n\n".join(sections)


def _what(registry: Registry, profile_name: str, what: str, names: Sequence[str] = ("all",)) -> str:
    """What a profile or its tables are; where some of their runs cannot be made, and so are not counted, why."""
    tables = narrowed(registry, profile_name, names)
    try:
        make_plan(registry, profile_name, tables, [0], Inputs(), KnownResults.of([]))
    except UserError as error:
        return f"{what} (Not all of it can be trained: {first_line(error)}.)"
    return what


def _inputs(registry: Registry, profile: Profile, plan: Sequence[PlannedRun]) -> list[str]:
    """Data sets and encoders, each with the trainings done on it."""
    encoders = {planned.run.encoder.encoder for planned in plan}
    return [
        _section(
            "Data sets (--datasets)",
            ("name", "label", "done", "of", "entry in datasets.yaml"),
            [
                (
                    role,
                    registry.datasets[name].label,
                    *_counts(run for run in plan if run.run.data.dataset == name),
                    name,
                )
                for role, name in profile.datasets.items()
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


def _searches(registry: Registry, profile_name: str, finished: KnownResults[Outline]) -> list[str]:
    """Searches that are meant for the profile, each with the trainings done."""
    seeds = registry.profile(profile_name).seeds
    rows = []
    for name, search in select_searches(registry, profile_name, searches_for(registry, profile_name)).items():
        plan = plan_searches(registry, profile_name, {name: search}, seeds, Inputs(), finished, leave_out=True)
        rows.append((name, *_counts(plan), search.caption))
    return [_section("Searches (--search)", ("name", "done", "of", "what"), rows)] if rows else []


def _plan(
    registry: Registry,
    name: str,
    finished: KnownResults[Outline],
    names: Sequence[str] = ("all",),
    methods: list[str] | None = None,
) -> list[PlannedRun]:
    """The runs of those tables that the profile has and that can be made, none where it has none."""
    tables = narrowed(registry, name, names, methods=methods)
    return make_plan(registry, name, tables, registry.profile(name).seeds, Inputs(), finished, leave_out=True)


def _counts(plan: Iterable[PlannedRun]) -> tuple[int, int]:
    """Trainings done, and all."""
    runs = list(plan)
    return sum(run.action != "train" for run in runs), len(runs)


def _by_name(table: Table) -> str:
    return "(only where asked for) " if table.optional else ""


def _composition(method: Method) -> str:
    parts = [method.head, " + ".join(method.loss), method.posthoc]
    return "; ".join(part for part in parts if part)


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return f"{title}\n{tabulate(rows, head, tablefmt='plain')}"

"""What the registry offers, and how much of it is done: the text of ``benchmark.run --list``."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from benchmark.declarations import Method, Profile, Table
from benchmark.errors import UserError, first_line
from benchmark.inputs import Places
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import Inputs, Registry, narrowed
from benchmark.search import plan_searches, searches_for, select_searches
from benchmark.shown_inputs import shown_inputs
from benchmark.store import KnownResults, Outline, ResultFolder


@dataclass(frozen=True)
class _AtHand:
    """The results at hand of a profile, and of which content of its inputs those are that count."""

    finished: KnownResults[Outline]
    inputs: Inputs


def listing(registry: Registry, profile_name: str, results_dir: Path, where: Places) -> str:
    """Profiles, and what the chosen one has: tables, methods, data sets, encoders, each with the trainings done. Where
    results are of several contents of an input, those of the one on this machine count.
    """
    profile = registry.profile(profile_name)
    known = {name: _at_hand(registry, ResultFolder(results_dir, name), where) for name in registry.profiles}
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


def _at_hand(registry: Registry, folder: ResultFolder, where: Places) -> _AtHand:
    outlines, _ = folder.outlines()
    inputs = Inputs()
    with contextlib.suppress(UserError):  # which result counts cannot be told, and none of several does
        inputs = shown_inputs(registry, outlines, where)
    return _AtHand(folder.known(outlines), inputs)


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


def _searches(registry: Registry, profile_name: str, known: _AtHand) -> list[str]:
    """Searches that are meant for the profile, each with the trainings done."""
    seeds = registry.profile(profile_name).seeds
    rows = []
    for name, search in select_searches(registry, profile_name, searches_for(registry, profile_name)).items():
        plan = plan_searches(
            registry, profile_name, {name: search}, seeds, known.inputs, known.finished, leave_out=True
        )
        rows.append((name, *_counts(plan), search.caption))
    return [_section("Searches (--search)", ("name", "done", "of", "what"), rows)] if rows else []


def _plan(
    registry: Registry,
    name: str,
    known: _AtHand,
    names: Sequence[str] = ("all",),
    methods: list[str] | None = None,
) -> list[PlannedRun]:
    """The runs of those tables that the profile has and that can be made, none where it has none."""
    tables = narrowed(registry, name, names, methods=methods)
    seeds = registry.profile(name).seeds
    return make_plan(registry, name, tables, seeds, known.inputs, known.finished, leave_out=True)


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

"""What each cell of a declared table asks for, in a profile that may offer only some of it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from benchmark.declarations import Profile, Table, TableColumn, TableRow
from benchmark.errors import UserError
from benchmark.registry.contents import Registry, require_known
from benchmark.registry.resolution import Subject


@dataclass(frozen=True)
class Part:
    """One thing that a cell looks at: a subject and, for a low-frequency column, the rank of the label (1, the
    rarest).
    """

    subject: Subject
    rarest: int | None = None


@dataclass(frozen=True)
class CellRequest:
    """A metric, of one part or as the mean over several."""

    parts: tuple[Part, ...]
    metric: str
    decimals: int


def cell_requests(registry: Registry, table: Table, row: TableRow) -> Iterator[tuple[TableColumn, list[CellRequest]]]:
    """For each group of columns, what the cells of a row ask for, metric by metric."""
    by_label = {column.label: column for column in table.columns}
    for column in table.columns:
        sources = [by_label[label] for label in column.mean_over] or [column]
        parts = tuple(_part(row, source) for source in sources)
        yield (
            column,
            [
                CellRequest(parts, metric, column.decimals.get(metric, registry.metrics[metric].decimals))
                for metric in column.metrics
            ],
        )


def table_subjects(registry: Registry, table: Table) -> list[Subject]:
    """All subjects of a table, without duplicates, in its order."""
    subjects: dict[Subject, None] = {}
    for row in table.every_row:
        for _, requests in cell_requests(registry, table, row):
            for request in requests:
                subjects.update({part.subject: None for part in request.parts})
    return list(subjects)


def told_apart(registry: Registry, rows: Iterable[TableRow]) -> tuple[TableRow, ...]:
    """Rows of several tables, in each of which names are unique; where two bear the same one, with the method after
    it.
    """
    rows = tuple(rows)
    labels = [row.label or registry.methods.methods[row.method].label for row in rows]
    return tuple(
        row if labels.count(label) == 1 else row.model_copy(update={"label": f"{label} ({row.method})"})
        for row, label in zip(rows, labels, strict=True)
    )


def clean_columns(table: Table, metrics: set[str]) -> list[TableColumn]:
    """The columns that show all of these metrics of a whole data set without noise."""
    return [
        column
        for column in table.columns
        if column.dataset and not column.corruption and not column.rarest and metrics <= set(column.metrics)
    ]


def narrow(table: Table, profile: Profile, datasets: list[str] | None, methods: list[str] | None) -> Table | None:
    """The table with only the rows and columns that the profile offers and that were asked for; None if nothing is
    left.

    A mean column stays only where all that it averages stays. The caption says which columns are left, if not all.
    """
    wanted = profile.datasets.keys() if datasets is None else profile.datasets.keys() & set(datasets)
    rows = tuple(
        kept
        for group in table.rows
        if (
            kept := tuple(
                row for row in group if row.encoder in profile.encoders and (methods is None or row.method in methods)
            )
        )
    )
    kept_labels = {column.label for column in table.columns if column.dataset in wanted}
    columns = tuple(
        column
        for column in table.columns
        if (set(column.mean_over) <= kept_labels if column.mean_over else column.label in kept_labels)
    )
    if not rows or not columns:
        return None
    caption = table.caption
    if len(columns) < len(table.columns):
        caption += f" Here: only {', '.join(column.label for column in columns)}."
    return table.model_copy(update={"rows": rows, "columns": columns, "caption": caption})


def select_tables(
    registry: Registry,
    profile_name: str,
    names: list[str],
    datasets: list[str] | None = None,
    methods: list[str] | None = None,
) -> dict[str, Table]:
    """The tables of those names ("all": every one that is not optional), narrowed to the profile and to what was asked
    for, empty ones left out.

    Raises UserError for an unknown table, data set or method, with the nearest known name, where nothing is left, and
    for a method that is in no row of what is left.
    """
    profile = registry.profile(profile_name)
    require_known(datasets or [], profile.datasets, f"data set of profile {profile_name} called")
    require_known(methods or [], registry.methods.methods, "method")
    require_known(names, [*registry.tables, "all"], "table")
    tables = narrowed(registry, profile_name, names, datasets, methods)
    whole = _whole(registry, names)
    if not tables:
        optional = [name for name, table in registry.tables.items() if table.optional]
        own = list(narrowed(registry, profile_name, optional)) if "all" in names and not (datasets or methods) else []
        if own:
            raise UserError(
                f"Profile {profile_name} has optional tables alone, which are made only where they are asked for: "
                f"--table {' '.join(own)}."
            )
        of = ", ".join(whole) if "all" not in names else "its tables"
        nothing = f"Profile {profile_name} has nothing of what was asked for in {of}."
        raise UserError(f"{nothing} {_where_else(registry, profile_name, whole, datasets, methods)}".rstrip())
    shown = {row.method for table in tables.values() for row in table.every_row}
    if absent := [method for method in methods or () if method not in shown]:
        nothing = f"Profile {profile_name} has no row of {', '.join(absent)} in what was asked for."
        raise UserError(f"{nothing} {_where_else(registry, profile_name, whole, datasets, absent)}".rstrip())
    return tables


def _where_else(
    registry: Registry, profile_name: str, names: list[str], datasets: list[str] | None, methods: list[str] | None
) -> str:
    """Which other tables have the methods that those of these names lack, which other profiles have the tables."""
    by_table = {name: {row.method for row in table.every_row} for name, table in registry.tables.items()}
    absent = [method for method in methods or () if not any(method in by_table[name] for name in names)]
    if absent:
        having = [name for name, rows in by_table.items() if rows.issuperset(absent)]
        having = list(narrowed(registry, profile_name, having, datasets, methods))
        where = (
            f"--table {' '.join(having)} {'has' if len(having) == 1 else 'have'}" if having else "add one to a table"
        )
        return f"No row of the tables has {', '.join(absent)}; {where}."
    others = [
        name
        for name in registry.profiles
        if name != profile_name and narrowed(registry, name, names, datasets, methods)
    ]
    if not others:
        return ""
    return f"Profiles that have it: {', '.join(others)}. How to ask it of your own data: docs/more_data.md."


def narrowed(
    registry: Registry,
    profile_name: str,
    names: Collection[str],
    datasets: list[str] | None = None,
    methods: list[str] | None = None,
) -> dict[str, Table]:
    """The tables of those names ("all": every one that is not optional), narrowed to the profile and to what is asked
    for, empty ones left out.
    """
    profile = registry.profile(profile_name)
    chosen = {name: narrow(registry.tables[name], profile, datasets, methods) for name in _whole(registry, names)}
    return {name: table for name, table in chosen.items() if table is not None}


def _whole(registry: Registry, names: Collection[str]) -> list[str]:
    """The names, "all" written out."""
    if "all" not in names:
        return list(names)
    return [name for name, table in registry.tables.items() if name in names or not table.optional]


def _part(row: TableRow, column: TableColumn) -> Part:
    assert column.dataset is not None, "means are over columns with a data set"
    return Part(Subject(column.dataset, row.encoder, row.method, column.corruption), column.rarest)

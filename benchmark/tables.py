"""From a declared table and the results at hand to a grid of cells: means, spreads, counts, what is best, what is
missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from benchmark.declarations import Metric, Table, TableRow
from benchmark.errors import UserError
from benchmark.plan import Finished
from benchmark.registry import (
    CellRequest,
    Inputs,
    Part,
    Registry,
    Subject,
    cell_requests,
    encoder_name,
    resolve_run,
    resolve_view,
    row_key,
)
from benchmark.specs import RunSpec
from benchmark.store import Result


@dataclass(frozen=True)
class Cell:
    """One metric over seeds. ``values`` are scaled as printed (percent), one a seed that has a result."""

    values: tuple[float, ...]
    expected: int
    decimals: int
    better: str
    sources: tuple[str, ...] = ()  # run ids behind the values
    why_missing: str | None = None
    best: bool = False
    paper: float | None = None

    @property
    def mean(self) -> float | None:
        """The mean over the seeds found; None for none."""
        return fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation (n - 1); None for fewer than two seeds."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def partial(self) -> bool:
        """Whether some but not all of the expected seeds have a result."""
        return 0 < len(self.values) < self.expected


@dataclass(frozen=True)
class GridRow:
    """A row of cells with the label that it shows and the key that the paper's numbers have for it."""

    label: str
    key: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class GridColumn:
    """A heading over one or more metrics."""

    label: str
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table ready to be rendered. ``groups`` are rows with a rule between groups; cells run through all columns'
    metrics.
    """

    name: str
    number: str
    caption: str
    note: str | None
    seeds: tuple[int, ...]
    columns: tuple[GridColumn, ...]
    groups: tuple[tuple[GridRow, ...], ...]

    @property
    def cells(self) -> list[Cell]:
        return [cell for group in self.groups for row in group for cell in row.cells]


class GridBuilder:
    """Builds the grids of one profile from the results at hand."""

    def __init__(
        self, registry: Registry, profile_name: str, finished: Finished, inputs: Inputs, seeds: Sequence[int]
    ) -> None:
        self.registry = registry
        self.profile_name = profile_name
        self.profile = registry.profile(profile_name)
        self.finished = finished
        self.inputs = inputs
        self.seeds = tuple(seeds)
        self._runs: dict[tuple[Subject, int], RunSpec] = {}

    def build(self, name: str, table: Table) -> Grid:
        """The grid of one table. A cell without a result is missing; a mean over others is missing where one of them
        is.
        """
        groups = [[self._row(name, table, row) for row in group] for group in table.rows]
        return Grid(
            name=name,
            number=table.number,
            caption=table.caption,
            note=self.profile.note,
            seeds=self.seeds,
            columns=tuple(
                GridColumn(column.label, tuple(self.registry.metrics[metric].label for metric in column.metrics))
                for column in table.columns
            ),
            groups=mark_best(groups, per_group=table.best_in == "row_group"),
        )

    def _row(self, name: str, table: Table, row: TableRow) -> GridRow:
        key = row_key(row.method, row.encoder)
        paper = self.registry.paper.get(name, {}).get(key, {})
        cells = []
        for column, requests in cell_requests(self.registry, table, row):
            printed = paper.get(column.label, {})
            cells += [replace(self._cell(request), paper=printed.get(request.metric)) for request in requests]
        return GridRow(self._label(row), key, tuple(cells))

    def _label(self, row: TableRow) -> str:
        if row.label is not None:
            return row.label
        if row.encoder != "base":
            dataset = next(iter(self.profile.datasets))
            encoder = encoder_name(self.profile, Subject(dataset, row.encoder, row.method))
            return self.registry.encoders[encoder].label if encoder else row.encoder
        return self.registry.methods.methods[row.method].label

    def _cell(self, request: CellRequest) -> Cell:
        metric = self.registry.metrics[request.metric]
        values, sources, reasons = [], [], []
        for seed in self.seeds:
            found = [self._value(part, metric, seed) for part in request.parts]
            missing = [value for value in found if isinstance(value, str)]
            if missing:
                reasons += missing
                continue
            good = [value for value in found if not isinstance(value, str)]
            values.append(fmean(value for value, _ in good))
            sources += [run_id for _, run_id in good]
        return Cell(
            values=tuple(values),
            expected=len(self.seeds),
            decimals=request.decimals,
            better=metric.better,
            sources=tuple(dict.fromkeys(sources)),
            why_missing=reasons[0] if reasons else None,
        )

    def _value(self, part: Part, metric: Metric, seed: int) -> tuple[float, str] | str:
        """The scaled value and the run behind it, or why there is none."""
        result = self._result(part.subject, seed)
        if isinstance(result, str):
            return result
        view = result.view(resolve_view(self.registry, part.subject))
        if view is None:
            return "not scored yet; benchmark.run does it"
        if part.rarest is None:
            if metric.score not in view.scores:
                raise UserError(
                    f'experiments/metrics.yaml: there is no score "{metric.score}"; known: {", ".join(view.scores)}.'
                )
            return metric.scale * view.scores[metric.score], result.run_id
        assert result.data is not None, "a successful result has data"
        label = result.data.rarest(part.rarest)
        per_label = view.per_label.model_dump().get(metric.score)
        if label is None or per_label is None:
            return "there is no such value for one label"
        return metric.scale * per_label[label], result.run_id

    def _result(self, subject: Subject, seed: int) -> Result | str:
        if subject.dataset not in self.profile.datasets or encoder_name(self.profile, subject) is None:
            return f"not in profile {self.profile_name}"
        key = (subject, seed)
        if key not in self._runs:
            self._runs[key] = resolve_run(self.registry, self.profile_name, subject, seed, self.inputs)
        result = self.finished.find(self._runs[key])
        if result is None:
            return "no result"
        if result.status == "failed":
            return f"the run failed ({result.failure.kind if result.failure else 'unknown'})"
        return result


def mark_best(groups: Iterable[Iterable[GridRow]], per_group: bool) -> tuple[tuple[GridRow, ...], ...]:
    """Mark the best cell of every column, over all rows or within each group.

    Means are compared as they are printed, rounded: cells that print alike are best together. A missing cell never
    is, and a column in which only one cell has a value has no best.
    """
    rows = [list(group) for group in groups]
    pools = rows if per_group else [[row for group in rows for row in group]]
    best: set[tuple[int, int]] = set()
    for pool in pools:
        for column in range(len(pool[0].cells)):
            best |= {(id(row), column) for row in _best_rows(pool, column)}
    return tuple(
        tuple(
            replace(
                row,
                cells=tuple(replace(cell, best=(id(row), column) in best) for column, cell in enumerate(row.cells)),
            )
            for row in group
        )
        for group in rows
    )


def _best_rows(pool: list[GridRow], column: int) -> list[GridRow]:
    printed = {id(row): round(cell.mean, cell.decimals) for row in pool if (cell := row.cells[column]).mean is not None}
    if len(printed) < 2:
        return []
    pick = max if pool[0].cells[column].better == "higher" else min
    wanted = pick(printed.values())
    return [row for row in pool if printed.get(id(row)) == wanted]


def agreed_inputs(results: Iterable[Result], at_hand: Inputs, pinned: Mapping[str, str | None]) -> Inputs:
    """Which content of each data set and encoder to show, where results of several are at hand.

    One content only: that one. Several: the one on this machine, else the data set's declared fingerprint. Raises
    UserError where neither tells, because rows of different data may not stand in one table.
    """
    datasets: dict[str, set[str | None]] = {}
    encoders: dict[str, set[str | None]] = {}
    for result in results:
        datasets.setdefault(result.run.data.dataset, set()).add(result.run.data.fingerprint)
        encoders.setdefault(result.run.encoder.encoder, set()).add(result.run.encoder.fingerprint)
    return Inputs(
        {
            name: _agreed("data set", name, known, at_hand.datasets.get(name), pinned.get(name))
            for name, known in datasets.items()
        },
        {name: _agreed("encoder", name, known, at_hand.encoders.get(name), None) for name, known in encoders.items()},
    )


def _agreed(what: str, name: str, known: set[str | None], at_hand: str | None, pinned: str | None) -> str | None:
    if len(known) == 1:
        return next(iter(known))
    for choice in (at_hand, pinned):
        if choice in known:
            return choice
    raise UserError(
        f'Results from {len(known)} different contents of {what} "{name}" are at hand, and the {what} itself is not, '
        "so it cannot be told which to show; name its folder, or move the other results away."
    )


def seeds_at_hand(results: Iterable[Result]) -> list[int]:
    """All seeds that any result at hand has."""
    return sorted({result.run.seed for result in results})

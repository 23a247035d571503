"""From a declared table and the results at hand to a grid of cells."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from statistics import fmean

import numpy as np

from benchmark.declarations import Metric, Table, TableRow
from benchmark.metrics import Array
from benchmark.registry import (
    CellRequest,
    Inputs,
    Part,
    Registry,
    cell_requests,
    encoder_name,
    row_key,
)
from benchmark.specs import RESAMPLED
from benchmark.store import KnownResults, Result, ViewRecord
from benchmark.tables.best import mark_best
from benchmark.tables.finding import ResultFinder
from benchmark.tables.grid import Cell, FittedTemperature, Grid, GridColumn, GridRow
from benchmark.tables.idle import rau_was_idle

_TESTED = {"f1", "ece", *RESAMPLED}
_OF_PREDICTIONS = {"accuracy", "precision", "recall", "f1"}  # which no temperature moves
_NO_ENSEMBLE = "an ensemble takes several seeds for one value"


@dataclass(frozen=True)
class _Value:
    """One metric of one run, scaled as printed, and the same, as a fraction, on resampled test rows."""

    value: float
    resampled: Sequence[float] | None
    result: Result
    view: ViewRecord


class GridBuilder:
    """Builds the grids of one profile from the results at hand."""

    def __init__(
        self,
        registry: Registry,
        profile_name: str,
        finished: KnownResults[Result],
        inputs: Inputs,
        seeds: Sequence[int],
    ) -> None:
        self.registry = registry
        self.profile = registry.profile(profile_name)
        self.finder = ResultFinder(registry, profile_name, finished, inputs)
        self.seeds = tuple(seeds)
        # the appendix has the cells of the main tables again
        self._cells: dict[tuple[tuple[Part, ...], str], Cell] = {}

    def over(self, seeds: Sequence[int]) -> "GridBuilder":
        """The same over other seeds."""
        other = copy(self)
        other.seeds, other._cells = tuple(seeds), {}
        return other

    def build(self, name: str, table: Table) -> Grid:
        """The grid of one table. A cell without a result is missing; a mean over others is missing where one of them
        is.
        """
        groups = [[self._row(name, table, row, group) for row in group] for group in table.rows]
        cells_of = self._by_column(table, groups)
        return Grid(
            name=name,
            number=table.number,
            caption=table.caption,
            note=self.profile.note,
            seeds=self.seeds,
            columns=tuple(
                GridColumn(
                    column.label,
                    tuple(self.registry.metrics[metric].label for metric in column.metrics),
                    tuple(column.metrics),
                    () if column.mean_over else _precisions(cells),
                )
                for column, cells in zip(table.columns, cells_of, strict=True)
            ),
            groups=mark_best(groups, per_group=table.best_in == "row_group"),
            precisions=_precisions(cell for cells in cells_of for cell in cells),
        )

    def _by_column(self, table: Table, groups: Sequence[Sequence[GridRow]]) -> list[list[Cell]]:
        """The cells under each of the table's columns, a cell a metric and row."""
        ends = list(accumulate((len(column.metrics) for column in table.columns), initial=0))
        rows = [row for group in groups for row in group]
        return [[cell for row in rows for cell in row.cells[start:end]] for start, end in pairwise(ends)]

    def _row(self, name: str, table: Table, row: TableRow, group: Sequence[TableRow]) -> GridRow:
        key = row_key(row.method, row.encoder)
        paper = self.registry.paper.get(name, {}).get(key, {})
        cells = []
        for column, requests in cell_requests(self.registry, table, row):
            printed = paper.get(column.label, {})
            cells += [
                replace(self._cell(request), decimals=request.decimals, paper=printed.get(request.metric))
                for request in requests
            ]
        return GridRow(self._label(table, row, group), key, tuple(cells))

    def _label(self, table: Table, row: TableRow, group: Sequence[TableRow]) -> str:
        """A row's own label, else the method's; on another encoder that encoder's, and the method's where several rows
        of the group would else bear the same.
        """
        method = self.registry.methods.methods[row.method].label
        if row.label is not None or row.encoder == "base":
            return row.label or method
        dataset = next(column.dataset for column in table.columns if column.dataset is not None)
        name = encoder_name(self.profile, dataset, row.encoder)
        encoder = self.registry.encoders[name].label if name else row.encoder
        alone = sum(other.encoder == row.encoder and other.label is None for other in group) == 1
        return encoder if alone else f"{encoder}, {method}"

    def _cell(self, request: CellRequest) -> Cell:
        key = (request.parts, request.metric)
        if key not in self._cells:
            self._cells[key] = self._made(request)
        return self._cells[key]

    def _made(self, request: CellRequest) -> Cell:
        metric = self.registry.metrics[request.metric]
        found: dict[int, list[_Value]] = {}
        missing: dict[int, str] = {}
        seeds = self.finder.seeds(request.parts[0].subject, self.seeds)
        for seed in seeds:
            values = [self._value(part, metric, seed) for part in request.parts]
            reasons = [value for value in values if isinstance(value, str)]
            if reasons:
                missing[seed] = reasons[0]
            else:
                found[seed] = [value for value in values if isinstance(value, _Value)]
        missing |= {seed: _NO_ENSEMBLE for seed in self.seeds if seed not in seeds}
        sources = tuple(dict.fromkeys(self._runs(part for parts in found.values() for part in parts)))
        return Cell(
            values=tuple(fmean(part.value for part in parts) for parts in found.values()),
            expected=len(self.seeds),
            decimals=request.decimals,
            better=metric.better,
            seeds=tuple(found),
            trainings=self.finder.trainings(request.parts[0].subject),
            resample=partial(_mean_of_parts, list(found.values()), metric.scale) if metric.score in _TESTED else None,
            sources=sources,
            labels_without_rows=max(
                (part.view.labels_without_rows for parts in found.values() for part in parts), default=0
            ),
            temperatures=tuple(_temperatures(found)),
            without_optimum=metric.score not in _OF_PREDICTIONS
            and any(part.view.at_bound for parts in found.values() for part in parts),
            not_resampled=self._not_resampled(request),
            precisions=self._precisions_of(sources),
            rau_was_idle=bool(sources) and all(rau_was_idle(self.finder.finished.by_run[run]) for run in sources),
            missing=missing,
        )

    def _not_resampled(self, request: CellRequest) -> str:
        resampled = self.registry.scoring.rare_labels
        if all(part.rarest is None or part.rarest <= resampled for part in request.parts):
            return ""
        return f"of single labels only the {resampled} rarest are resampled (rare_labels)"

    def _precisions_of(self, runs: Iterable[str]) -> tuple[str, ...]:
        trainings = [self.finder.finished.by_run[run_id].training for run_id in runs]
        return tuple(sorted({training.precision for training in trainings if training}))

    def _runs(self, values: Iterable[_Value]) -> Iterator[str]:
        """The runs that values are of, and where these are an ensemble's the other members at hand."""
        for value in values:
            yield value.result.run_id
            for member in value.view.members:
                if member.run_id in self.finder.finished.by_run:
                    yield member.run_id

    def _value(self, part: Part, metric: Metric, seed: int) -> _Value | str:
        """The value of one run, or why there is none."""
        found = self.finder.scored(part.subject, seed)
        if isinstance(found, str):
            return found
        result, view = found.result, found.view
        if part.rarest is None:
            if metric.score not in view.scores:
                return "scored before there was this measure; benchmark.run scores it anew, without logits by --redo"
            return _Value(metric.scale * view.scores[metric.score], _resampled(view, metric.score), result, view)
        label = found.data.rarest(part.rarest)
        per_label = getattr(view.per_label, metric.score, None)
        if label is None:
            return f"there are only {len(found.data.label_names)} labels"
        if per_label is None:
            return "there is no such value for one label"
        return _Value(metric.scale * per_label[label], _resampled(view, metric.score, label), result, view)


def _precisions(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Of the trainings behind the cells."""
    return tuple(sorted({precision for cell in cells for precision in cell.precisions}))


def _temperatures(found: Mapping[int, Sequence[_Value]]) -> Iterator[FittedTemperature]:
    for seed, parts in found.items():
        view = parts[0].view
        if len({part.result.run_id for part in parts}) == 1 and view.temperature is not None:
            yield FittedTemperature(seed, view.temperature, bool(view.at_bound))


def _resampled(view: ViewRecord, score: str, label: int | None = None) -> Sequence[float] | None:
    """A score, of one label or of all, on the resamples; None where it was not resampled."""
    if view.resampled is None:
        return None
    if label is None:
        whole = {"f1": view.resampled.f1, "ece": view.resampled.ece} | view.resampled.measures
        return whole.get(score)
    rare = next((rare for rare in view.resampled.rare_labels if rare.label == label), None)
    return {"f1": rare.f1, "ece": rare.ece}.get(score) if rare else None


def _mean_of_parts(seeds: list[list[_Value]], scale: float) -> Array | None:
    """Shape (seeds, resamples), the mean over the parts of a cell; None where any part was not resampled."""
    rows = []
    for parts in seeds:
        resampled = [np.array(part.resampled, dtype=np.float64) for part in parts if part.resampled is not None]
        if len(resampled) < len(parts):
            return None
        rows.append(np.mean([scale * draws for draws in resampled], axis=0))
    return np.array(rows) if rows else None

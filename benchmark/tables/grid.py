"""A table as cells, before it is rendered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import Literal

from benchmark.metrics import Array
from benchmark.significance import Difference, paired_difference


@dataclass(frozen=True)
class FittedTemperature:
    """What temperature scaling found for one seed; ``at_bound`` where its search ended at a bound, so found none."""

    seed: int
    value: float
    at_bound: bool


@dataclass(frozen=True)
class Lead:
    """How far the one best cell of a column is from the runner-up: winner - runner-up, over the seeds that both have.
    ``of_all``: whether neither has others, which may have made it the best. ``within_noise``: by the p-value adjusted
    for all leads of the table.
    """

    runner_up: str  # the label of its row
    difference: Difference
    seeds: tuple[int, ...]
    of_all: bool
    within_noise: bool = False


@dataclass(frozen=True)
class Cell:
    """One metric over seeds. ``values`` are scaled as printed (percent), one a seed that has a result."""

    values: tuple[float, ...]
    expected: int
    decimals: int
    better: Literal["higher", "lower"]
    seeds: tuple[int, ...] = ()  # those of the values
    trainings: int = 1  # behind each value: of an ensemble several, that of its seed and those that follow
    # none for a measure that is never resampled; gives none where these results were scored before it was
    resample: Callable[[], Array | None] | None = field(default=None, compare=False, repr=False)
    not_resampled: str = ""  # why they give none, where that is not their age
    sources: tuple[str, ...] = ()  # run ids behind the values
    labels_without_rows: int = 0  # of the macro averages' labels, at most of any of the runs
    temperatures: tuple[FittedTemperature, ...] = ()  # of one data set's runs; none for a mean over several
    # whether a temperature behind the values is none that the validation rows asked for; never of F1, which none moves
    without_optimum: bool = False
    precisions: tuple[str, ...] = ()  # of the trainings behind the values
    rau_was_idle: bool = False  # in every training behind the values
    missing: Mapping[int, str] = field(default_factory=dict)  # why there is no value, by seed
    best: bool = False
    lead: Lead | None = None  # where this cell alone is best and both were resampled
    lead_untested: str = ""  # why not, though the measure is one that is resampled
    paper: float | None = None

    @cached_property
    def resampled(self) -> Array | None:
        """The values on resampled test rows, as printed, shape (seeds, resamples). Made when they are asked for: most
        cells are compared with none.
        """
        return self.resample() if self.resample else None

    @property
    def seeds_behind(self) -> frozenset[int]:
        """The seeds of all trainings that the values are made of."""
        return frozenset(first + place for first in self.seeds for place in range(self.trainings))

    @property
    def why_missing(self) -> str | None:
        """Why there is no value of the first seed without one."""
        return next(iter(self.missing.values()), None)

    @property
    def mean(self) -> float | None:
        """The mean over the seeds found; None for none."""
        return fmean(self.values) if self.values else None

    @property
    def known(self) -> float:
        """The mean of a cell that is known to have values. Raises StatisticsError for none."""
        return fmean(self.values)

    @property
    def printed(self) -> float:
        """The mean of a cell that is known to have values, rounded as it is printed."""
        return round(self.known, self.decimals)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation (n - 1); None for fewer than two seeds."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def from_paper(self) -> float | None:
        """Ours minus the paper's, both as printed, so that it adds up on paper; None where either is missing."""
        if self.mean is None or self.paper is None:
            return None
        return self.printed - round(self.paper, self.decimals)

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

    @property
    def is_ensemble(self) -> bool:
        """Whether its values are each of several trainings."""
        return any(cell.trainings > 1 for cell in self.cells)

    @property
    def has_values(self) -> bool:
        """Whether any of its cells has a result."""
        return any(cell.values for cell in self.cells)


def full_label(row: GridRow, first: GridRow) -> str:
    """A row's label; where it only says what is added to the first row of its group, after that one's."""
    return f"{first.label} {row.label}" if row.label.startswith("+") else row.label


@dataclass(frozen=True)
class GridColumn:
    """A heading over one or more metrics, each with the label that it shows and its name in the registry.
    ``precisions``: of the trainings below it, where these are of one data set.
    """

    label: str
    metrics: tuple[str, ...]
    names: tuple[str, ...]
    precisions: tuple[str, ...] = ()


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
    precisions: tuple[str, ...] = ()  # of the trainings behind the cells

    @property
    def every_row(self) -> tuple[GridRow, ...]:
        """The rows, whatever group they are in."""
        return tuple(row for group in self.groups for row in group)

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.every_row for cell in row.cells]

    @property
    def has_paper(self) -> bool:
        """Whether the paper has a number for any of the cells."""
        return any(cell.paper is not None for cell in self.cells)

    def cell(self, row_key: str, column_label: str, metric: str) -> Cell | None:
        """The cell of a row (by its key), a group of columns (by its label) and a metric (by its name)."""
        places = [(column.label, name) for column in self.columns for name in column.names]
        rows = {row.key: row for row in self.every_row}
        if row_key not in rows or (column_label, metric) not in places:
            return None
        return rows[row_key].cells[places.index((column_label, metric))]


def difference(first: Cell, second: Cell) -> Difference | None:
    """``first - second`` over the seeds that both have; None where there is none, or either was not resampled. Nor is
    there one between an ensemble and single trainings: its one value over several seeds has no spread to judge it by,
    and is no pair of the training that has the first of those seeds.
    """
    shared = shared_seeds(first, second)
    if first.trainings != second.trainings or not shared or first.resampled is None or second.resampled is None:
        return None
    ours, theirs = ([cell.seeds.index(seed) for seed in shared] for cell in (first, second))
    return paired_difference(*shared_values(first, second), first.resampled[ours], second.resampled[theirs])


def why_untested(first: Cell, second: Cell) -> str:
    """Why there is no ``difference`` of the two."""
    if first.trainings != second.trainings:
        return "one of the two is an ensemble, a single value over several seeds"
    if not shared_seeds(first, second):
        return "they share no seed"
    return first.not_resampled or "one of the two was scored before this measure was resampled"


def shared_seeds(first: Cell, second: Cell) -> tuple[int, ...]:
    """The seeds that both cells have values of."""
    return tuple(seed for seed in first.seeds if seed in second.seeds)


def shared_values(first: Cell, second: Cell) -> tuple[list[float], list[float]]:
    """The values of those seeds, of either."""
    shared = shared_seeds(first, second)
    ours, theirs = ([cell.values[cell.seeds.index(seed)] for seed in shared] for cell in (first, second))
    return ours, theirs

"""Would another measure order the methods otherwise? Ranks under every measure, and how far they agree with ECE's."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from benchmark.declarations import Table, TableColumn, TableRow
from benchmark.registry import clean_columns, told_apart
from benchmark.tables import GridBuilder, over_shared_seeds

AGAINST = "ece"  # the paper's measure, which the others are compared with
RANKED_BY = (
    "f1",
    AGAINST,
    "top_label_ece",
    "adaptive_ece",
    "debiased_ce",
    "mce",
    "brier",
    "nll",
    "aurc",
    "risk_at_80",
)


@dataclass(frozen=True)
class Ranking:
    """The methods of one data set in the order of their ECE. ``ranks[m][j]``: of method m under measure j, 1 the best;
    methods whose printed means are equal share the better rank. ``agreement[j]``: Kendall's tau-b with ECE's ranks,
    None where a measure does not tell any methods apart.
    """

    dataset: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    ranks: tuple[tuple[int, ...], ...]
    agreement: tuple[float | None, ...]
    seeds: tuple[int, ...]
    short: tuple[str, ...]  # methods left out, having fewer values or other seeds
    precisions: tuple[str, ...]  # of the trainings
    without_optimum: tuple[str, ...] = ()  # methods left out because their temperature was not found


def rank_methods(builder: GridBuilder, tables: Iterable[Table]) -> list[Ranking]:
    """A ranking for every data set that the tables look at without noise, over all their methods on the base encoder
    that have results, and over the seeds that these share; a data set with fewer than two of them is left out.
    """
    tables = list(tables)
    rows = {row.method: row for table in tables for row in table.every_row if row.encoder == "base"}
    datasets = dict.fromkeys(column.dataset for table in tables for column in clean_columns(table, set()))
    every = told_apart(builder.registry, rows.values())
    found = [_rank(builder, dataset, every) for dataset in datasets if dataset is not None]
    return [ranking for ranking in found if ranking is not None]


def _rank(builder: GridBuilder, dataset: str, rows: tuple[TableRow, ...]) -> Ranking | None:
    from scipy.stats import rankdata

    metrics = builder.registry.metrics
    names = tuple(name for name in RANKED_BY if name in metrics)
    if not rows or AGAINST not in names:
        return None
    label = builder.registry.dataset_label(builder.profile, dataset)
    column = TableColumn(label=label, dataset=dataset, metrics=names)
    table = Table(number="ranking", caption="Ranks.", rows=(rows,), columns=(column,))
    shared = over_shared_seeds(builder, "ranking", table)
    every = [*shared.rows, *shared.ensembles]
    unfound = {row.key: row.label for row in every if any(cell.without_optimum for cell in row.cells)}
    known = [row for row in every if row.key not in unfound]
    if len(known) < 2:
        return None
    signs = [1 if metrics[name].better == "lower" else -1 for name in names]
    printed = [[sign * row.cells[place].printed for row in known] for place, sign in enumerate(signs)]
    ranks = [[int(rank) for rank in rankdata(values, method="min")] for values in printed]
    base = names.index(AGAINST)
    order = sorted(range(len(known)), key=lambda method: printed[base][method])
    return Ranking(
        dataset=label,
        methods=tuple(known[method].label for method in order),
        measures=tuple(metrics[name].label for name in names),
        ranks=tuple(tuple(ranks[place][method] for place in range(len(names))) for method in order),
        agreement=tuple(_agreement(ranks[place], ranks[base]) for place in range(len(names))),
        seeds=shared.grid.seeds,
        short=shared.short,
        precisions=shared.grid.precisions,
        without_optimum=tuple(unfound.values()),
    )


def _agreement(first: list[int], second: list[int]) -> float | None:
    from scipy.stats import kendalltau

    tau = float(kendalltau(first, second).statistic)
    return None if math.isnan(tau) else tau  # not a number: all equal

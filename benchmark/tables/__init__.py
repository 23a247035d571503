"""Tables as grids of cells: means, spreads, counts, what is best, by a lead beyond noise or not, what is missing."""

from benchmark.tables.agreement import agreed_inputs, is_about, of_tables, seeds_at_hand
from benchmark.tables.best import mark_best
from benchmark.tables.building import GridBuilder
from benchmark.tables.differences import DifferenceTable, Gap, GapRow, differences
from benchmark.tables.finding import ResultFinder, Scored
from benchmark.tables.grid import (
    Cell,
    FittedTemperature,
    Grid,
    GridColumn,
    GridRow,
    Lead,
    difference,
    full_label,
    shared_seeds,
    why_untested,
)
from benchmark.tables.idle import idle_in_words, without_effect
from benchmark.tables.sharing import SharedGrid, over_shared_seeds
from benchmark.tables.wording import (
    ONE_SEED,
    as_sentence,
    consecutive,
    in_a_row,
    left_out,
    seed_list,
    seeds_in_words,
    trained_in,
    without_rows,
)

__all__ = [
    "ONE_SEED",
    "Cell",
    "DifferenceTable",
    "FittedTemperature",
    "Gap",
    "GapRow",
    "Grid",
    "GridBuilder",
    "GridColumn",
    "GridRow",
    "Lead",
    "ResultFinder",
    "Scored",
    "SharedGrid",
    "agreed_inputs",
    "as_sentence",
    "consecutive",
    "difference",
    "differences",
    "full_label",
    "idle_in_words",
    "in_a_row",
    "is_about",
    "left_out",
    "mark_best",
    "of_tables",
    "over_shared_seeds",
    "seed_list",
    "seeds_at_hand",
    "seeds_in_words",
    "shared_seeds",
    "trained_in",
    "why_untested",
    "without_effect",
    "without_rows",
]

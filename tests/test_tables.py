"""Grids and their rendering: means, spreads, what is best, what is missing; names come through as themselves."""

import io
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.claims import judge_all
from benchmark.declarations import Comparison, TrainingRule
from benchmark.errors import UserError
from benchmark.inputs import FoundInputs, places
from benchmark.page.details import detail, lead_in_words
from benchmark.plan import make_plan
from benchmark.registry import (
    Inputs,
    Registry,
    Subject,
    load_registry,
    method_view,
    methods_of,
    resolve_run,
    select_tables,
    validation_view,
)
from benchmark.render import claims_to_latex, differences_to_latex, to_csv, to_document, to_latex, to_markdown
from benchmark.render import text as render_text
from benchmark.render.latex import escape as latex_escape
from benchmark.render.markdown import escape as markdown_escape
from benchmark.reporting import advice_in, claims_in, ranking_in
from benchmark.shown_inputs import shown_inputs
from benchmark.specs import identity
from benchmark.store import KnownResults, Result
from benchmark.tables import (
    Cell,
    Grid,
    GridBuilder,
    GridColumn,
    GridRow,
    agreed_inputs,
    difference,
    differences,
    is_about,
    mark_best,
    of_tables,
    seeds_at_hand,
    without_effect,
)
from benchmark.tables.sharing import _most_compared
from tests.conftest import EXPERIMENTS
from tests.results import failed_result, made_result, tiny_inputs, with_rau, with_scores

METHODS = ("bert", "ls", "poscal", "avuc", "hs_rau")


@pytest.fixture(scope="module")
def results(registry: Registry) -> list[Result]:
    """Every run of Table 1, one seed, with F1 of 0.80, 0.81, ... by method and ECE that falls."""
    made = []
    for number, method in enumerate(METHODS):
        for dataset in ("tnews", "hwu64", "banking77"):
            result = made_result(registry, Subject(dataset, "base", method))
            made.append(with_scores(result, f1=0.80 + number / 100, ece=0.5 - number / 10))
    return made


def grid(registry: Registry, results: list[Result], name: str, seeds: tuple[int, ...] = (0,), inputs=None) -> Grid:
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), inputs or tiny_inputs(), seeds)
    return builder.build(name, select_tables(registry, "tiny", [name])[name])


def row(grid: Grid, key: str) -> GridRow:
    return next(row for row in grid.every_row if row.key == key)


def test_a_table_has_the_papers_rows_columns_and_order(registry: Registry, results: list[Result]) -> None:
    made = grid(registry, results, "main")
    assert [[row.label for row in group] for group in made.groups] == [
        ["BERT", "TS", "LS", "PosCal", "AVUC"],
        ["HS-RAU"],
    ]
    assert [(column.label, column.metrics) for column in made.columns] == [
        (label, ("F1", "ECE")) for label in ("TNEWS", "HWU64", "BANKING77", "Average")
    ]
    assert row(made, "ls").cells[0].mean == pytest.approx(81.0)
    assert row(made, "hs_rau").cells[7].mean == pytest.approx(10.0)
    assert row(made, "hs_rau").cells[0].paper == 56.02


def test_a_method_that_cannot_be_trained_costs_its_own_row(registry: Registry, results: list[Result]) -> None:
    rule = TrainingRule(method="poscal", epochs=1)  # after which its term would join
    tiny = registry.profiles["tiny"]
    late = tiny.model_copy(update={"training": (*tiny.training, rule)})
    changed = replace(registry, profiles=registry.profiles | {"tiny": late})
    with pytest.raises(UserError, match="so never"):
        resolve_run(changed, "tiny", Subject("tnews", "base", "poscal"), 0, tiny_inputs())
    others = [result for number, result in enumerate(results) if METHODS[number // 3] != "poscal"]
    assert of_tables(changed, "tiny", results) == others
    made = grid(changed, others, "main")
    assert row(made, "ls").cells[0].mean == pytest.approx(81.0)
    assert row(made, "poscal").cells[0].why_missing.startswith("it cannot be trained: Profile tiny trains poscal on")
    tables = select_tables(changed, "tiny", ["main"])
    plan = make_plan(changed, "tiny", tables, (0,), tiny_inputs(), KnownResults.of([]), leave_out=True)
    assert {method for planned in plan for method in planned.methods} == {"bert", "ts", "ls", "avuc", "hs_rau"}


def test_a_table_of_one_data_set_names_it(registry: Registry, results: list[Result]) -> None:
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    made = builder.build("main", select_tables(registry, "tiny", ["main"], datasets=["hwu64"])["main"])
    assert "| Model   |   HWU64 F1 |   HWU64 ECE |" in to_markdown(made)
    assert r"\multicolumn{2}{c}{HWU64}" in to_latex(made)


def test_temperature_scaling_takes_its_view_of_berts_run(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    made = grid(registry, [result], "main")
    plain, scaled = row(made, "bert").cells, row(made, "ts").cells
    assert plain[0].mean == scaled[0].mean
    assert plain[1].mean != scaled[1].mean
    assert plain[1].sources == scaled[1].sources == (result.run_id,)


def detail_of(made: Grid, result: Result) -> tuple[tuple[str, str], ...]:
    """What the page says behind the ECE of temperature scaling."""
    return detail(row(made, "ts").cells[1], "TS, TNEWS ECE", (0,), "", {result.run_id: "a file"}).lines


def test_the_temperatures_are_at_hand_and_one_at_a_bound_is_said(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    scaled = next(view for view in result.views if view.temperature is not None)
    said = "its search ended at a bound"
    made = grid(registry, [result], "main")
    assert row(made, "bert").cells[0].temperatures == ()
    (found,) = row(made, "ts").cells[1].temperatures
    assert (found.seed, found.value, found.at_bound) == (0, scaled.temperature, False)
    assert said not in to_markdown(made)
    assert ("Temperature", f"{scaled.temperature:.3f} (seed 0)") in detail_of(made, result)
    bounded = scaled.model_copy(update={"temperature": 100.0, "at_bound": True})
    views = [bounded if view is scaled else view for view in result.views]
    made = grid(registry, [result.model_copy(update={"views": views})], "main")
    assert said in to_markdown(made)
    assert not row(made, "ts").cells[1].best
    elsewhere = [made_result(registry, Subject(dataset, "base", "bert")) for dataset in ("hwu64", "banking77")]
    whole = grid(registry, [result.model_copy(update={"views": views}), *elsewhere], "main")
    of_ts = row(whole, "ts").cells
    # F1, which no temperature moves, and ECE, of three data sets and their mean
    assert [cell.without_optimum for cell in of_ts] == [False, True, *[False] * 5, True]
    assert of_ts[-1].values
    assert not of_ts[-1].best
    assert f"{row(made, 'ts').cells[1].mean:.2f}§" in to_markdown(made)
    assert r"\S{} Never best" in to_latex(made)
    assert ("Temperature", "100.000, a bound of the search (seed 0)") in detail_of(made, result)


def test_low_frequency_columns_take_the_label_of_that_rank(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))  # counts fall: the rarest label is the last
    made = grid(registry, [result], "low_frequency")
    values = [cell.mean for cell in row(made, "bert").cells]
    per_label = result.views[0].per_label
    assert values[:3] == pytest.approx([100 * per_label.f1[label] for label in (5, 4, 3)])
    assert values[3] == pytest.approx(100 * sum(per_label.f1[3:]) / 3)
    assert values[4] == pytest.approx(100 * sum(per_label.ece[3:]) / 3)


def test_low_frequency_cells_are_resampled_as_their_labels(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    found = row(grid(registry, [result], "low_frequency"), "bert").cells
    rare = result.views[0].resampled.rare_labels[:3]
    f1, ece = ([100 * np.array(getattr(label, name)) for label in rare] for name in ("f1", "ece"))
    for cell, draws in zip(found[:3], f1, strict=True):
        np.testing.assert_allclose(cell.resampled, [draws])
    np.testing.assert_allclose(found[3].resampled, [np.mean(f1, axis=0)], rtol=1e-6)
    np.testing.assert_allclose(found[4].resampled, [np.mean(ece, axis=0)], rtol=1e-6)


def test_of_labels_beyond_the_rarest_it_is_said_why_no_lead_is_tested(registry: Registry) -> None:
    """TNEWS has six labels here, of which as many as rare_labels says are resampled."""
    resampled = registry.scoring.rare_labels
    made = [made_result(registry, Subject("tnews", "base", method)) for method in ("bert", "ls")]
    made[1] = with_scores(made[1], f1=0.9)
    table = registry.tables["low_frequency"]
    columns = tuple(
        table.columns[0].model_copy(update={"rarest": rank, "label": str(rank)}) for rank in (resampled + 1, 7)
    )
    rarer = table.model_copy(update={"columns": columns})
    built = GridBuilder(registry, "tiny", KnownResults.of(made), tiny_inputs(), (0,)).build("low_frequency", rarer)
    first, *_, last = built.every_row[0].cells
    assert first.not_resampled == f"of single labels only the {resampled} rarest are resampled (rare_labels)"
    assert last.why_missing == "there are only 6 labels"


def test_the_labels_errors_add_up_to_the_whole(registry: Registry) -> None:
    view = made_result(registry, Subject("tnews", "base", "bert")).views[0]
    assert sum(view.per_label.ece) == pytest.approx(view.scores["ece"])


def test_a_difference_to_the_paper_adds_up_as_printed() -> None:
    """81.004 and 80.996 are printed 81.00 and 81.00."""
    cell = Cell((81.004,), 1, 2, "higher", seeds=(0,), paper=80.996)
    assert cell.from_paper == 0.0
    assert replace(cell, paper=80.99).from_paper == pytest.approx(0.01)
    assert replace(cell, paper=None).from_paper is None


def test_labels_without_rows_of_any_part_are_told(registry: Registry) -> None:
    results = [made_result(registry, Subject(name, "base", "bert")) for name in ("tnews", "hwu64", "banking77")]
    without = [view.model_copy(update={"labels_without_rows": 2}) for view in results[1].views]
    results[1] = results[1].model_copy(update={"views": without})
    cells = row(grid(registry, results, "main"), "bert").cells
    assert [cell.labels_without_rows for cell in cells] == [0, 0, 2, 2, 0, 0, 2, 2]


def test_a_mean_with_a_missing_part_is_missing(registry: Registry, results: list[Result]) -> None:
    some = [result for result in results if result.run.data.dataset != "tiny_hwu64"]
    cells = row(grid(registry, some, "main"), "ls").cells
    assert cells[2].mean is None
    assert cells[2].why_missing == "no result"
    assert cells[6].mean is None
    assert cells[0].mean is not None


def test_a_failed_run_is_missing_with_its_reason(registry: Registry, results: list[Result]) -> None:
    broken = [failed_result(result.run) if "hyper" in result.run.head.kind else result for result in results]
    assert row(grid(registry, broken, "main"), "hs_rau").cells[0].why_missing == "the run failed (diverged)"


def test_each_missing_seed_has_its_own_reason(registry: Registry) -> None:
    made = seeds_of(registry, {0: 0.80, 2: 0.84})
    cell = row(grid(registry, [made[0], failed_result(made[1].run)], "main", seeds=(0, 1, 2, 3)), "bert").cells[0]
    assert dict(cell.missing) == {1: "no result", 2: "the run failed (diverged)", 3: "no result"}
    found = dict(detail(cell, "BERT", (0, 1, 2, 3), "", {made[0].run_id: "a file"}).lines)
    assert found["Missing"] == "seeds 1, 3: no result; seed 2: the run failed (diverged)"


def test_a_view_that_was_not_scored_is_missing(registry: Registry, results: list[Result]) -> None:
    plain_only = [result.model_copy(update={"views": result.views[:1]}) for result in results]
    assert row(grid(registry, plain_only, "main"), "ts").cells[0].why_missing.startswith("not scored yet")
    because = {identity(method_view(registry, "ts")): "no luck."}
    failed = [result.model_copy(update={"unscored_because": because}) for result in plain_only]
    assert row(grid(registry, failed, "main"), "ts").cells[0].why_missing == "it could not be scored: no luck"


def seeds_of(registry: Registry, values: dict[int, float]) -> list[Result]:
    return [
        with_scores(made_result(registry, Subject("tnews", "base", "bert"), seed=seed), f1=value)
        for seed, value in values.items()
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({0: 0.80}, "80.00"),
        ({0: 0.80, 1: 0.82}, "81.00 ± 1.41"),
        ({0: 0.80, 1: 0.82, 2: 0.84}, "82.00 ± 2.00"),
    ],
)
def test_one_two_and_three_seeds(registry: Registry, values: dict[int, float], text: str) -> None:
    made = grid(registry, seeds_of(registry, values), "main", seeds=tuple(values))
    markdown = to_markdown(made)
    assert f" **{text}** " in markdown  # BERT and TS have the same F1, so both are best
    if len(values) == 1:
        assert "One seed (0)." in markdown
        assert row(made, "bert").cells[0].deviation is None
    else:
        assert f"n = {len(values)} seeds" in markdown


@pytest.mark.parametrize(("value", "plain", "with_sign"), [(-1e-7, "0.00", "+0.00"), (-0.126, "−0.13", "−0.13")])
def test_nothing_has_no_minus_sign(value: float, plain: str, with_sign: str) -> None:
    assert (render_text.number(value, 2), render_text.signed(value, 2)) == (plain, with_sign)


def test_partial_seeds_are_marked_with_their_number(registry: Registry) -> None:
    made = grid(registry, seeds_of(registry, {0: 0.80, 2: 0.84}), "main", seeds=(0, 1, 2))
    assert row(made, "bert").cells[0].partial
    markdown = to_markdown(made)
    assert "82.00 ± 2.83 (n=2)" in markdown
    assert "(n=...) fewer values than seeds." in markdown
    assert "(n=2)" in to_latex(made)


def test_a_table_of_trainings_in_two_precisions_says_so(registry: Registry) -> None:
    first, second = seeds_of(registry, {0: 0.80, 1: 0.84})
    other = second.model_copy(update={"training": second.training.model_copy(update={"precision": "bfloat16"})})
    sentence = "Trained in bfloat16 and float32, which are not told apart here."
    assert sentence in to_markdown(grid(registry, [first, other], "main", seeds=(0, 1)))
    assert sentence not in to_markdown(grid(registry, [first, second], "main", seeds=(0, 1)))
    hwu64 = made_result(registry, Subject("hwu64", "base", "bert"))
    hwu64 = hwu64.model_copy(update={"training": hwu64.training.model_copy(update={"precision": "bfloat16"})})
    apart = to_markdown(grid(registry, [first, hwu64], "main"))  # which nobody compares with each other
    assert "Trained in bfloat16 (HWU64) and in float32 (TNEWS)." in apart
    assert sentence not in apart


def test_a_table_says_where_rau_did_nothing(registry: Registry) -> None:
    """At ln 2, whatever the losses beside it: no row certain, or every one, and so no gradient."""
    tnews, hwu64 = (made_result(registry, Subject(dataset, "base", "hs_rau")) for dataset in ("tnews", "hwu64"))
    idle = {0: with_rau(tnews, [None, math.log(2), math.log(2) + 9.9e-4]), 1: with_rau(hwu64, [0.6931])}
    ending = ": next to no training row was certain, or next to none uncertain."
    assert f"RAU had no effect in HS-RAU (TNEWS){ending}" in to_markdown(grid(registry, [idle[0], hwu64], "main"))
    everywhere = to_markdown(grid(registry, list(idle.values()), "main"))
    assert f"RAU had no effect in HS-RAU{ending}" in everywhere
    assert f"RAU had no effect in HS-RAU{ending}" in to_markdown(grid(registry, [idle[0]], "main"))
    for values in ([0.6931, math.log(2) - 1.1e-3], [0.0], [None], []):  # the last two never joined
        assert "RAU had" not in to_markdown(grid(registry, [with_rau(tnews, values), hwu64], "main"))
    untold = tnews.model_copy(update={"training": None})
    assert "RAU had" not in to_markdown(grid(registry, [untold], "main"))
    acts = made_result(registry, Subject("tnews", "base", "hs_rau"), seed=1)
    assert "RAU had" not in to_markdown(grid(registry, [idle[0], acts], "main", seeds=(0, 1)))
    for other in ("without_rau", "rau_to_avuc"):
        made = made_result(registry, Subject("tnews", "base", other))
        epochs = [replace(made.training.epochs[0], terms=[math.log(2)] * len(made.run.loss))]
        made = made.model_copy(update={"training": made.training.model_copy(update={"epochs": epochs})})
        assert "RAU had" not in to_markdown(grid(registry, [made], "ablation"))


def test_a_row_that_is_an_addition_is_named_with_what_it_adds_to() -> None:
    cells = (Cell((1.0,), 1, 2, "higher", rau_was_idle=True),)
    rows = (GridRow("ALBERT", "albert bert", (Cell((1.0,), 1, 2, "higher"),)), GridRow("+ HS-RAU", "albert hs", cells))
    made = Grid("x", "5", "", None, (0,), (GridColumn("TNEWS", ("F1",), ("f1",)),), (rows,))
    assert without_effect(made).startswith("RAU had no effect in ALBERT + HS-RAU: ")


def test_so_do_verdicts_on_it(registry: Registry) -> None:
    beside_bert = Comparison(row="hs_rau", against=("bert",), column="HWU64", metric="f1")
    claims = {"a": registry.claims["best_f1_hwu64"].model_copy(update={"comparisons": (beside_bert,)})}
    bert, acts = (made_result(registry, Subject("hwu64", "base", method)) for method in ("bert", "hs_rau"))
    for result, said in ((with_rau(acts, [math.log(2)]), True), (acts, False)):
        judging = replace(registry, claims=claims)
        builder = GridBuilder(judging, "tiny", KnownResults.of([bert, result]), tiny_inputs(), (0,))
        assert ("RAU had no effect in HS-RAU (HWU64): " in claims_in(builder, "markdown")["claims.md"]) == said


LS_BESIDE_BERT = Comparison(row="ls", against=("bert",), column="HWU64", metric="f1")


def test_so_do_advice_ranks_verdicts_and_searches(registry: Registry) -> None:
    """BERT's and LS's trainings, a method in each precision, then both in one."""
    bert, ls = (made_result(registry, Subject("hwu64", "base", method)) for method in ("bert", "ls"))
    other = ls.model_copy(update={"training": ls.training.model_copy(update={"precision": "bfloat16"})})
    claims = {"a": registry.claims["best_f1_hwu64"].model_copy(update={"comparisons": (LS_BESIDE_BERT,)})}
    table = {"main": registry.tables["main"]}
    for second, mixed in ((other, True), (ls, False)):
        judging = replace(registry, claims=claims)
        builder = GridBuilder(judging, "tiny", KnownResults.of([bert, second]), tiny_inputs(), (0,))
        for texts in (advice_in(builder, table), ranking_in(builder, table), claims_in(builder, "markdown")):
            (text,) = texts.values()
            assert ("Trained in bfloat16 and float32" in text) == mixed, text


def test_verdicts_on_data_sets_of_one_precision_each_say_nothing_of_it(registry: Registry) -> None:
    of_hwu64, of_tnews = (
        [made_result(registry, Subject(name, "base", method)) for method in ("bert", "ls")]
        for name in ("hwu64", "tnews")
    )
    in_bfloat16 = {"training": of_hwu64[0].training.model_copy(update={"precision": "bfloat16"})}
    results = [*(result.model_copy(update=in_bfloat16) for result in of_hwu64), *of_tnews]
    comparisons = (LS_BESIDE_BERT, LS_BESIDE_BERT.model_copy(update={"column": "TNEWS"}))
    claim = registry.claims["best_f1_hwu64"].model_copy(update={"comparisons": comparisons})
    builder = GridBuilder(replace(registry, claims={"a": claim}), "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    (text,) = claims_in(builder, "markdown").values()
    assert "LS" in text
    assert "Trained in" not in text


def cells(values: list[float | None], better: str) -> list[Cell]:
    return [Cell(() if value is None else (value,), 1, 2, better) for value in values]


def best(rows: list[list[Cell]], per_group: bool = False) -> list[list[bool]]:
    groups = [[GridRow(str(index), str(index), tuple(row)) for index, row in enumerate(rows)]]
    return [[cell.best for cell in row.cells] for row in mark_best(groups, per_group)[0]]


def test_best_follows_the_metrics_direction_and_what_is_printed() -> None:
    f1, ece = cells([80.004, 80.001, None, 79.0], "higher"), cells([0.10, 0.10, None, 0.2], "lower")
    found = best([[a, b] for a, b in zip(f1, ece, strict=True)])
    assert found == [[True, True], [True, True], [False, False], [False, False]]


def test_a_lone_value_is_not_called_best() -> None:
    assert best([[cell] for cell in cells([None, 80.0, None], "higher")]) == [[False], [False], [False]]


def test_encoders_are_compared_within_their_pair(registry: Registry) -> None:
    made = []
    for number, role in enumerate(("albert_tiny", "xlnet", "bert_large")):
        for method, lead in (("bert", 0.0), ("hs_rau", 0.01)):
            result = made_result(registry, Subject("tnews", role, method))
            made.append(with_scores(result, f1=0.5 + number / 10 + lead))
    table = grid(registry, made, "encoders")
    assert [[row.cells[3].best for row in group] for group in table.groups] == [[False, True]] * 3
    assert [group[0].label for group in table.groups] == ["tiny albert", "tiny xlnet", "tiny large"]
    assert [group[1].label for group in table.groups] == ["+ HS-RAU"] * 3


def test_several_methods_on_another_encoder_are_told_apart(registry: Registry) -> None:
    declared = registry.tables["encoders"]
    rows = [declared.rows[0][0].model_copy(update={"method": name}) for name in ("bert", "ts", "ls")]
    several = declared.model_copy(update={"rows": (tuple(rows),)})
    builder = GridBuilder(registry, "tiny", KnownResults.of([]), tiny_inputs(), (0,))
    (group,) = builder.build("encoders", several).groups
    assert [one.label for one in group] == ["tiny albert, BERT", "tiny albert, TS", "tiny albert, LS"]


def resampled_cell(value: float, draws: np.ndarray) -> Cell:
    return Cell((value,), 1, 2, "higher", seeds=(0,), resample=lambda: value + draws[None])


def test_a_lead_within_noise_is_marked() -> None:
    """First column: a clear lead over the runner-up; second: one within noise; third: two best, so no lead."""
    draws = np.random.default_rng(0).normal(size=(3, 300))
    still = np.zeros(300)
    leader = GridRow("A", "a", (resampled_cell(80, draws[0]), resampled_cell(80, draws[0]), resampled_cell(80, still)))
    second = GridRow("B", "b", (resampled_cell(70, draws[1]), resampled_cell(79, draws[1]), resampled_cell(80, still)))
    third = GridRow("C", "c", (resampled_cell(60, draws[2]), resampled_cell(60, draws[2]), resampled_cell(60, still)))
    groups = mark_best([[second, leader, third]], per_group=False)
    marked = {row.key: row.cells for row in groups[0]}
    assert [cell.lead is not None for cell in marked["a"]] == [True, True, False]
    assert [cell.lead.within_noise for cell in marked["a"][:2]] == [False, True]
    assert marked["a"][1].lead.difference.estimate == pytest.approx(1.0)
    assert not any(cell.lead for cell in marked["b"] + marked["c"])
    columns = tuple(
        GridColumn(name, (metric,), ("f1",)) for name, metric in zip("XYZ", ("F1", "ECE", "NLL"), strict=True)
    )
    made = Grid("t", "1", "Caption.", None, (0,), columns, groups)
    markdown = to_markdown(made)
    assert "| A       | **80.00** | **80.00**° | **80.00** |" in markdown
    assert "° The lead over the runner-up is within noise" in markdown
    assert "over the 2 leads tested here: F1 and ECE, ties left out)" in markdown
    three = replace(
        made, columns=tuple(replace(column, metrics=(name,)) for column, name in zip(columns, "ABC", strict=True))
    )
    clear = replace(leader, cells=(marked["a"][0], marked["a"][1], marked["a"][0]))
    assert "tested here: A, B and C, ties" in to_markdown(replace(three, groups=((clear, second, third),)))
    assert r"\textbf{80.00}$^{\circ}$" in to_latex(made)


def test_a_lead_that_nothing_pairs_is_marked_as_not_tested() -> None:
    """An ensemble of seeds 0 to 2 beside three trainings: seed 0 alone is no pair of it; nor are other seeds."""
    draws = np.zeros((3, 300))
    singles = Cell((70.0, 72.0, 74.0), 3, 2, "higher", seeds=(0, 1, 2), resample=lambda: 70 + draws)
    ensemble = Cell((75.0,), 3, 2, "higher", seeds=(0,), trainings=3, resample=lambda: 75 + draws[:1])
    elsewhere = Cell((75.0,), 3, 2, "higher", seeds=(3,), resample=lambda: 75 + draws[:1])
    not_resampled = Cell((75.0,), 3, 2, "higher", seeds=(0,), trainings=3)
    from_before = Cell((75.0, 75.0, 75.0), 3, 2, "higher", seeds=(0, 1, 2), resample=lambda: None)
    ahead = GridRow("A", "a", (ensemble, elsewhere, from_before, not_resampled))
    groups = mark_best([[ahead, GridRow("B", "b", (singles,) * 4)]], per_group=False)
    cells = groups[0][0].cells
    assert [(cell.best, cell.lead, cell.lead_untested) for cell in cells] == [
        (True, None, "one of the two is an ensemble, a single value over several seeds"),
        (True, None, "they share no seed"),
        (True, None, "one of the two was scored before this measure was resampled"),
        (True, None, ""),
    ]
    columns = tuple(GridColumn(name, ("F1",), ("f1",)) for name in ("W", "X", "Y", "Z"))
    made = Grid("t", "1", "Caption.", None, (0, 1, 2), columns, groups)
    line = "| A       | **75.00 (n=1)**‡ | **75.00 (n=1)**‡ | **75.00 ± 0.00**‡ | **75.00 (n=1)** |"
    assert line in to_markdown(made)
    said = (
        "‡ The lead over the runner-up is not tested: one of the two is an ensemble, a single value over several seeds"
    )
    assert f"{said}, or they share no seed, or one of the two was scored" in to_markdown(made)
    assert r"\textbf{75.00 (n=1)}$^{\ddagger}$" in to_latex(made)
    both = Cell((76.0,), 3, 2, "higher", seeds=(0,), trainings=3, resample=lambda: 76 + draws[:1])
    assert difference(both, ensemble).estimate == 1.0


def test_leads_are_judged_together() -> None:
    """Alone the first lead, 2.2 standard errors, is beyond noise (p = 0.029); beside two that say nothing it is not."""
    draws = np.random.default_rng(0).normal(size=300)
    draws = (draws - draws.mean()) / draws.std(ddof=1)
    for leads, noisy in (((2.2,), [False]), ((2.2, 0.5, 0.4), [True] * 3)):
        ahead = GridRow("A", "a", tuple(resampled_cell(50 + lead, draws) for lead in leads))
        behind = GridRow("B", "b", tuple(resampled_cell(50, np.zeros(300)) for _ in leads))
        ((first, _),) = mark_best([[ahead, behind]], per_group=False)
        assert [one.lead.within_noise for one in first.cells] == noisy


@pytest.mark.parametrize(("better", "sign"), [("higher", 1), ("lower", -1)])
def test_a_best_value_that_is_behind_at_the_shared_seeds_has_no_lead_beyond_noise(better: str, sign: int) -> None:
    """A has seed 0 alone, 91; B, the second, has 92 there and less at others: over its own seeds B comes after A."""
    still = np.zeros((1, 300))
    ahead = Cell((sign * 91.0,), 3, 2, better, seeds=(0,), resample=lambda: sign * 91 + still)
    values = sign * np.array([92.0, 89.0, 89.0])
    behind = Cell(tuple(values), 3, 2, better, seeds=(0, 1, 2), resample=lambda: values[:, None] + still)
    ((first, _),) = mark_best([[GridRow("A", "a", (ahead,)), GridRow("B", "b", (behind,))]], per_group=False)
    assert first.cells[0].best
    assert first.cells[0].lead is None
    assert first.cells[0].lead_untested == "over the seeds that both have it is none"


def test_a_lead_over_one_shared_seed_is_not_one_over_several() -> None:
    """A has three seeds, B and C the first alone: what was tested knows nothing of how far seeds scatter."""
    draws = np.random.default_rng(0).normal(size=(2, 3, 300))
    three = Cell((80.0, 78.0, 79.0), 3, 2, "higher", seeds=(0, 1, 2), resample=lambda: 80 + draws[0])
    one = Cell((70.0,), 3, 2, "higher", seeds=(0,), resample=lambda: 70 + draws[1][:1])
    groups = mark_best([[GridRow("A", "a", (three,)), GridRow("B", "b", (one,))]], per_group=False)
    cell = groups[0][0].cells[0]
    assert (cell.lead.seeds, cell.lead.of_all, cell.lead.within_noise) == ((0,), False, False)
    said = lead_in_words(cell, cell.lead)
    assert said.startswith("10.00 higher than B over seed 0, which both have (95 % interval ")
    assert said.endswith("beyond the test rows’ noise")
    column = GridColumn("X", ("F1",), ("f1",))
    text = to_markdown(Grid("t", "1", "Caption.", None, (0, 1, 2), (column,), groups))
    assert "Leads are tested over the seeds that both have. Where there is one seed, noise is that of the" in text
    other = replace(one, resample=lambda: 78.9 + draws[1][:1], values=(78.9,))
    groups = mark_best([[GridRow("A", "a", (three,)), GridRow("B", "b", (other,))]], per_group=False)
    text = to_markdown(Grid("t", "1", "Caption.", None, (0, 1, 2), (column,), groups))
    assert "(paired bootstrap over test rows, 5 % false discoveries" in text


def test_a_row_in_two_groups_is_no_rival_of_itself() -> None:
    draws = np.random.default_rng(0).normal(size=(2, 300))
    ahead, behind = (GridRow(name, name, (resampled_cell(50, of),)) for name, of in zip("ab", draws, strict=True))
    ahead = replace(ahead, cells=(resampled_cell(50.1, draws[0]),))
    groups = mark_best([[ahead, behind], [ahead]], per_group=False)
    assert [[(row.cells[0].best, row.cells[0].lead is None) for row in group] for group in groups] == [
        [(True, False), (False, True)],
        [(True, False)],
    ]
    assert groups[0][0].cells[0].lead.within_noise
    separate = mark_best([[ahead, behind], [ahead]], per_group=True)
    assert [[row.cells[0].best for row in group] for group in separate] == [[True, False], [False]]


def test_seeds_are_paired_by_number(registry: Registry) -> None:
    first = grid(registry, seeds_of(registry, {0: 0.80, 1: 0.90}), "main", seeds=(0, 1, 2)).cell("bert", "TNEWS", "f1")
    second = grid(registry, seeds_of(registry, {1: 0.85, 2: 0.10}), "main", seeds=(0, 1, 2)).cell("bert", "TNEWS", "f1")
    assert first.seeds == (0, 1)
    assert difference(first, second).estimate == pytest.approx(5.0)  # seed 1 alone: 90 - 85
    alone = grid(registry, seeds_of(registry, {5: 0.5}), "main", seeds=(5,)).cell("bert", "TNEWS", "f1")
    assert difference(first, alone) is None


def test_rendering_beside_the_papers_numbers(registry: Registry, results: list[Result]) -> None:
    made = grid(registry, results, "main")
    markdown = to_markdown(made, compare=True)
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in markdown.splitlines() if line.startswith("|")]
    ls = next(index for index, line in enumerate(lines) if line[0] == "LS")
    assert [line[1] for line in lines[ls : ls + 3]] == ["ours", "paper", "difference"]
    assert [line[2] for line in lines[ls : ls + 3]] == ["81.00", "55.29", "+25.71"]
    assert lines[ls + 2][3] == "−13.99"
    latex = to_latex(made, compare=True)
    assert "LS & ours & 81.00" in latex
    assert "$-$13.99" in latex


def test_what_is_missing_is_said_and_shown(registry: Registry) -> None:
    made = grid(registry, [], "main")
    assert all(cell.mean is None and not cell.best for cell in made.cells)
    assert "missing: 48 of 48 cells (no result)" in to_markdown(made)
    assert " – |" in to_markdown(made)
    assert "& -- \\\\" in to_latex(made)


def test_labels_without_test_rows_are_said(registry: Registry) -> None:
    """All right on the labels that have rows, F1 is below 100: a reader would look for the mistakes."""
    bert, ls = (made_result(registry, Subject("hwu64", "base", method)) for method in ("bert", "ls"))
    views = [view.model_copy(update={"labels_without_rows": 2}) for view in ls.views]
    lacking = ls.model_copy(update={"views": views})
    sentence = "2 labels have no test row and count as 0 in precision, recall and F1."
    for second, said in ((lacking, True), (ls, False)):
        builder = GridBuilder(registry, "tiny", KnownResults.of([bert, second]), tiny_inputs(), (0,))
        (advice,) = advice_in(builder, {"main": registry.tables["main"]}).values()
        for text in (advice, to_markdown(builder.build("main", registry.tables["main"]))):
            assert (sentence in text) == said


def test_captions_say_what_a_profile_must_say(registry: Registry, results: list[Result]) -> None:
    assert "For tests only." in to_markdown(grid(registry, results, "main"))
    demo = load_registry(EXPERIMENTS).profiles["demo"]
    assert "Generated data" in demo.note


# --- which content to show -------------------------------------------------------------------------------------------


def test_results_of_different_data_never_stand_in_one_table(registry: Registry) -> None:
    one = made_result(registry, Subject("tnews", "base", "bert"))
    other = made_result(registry, Subject("tnews", "base", "ls"), inputs=tiny_inputs({"tnews": "f" * 64}))
    with pytest.raises(UserError, match=r'2 different contents of data set "tiny_tnews"'):
        agreed_inputs([one, other], Inputs(), {})
    with pytest.raises(UserError, match=r"the data set itself holds another one, so .*; run benchmark\.run, or move"):
        agreed_inputs([one, other], tiny_inputs({"tnews": "e" * 64}), {})
    at_hand = agreed_inputs([one, other], tiny_inputs({"tnews": "f" * 64}), {})
    assert at_hand.datasets["tiny_tnews"] == "f" * 64
    pinned = agreed_inputs([one, other], Inputs(), {"tiny_tnews": "a" * 64})
    assert pinned.datasets["tiny_tnews"] == "a" * 64
    made = grid(registry, [one, other], "main", inputs=pinned)
    assert row(made, "bert").cells[0].mean is not None
    assert row(made, "ls").cells[0].mean is None
    failed = other.model_copy(update={"status": "failed"})  # which has no number to show
    assert agreed_inputs([one, failed], Inputs(), {}).datasets["tiny_tnews"] == "a" * 64
    assert agreed_inputs([failed], Inputs(), {}).datasets["tiny_tnews"] == "f" * 64
    both = agreed_inputs([one, other], tiny_inputs({"tnews": "f" * 64}), {"tiny_tnews": "a" * 64})
    assert both.datasets["tiny_tnews"] == "f" * 64  # what is here goes before what is declared


def test_an_input_that_cannot_be_read_hides_no_other(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """TNEWS's results are of two contents, and its data are here; HWU64's file is broken."""
    one, hwu64 = (made_result(registry, Subject(dataset, "base", "bert")) for dataset in ("tnews", "hwu64"))
    other = made_result(registry, Subject("tnews", "base", "ls"), inputs=tiny_inputs({"tnews": "f" * 64}))

    def found(_: Registry, datasets: list[str], encoders: list[str], where: object) -> FoundInputs:
        if "tiny_hwu64" in datasets:
            raise UserError("train.csv:3: the row has no label")
        return FoundInputs(Inputs(dict.fromkeys(datasets, "f" * 64), {}))

    monkeypatch.setattr("benchmark.shown_inputs.find_inputs", found)
    inputs = shown_inputs(registry, [one, other, hwu64], places(None, None))
    assert (inputs.datasets["tiny_tnews"], inputs.datasets["tiny_hwu64"]) == ("f" * 64, hwu64.run.data.fingerprint)


def test_scores_of_other_settings_or_contents_belong_to_no_method(registry: Registry) -> None:
    run = made_result(registry, Subject("tnews", "base", "bert")).run
    test, validation = method_view(registry, "bert"), validation_view(registry)
    assert methods_of(registry, run, test) == methods_of(registry, run, validation) == "bert"
    scaled = method_view(registry, "ts")
    assert methods_of(registry, run, scaled) == "ts"
    for view in (test, validation, scaled):
        assert methods_of(registry, run, view.model_copy(update={"ece_bins": view.ece_bins + 1})) == ""
    assert is_about(run, tiny_inputs())
    assert is_about(run, Inputs())
    assert not is_about(run, tiny_inputs({"tnews": "f" * 64}))


@pytest.mark.timeout(60)
def test_rows_that_each_lack_another_seed_are_compared_in_no_time() -> None:
    every = set(range(24))
    taken = _most_compared(range(24), [every, *(every - {seed} for seed in range(24))])
    assert len(taken) == 12  # twelve seeds for the twelve rows that have them all
    assert _most_compared(range(24), [every, every, *(every - {seed} for seed in range(22))])[-2:] == (22, 23)


def test_seeds_at_hand_are_sorted_and_single(registry: Registry) -> None:
    assert seeds_at_hand(seeds_of(registry, {3: 0.8, 0: 0.8, 1: 0.8})) == [0, 1, 3]


# --- names as themselves ---------------------------------------------------------------------------------------------

NAMES = [
    "my_data&co",
    "50%",
    "reverted_card_payment?",
    "_x_ __y__ a_b_ _c",
    r"a{b}~^\#$",
    "<b>x</b>",
    "a|b",
    "*x*",
    "`y`",
    "&lt;",
    "[5mm] x",
    "a--b ''c'' ?`d",
]


def named_grid(names: list[str]) -> Grid:
    rows = tuple(GridRow(name, name, tuple(cells([1.0, 2.0], "higher"))) for name in names)
    columns = (GridColumn(names[0], ("F1",), ("f1",)), GridColumn(names[1], (names[2],), ("x",)))
    return Grid("names_table", "1", f"Caption with {' '.join(names)}", None, (0,), columns, (rows,))


def test_names_come_through_markdown_as_themselves() -> None:
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").enable("table").render(to_markdown(named_grid(NAMES)))
    import re
    from html import unescape

    shown = [unescape(text) for text in re.findall(r"<td[^>]*>(.*?)</td>", html)]
    assert shown[::3] == NAMES
    assert "<b>x" not in html
    assert unescape(re.findall(r"<p>(Caption.*?)</p>", html)[0]).startswith("Caption with " + " ".join(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_latex_escapes_leave_no_active_character(name: str) -> None:
    escaped = latex_escape(name)
    for character in "&%#_$":
        assert escaped.count(character) == escaped.count("\\" + character)
    assert "<" not in escaped
    assert "<" not in markdown_escape(name)


def test_latex_draws_no_two_letters_as_one() -> None:
    assert latex_escape("by --redo, ---, ''so''") == "by -{}-redo, -{}-{}-, '{}'so'{}'"
    assert latex_escape("`so`, ?`") == r"\textasciigrave{}so\textasciigrave{}, ?\textasciigrave{}"


def test_labels_come_through_a_csv_file_as_themselves(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    names = ["a\rb", "a\nb", 'a "b", c', " a", "\u4f60\u597d", "01"]
    named = result.model_copy(update={"data": result.data.model_copy(update={"label_names": names})})
    scores, by_label = (pd.read_csv(io.StringIO(text)) for text in to_csv([named], lambda *_: "bert"))
    assert by_label["label"].tolist() == names * len(result.views)
    assert by_label["training_rows"].tolist() == result.data.train_label_counts * len(result.views)
    assert scores["value"].tolist() == [value for view in result.views for value in view.scores.values()]
    assert scores["temperature"].isna().tolist() == [
        view.temperature is None for view in result.views for _ in view.scores
    ]


def test_a_caption_ends_before_the_next_sentence() -> None:
    made = named_grid(["a", "b", "c"])
    assert "Caption with a b c. Best as printed in bold." in to_markdown(replace(made, seeds=()))
    assert "\n\nIs it so? Best as" in to_markdown(replace(made, caption="Is it so?", seeds=()))


ENGINE = shutil.which("pdflatex") or shutil.which("tectonic") or shutil.which("xelatex")


@pytest.mark.skipif(ENGINE is None, reason="needs a TeX engine, e.g. Debian's texlive-latex-extra")
def test_every_table_compiles(registry: Registry, results: list[Result], tmp_path: Path) -> None:
    tables = [to_latex(grid(registry, results, name)) for name in registry.tables]
    tables += [to_latex(grid(registry, results, name), compare=True) for name in registry.tables]
    tables.append(to_latex(named_grid(NAMES)))
    made = differences(grid(registry, results, "main"), {"bert"}, per_group=False)
    tables.append(differences_to_latex(made, compare=True))
    tables.append(
        claims_to_latex(judge_all(GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))), "")
    )
    (tmp_path / "tables.tex").write_text(to_document(tables), encoding="utf-8")
    options = [] if "tectonic" in ENGINE else ["-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
    call = subprocess.run([ENGINE, *options, "tables.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert call.returncode == 0, call.stdout[-2000:]
    assert (tmp_path / "tables.pdf").stat().st_size > 10_000


XELATEX = shutil.which("xelatex")


@pytest.mark.skipif(XELATEX is None, reason="needs XeLaTeX, e.g. Debian's texlive-xetex")
@pytest.mark.parametrize("names", [["ő ł é", "b", "c"], ["Привет", "αβ", "ő ł"]])
def test_no_letter_is_missing_from_what_xelatex_makes(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "tables.tex").write_text(to_document([to_latex(named_grid(names))]), encoding="utf-8")
    options = ["-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
    call = subprocess.run([XELATEX, *options, "tables.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert call.returncode == 0, call.stdout[-2000:]
    assert "Missing character" not in (tmp_path / "tables.log").read_text(encoding="utf-8", errors="replace")


def test_a_font_is_asked_for_where_letters_are_not_latin_and_not_else() -> None:
    assert "setmainfont" not in to_document([to_latex(named_grid(["ő ł é ±", "don’t – …", "c"]))])
    assert "setmainfont" in to_document([to_latex(named_grid(["a → b", "b", "c"]))])
    assert r"\setmainfont{Noto Serif CJK SC}" in to_document([to_latex(named_grid(["新闻", "b", "c"]))])


def test_a_label_is_no_option_of_the_line_before_it() -> None:
    lines = to_latex(named_grid(["[5mm] x", "*x*", "c"])).splitlines()
    assert not [line for line in lines if line.startswith(("[", "*"))]
    assert sum(line.startswith(("{}[5mm] x &", "{}*x* &")) for line in lines) == 2


@pytest.mark.parametrize(
    ("rows", "taken"),
    [
        ([{0, 1, 2}, {0}, {0}, {1, 2}, {1, 2}], (1, 2)),  # four comparisons, not two
        ([{0, 1}, {0}, {0}], (0,)),
        ([{0, 1}, {0}, {0, 1}], (0,)),  # as many either way: the one that leaves nobody out
        ([{0, 1, 2}], (0, 1, 2)),
        ([{0, 1}, {2}], (0, 1)),  # nothing to compare: the first row's own
        ([], (0, 1, 2)),
    ],
)
def test_seeds_are_those_of_the_most_comparisons_with_the_first_row(
    rows: list[set[int]], taken: tuple[int, ...]
) -> None:
    assert _most_compared((0, 1, 2), rows) == taken

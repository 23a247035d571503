"""The paper's claims: each holds in the paper's own numbers; verdicts follow the stated rules."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmark.claims import Judgement, Verdict, judge, judge_all
from benchmark.declarations import Claim, Comparison, Tolerance
from benchmark.registry import load_registry
from benchmark.render import claims_summary, claims_to_latex, claims_to_markdown
from benchmark.store import KnownResults
from benchmark.tables import Cell, Grid, GridBuilder, GridColumn, GridRow
from tests.conftest import EXPERIMENTS
from tests.results import tiny_inputs

REGISTRY = load_registry(EXPERIMENTS)
TOLERANCE = Tolerance(share=0.5, points=0.02)


def cell(value: float | None, better: str = "higher", noise: float = 0.0, paper: float | None = None) -> Cell:
    """A cell of one seed; its resamples are those of all cells, so noise only shows between cells of other noise."""
    if value is None:
        return Cell((), 1, 2, better, missing={0: "no result"}, paper=paper)
    draws = value + noise * np.random.default_rng(0).normal(size=(1, 300))
    return Cell((value,), 1, 2, better, seeds=(0,), resample=lambda: draws, paper=paper)


def grid(rows: dict[str, Cell], metric: str = "f1") -> Grid:
    lines = tuple(GridRow(key.upper(), key, (one,)) for key, one in rows.items())
    return Grid("main", "1", "", None, (0,), (GridColumn("TNEWS", (metric.upper(),), (metric,)),), (lines,))


def claim(holds: str, against: Sequence[str] = ("b",), by: float | None = None, metric: str = "f1") -> Claim:
    comparison = Comparison(row="a", against=tuple(against), column="TNEWS", metric=metric)
    return Claim(says="A claim.", place="Table 1", table="main", holds=holds, comparisons=(comparison,), by=by)


@pytest.mark.parametrize("name", REGISTRY.claims)
def test_each_claim_holds_in_the_papers_own_numbers(name: str) -> None:
    """The words and sizes were taken over rightly: the paper's tables, taken as results, reproduce them."""
    wanted = REGISTRY.claims[name]
    table = REGISTRY.tables[wanted.table]
    builder = GridBuilder(REGISTRY, "paper", KnownResults.of([]), tiny_inputs(), (0,))
    empty = builder.build(wanted.table, table)
    filled = Grid(
        **{field: getattr(empty, field) for field in ("name", "number", "caption", "note", "seeds", "columns")},
        groups=tuple(
            tuple(
                GridRow(
                    row.label,
                    row.key,
                    tuple(cell(one.paper, one.better, paper=one.paper) for one in row.cells),
                )
                for row in group
            )
            for group in empty.groups
        ),
    )
    exact = Tolerance(share=0.0, points=0.0051)  # sums of numbers with two decimals
    found = judge(name, wanted, filled, exact)
    assert found.verdict == "reproduced", found.why
    assert found.ours == pytest.approx(found.paper)


@pytest.mark.parametrize(
    ("holds", "a", "b", "verdict"),
    [
        ("best", 80.0, 79.0, "reproduced"),
        ("best", 79.0, 80.0, "not reproduced"),
        ("worst", 79.0, 80.0, "reproduced"),
        ("worst", 80.0, 79.0, "not reproduced"),
        ("not_best", 79.0, 80.0, "reproduced"),
        ("not_best", 80.0, 79.0, "not reproduced"),
        ("best", 80.0, 80.0, "cannot be told"),
        ("best", None, 80.0, "cannot be told"),
        ("best", 80.0, None, "cannot be told"),
    ],
)
def test_the_direction_decides(holds: str, a: float | None, b: float | None, verdict: str) -> None:
    assert judge("x", claim(holds), grid({"a": cell(a), "b": cell(b)}), TOLERANCE).verdict == verdict


def test_a_lower_ece_is_better() -> None:
    rows = {"a": cell(10.0, "lower"), "b": cell(12.0, "lower")}
    assert judge("x", claim("best", metric="ece"), grid(rows, "ece"), TOLERANCE).verdict == "reproduced"


@pytest.mark.parametrize(
    ("by", "ours", "verdict"),
    [
        (4.0, 6.0, "reproduced"),  # off by half of the paper's
        (4.0, 6.1, "direction only"),
        (4.0, 1.9, "direction only"),
        (1.0, 0.2, "direction only"),  # off by less than a point, which is most of it
        (0.02, 0.04, "reproduced"),  # off by no more than rounding makes of a difference
        (4.0, -4.0, "not reproduced"),
    ],
)
def test_the_size_decides_between_reproduced_and_direction_only(by: float, ours: float, verdict: str) -> None:
    found = judge("x", claim("best", by=by), grid({"a": cell(50 + ours), "b": cell(50.0)}), TOLERANCE)
    assert found.verdict == verdict
    assert found.ours == pytest.approx(ours)


def test_a_size_inside_a_wide_interval_is_reproduced() -> None:
    rows = {"a": cell(60.0, noise=3.0), "b": cell(50.0)}
    assert judge("x", claim("best", by=5.0), grid(rows), TOLERANCE).verdict == "reproduced"


def test_a_difference_within_noise_cannot_be_told() -> None:
    found = judge("x", claim("best"), grid({"a": cell(50.5, noise=1.0), "b": cell(50.0)}), TOLERANCE)
    assert found.verdict == "cannot be told"
    assert "within noise" in found.why
    low, high = found.interval
    assert low < 0 < high


def test_the_nearest_of_the_others_is_shown() -> None:
    rows = {"a": cell(50.0, paper=9.0), "b": cell(40.0, paper=5.0), "c": cell(48.0, paper=8.0)}
    found = judge("x", claim("best", ["b", "c"]), grid(rows), TOLERANCE)
    assert (found.ours, found.paper) == (2.0, 1.0)
    assert found.why == "TNEWS F1: A against C"


def test_a_further_row_that_cannot_be_told_decides_over_a_nearer_one_that_can() -> None:
    found = judge(
        "x", claim("best", ["b", "c"]), grid({"a": cell(90), "b": cell(89.5), "c": cell(85, noise=9)}), TOLERANCE
    )
    assert found.verdict == "cannot be told"
    assert "A against C is within noise" in found.why
    assert found.ours == pytest.approx(5)
    assert found.interval[0] < 0 < found.interval[1]


def test_one_row_ahead_beyond_noise_is_enough_for_not_best() -> None:
    rows = {"a": cell(90), "b": cell(90.5), "c": cell(90.7, noise=5)}
    found = judge("x", claim("not_best", ["b", "c"]), grid(rows), TOLERANCE)
    assert (found.verdict, found.ours) == ("reproduced", pytest.approx(-0.5))


@pytest.mark.parametrize(
    ("holds", "b", "verdict", "why"),
    [
        ("best", cell(91.0), "not reproduced", "TNEWS F1: A against B comes out the other way"),
        ("best", cell(89.0), "cannot be told", "missing: TNEWS F1: A against C (no result)"),
        ("not_best", cell(91.0), "reproduced", "TNEWS F1: A against B"),
        ("not_best", cell(89.0), "cannot be told", "missing: TNEWS F1: A against C (no result)"),
        ("not_best", cell(90.1, noise=5), "cannot be told", "missing: TNEWS F1: A against C (no result)"),
    ],
)
def test_a_row_that_is_missing_decides_only_what_the_others_leave_open(
    holds: str, b: Cell, verdict: Verdict, why: str
) -> None:
    found = judge("x", claim(holds, ["b", "c"]), grid({"a": cell(90.0), "b": b, "c": cell(None)}), TOLERANCE)
    assert (found.verdict, found.why) == (verdict, why)
    assert found.tested == (not why.startswith("missing"))


def test_a_row_whose_temperature_was_not_found_decides_nothing() -> None:
    unfound = replace(cell(20.0, better="lower"), without_optimum=True)
    rows = {"a": cell(30.0, better="lower"), "b": unfound, "c": cell(37.0, better="lower")}
    found = judge("x", claim("best", ["b", "c"], metric="ece"), grid(rows, "ece"), TOLERANCE)
    assert (found.verdict, found.tested) == ("cannot be told", False)
    assert found.why == "missing: TNEWS ECE: A against B (no temperature was found)"
    rows = {"a": unfound, "b": cell(30.0, better="lower")}
    found = judge("x", claim("best", ["b"], metric="ece"), grid(rows, "ece"), TOLERANCE)
    assert found.why == "missing: TNEWS ECE: A (no temperature was found)"


def test_the_papers_difference_is_that_to_the_same_row() -> None:
    rows = {"a": cell(50.0, paper=9.0), "b": cell(49.0, paper=5.0), "c": cell(40.0, paper=8.0)}
    found = judge("x", claim("best", ["b", "c"]), grid(rows), TOLERANCE)
    assert (found.ours, found.paper) == (1.0, 4.0)  # to b, though c is the paper's runner-up
    missing = judge("x", claim("best", ["b", "c"]), grid(rows | {"a": cell(None, paper=9.0)}), TOLERANCE)
    assert (missing.ours, missing.paper) == (None, 1.0)
    comparisons = [Comparison(row="a", against=(other,), column="TNEWS", metric="f1") for other in "bc"]
    apart = claim("best").model_copy(update={"comparisons": tuple(comparisons)})
    missing = judge("x", apart, grid(rows | {"a": cell(None, paper=9.0)}), TOLERANCE)
    assert (missing.ours, missing.paper) == (None, 1.0)  # the nearest of all comparisons, not the first


def test_one_seed_behind_any_comparison_is_known() -> None:
    """The one that decides has two seeds, another has one."""
    draws = np.zeros((2, 300))
    two = Cell((50.0, 50.0), 2, 2, "higher", seeds=(0, 1), resample=lambda: draws + 50)
    near = Cell((49.0, 49.0), 2, 2, "higher", seeds=(0, 1), resample=lambda: draws + 49)
    comparisons = [Comparison(row="a", against=(other,), column="TNEWS", metric="f1") for other in "bc"]
    apart = claim("best").model_copy(update={"comparisons": tuple(comparisons)})
    found = judge("x", apart, grid({"a": two, "b": near, "c": cell(30.0)}), TOLERANCE)
    assert (found.why, found.seeds, found.fewest_seeds) == ("TNEWS F1: A against B", (0, 1), 1)


def test_a_row_that_says_only_what_is_added_is_named_after_the_one_above() -> None:
    rows = (GridRow("ALBERT", "b", (cell(49.0),)), GridRow("+ HS-RAU", "a", (cell(50.0),)))
    made = Grid("main", "1", "", None, (0,), (GridColumn("TNEWS", ("F1",), ("f1",)),), (rows,))
    assert judge("x", claim("best"), made, TOLERANCE).why == "TNEWS F1: ALBERT + HS-RAU against ALBERT"


def test_verdicts_say_of_how_many_seeds_they_are() -> None:
    judgements = [
        Judgement("x", "A.", "", "reproduced", "", 1.0, (0.5, 1.5), seeds=(0, 1)),
        Judgement("y", "B.", "", "reproduced", "", 1.0, (0.5, 1.5), seeds=(0,)),
    ]
    rows = [line for line in claims_to_markdown(judgements, "").splitlines() if line.startswith("| ")]
    assert ["(n=1)" in row for row in rows[1:]] == [False, True]
    found = judge("x", claim("best"), grid({"a": cell(50.0), "b": cell(49.0)}), TOLERANCE)
    assert found.seeds == (0,)


def test_one_wrong_comparison_outweighs_a_missing_one() -> None:
    both = claim("best").model_copy(
        update={
            "comparisons": (
                Comparison(row="a", against=("c",), column="TNEWS", metric="f1"),
                Comparison(row="a", against=("b",), column="TNEWS", metric="f1"),
            )
        }
    )
    rows = {"a": cell(50.0), "b": cell(51.0), "c": cell(None)}
    found = judge("x", both, grid(rows), TOLERANCE)
    assert found.verdict == "not reproduced"
    assert found.why == "TNEWS F1: A against B comes out the other way (1 of 2 comparisons)"
    without_b = judge("x", both, grid(rows | {"b": cell(49.0)}), TOLERANCE)
    assert without_b.verdict == "cannot be told"
    assert "no result" in without_b.why


def test_claims_whose_runs_are_missing_are_counted_apart_and_come_last() -> None:
    verdicts: list[tuple[Verdict, bool]] = [("cannot be told", False), ("cannot be told", True), ("reproduced", True)]
    judgements = [
        Judgement(str(number), f"Claim {number}.", "", verdict, "", tested=tested)
        for number, (verdict, tested) in enumerate(verdicts)
    ]
    markdown = claims_to_markdown(judgements, "")
    assert (
        "2 of 3 claims can be tested with the runs at hand: 1 reproduced, 1 cannot be told (within noise)." in markdown
    )
    assert "The other 1 need runs that are not at hand." in markdown
    assert re.findall(r"Claim (\d)", markdown) == ["1", "2", "0"]
    assert claims_summary(judgements[1:]) == (
        "2 of 2 claims can be tested with the runs at hand: 1 reproduced, 1 cannot be told (within noise)."
    )


def test_what_is_missing_of_several_comparisons_is_said() -> None:
    comparisons = tuple(Comparison(row="a", against=(other,), column="TNEWS", metric="f1") for other in "bc")
    found = judge(
        "x",
        claim("best").model_copy(update={"comparisons": comparisons}),
        grid({"a": cell(50.0), "b": cell(49.0), "c": cell(None)}),
        TOLERANCE,
    )
    assert not found.tested
    assert found.why == "missing: 1 of 2 comparisons, among them TNEWS F1: A against C (no result)"


def test_verdicts_are_rendered_with_names_as_themselves() -> None:
    builder = GridBuilder(REGISTRY, "paper", KnownResults.of([]), tiny_inputs(), ())
    judgements = judge_all(builder)
    assert {item.verdict for item in judgements} == {"cannot be told"}
    markdown = claims_to_markdown(judgements, "A note.")
    assert f"None of the {len(judgements)} claims can be tested: runs are missing." in markdown
    assert "| On TNEWS every removed or replaced component costs F1." in markdown
    assert r"5 \% noisy labels F1" in claims_to_latex(judgements, "A note.")


def test_rows_whose_rau_did_nothing_are_named_with_their_column() -> None:
    """Also where another row decides."""
    rows = {"a": cell(80.0), "b": cell(79.0), "c": replace(cell(70.0), rau_was_idle=True)}
    assert judge("x", claim("best", against=("b", "c")), grid(rows), TOLERANCE).idle == (("C", "TNEWS"),)
    assert judge("x", claim("best", against=("b",)), grid(rows), TOLERANCE).idle == ()
    own = {"a": replace(cell(80.0), rau_was_idle=True), "b": cell(79.0)}
    assert judge("x", claim("best"), grid(own), TOLERANCE).idle == (("A", "TNEWS"),)
    several = claim("best", against=("b",))
    both = several.model_copy(
        update={"comparisons": (*claim("best", against=("c",)).comparisons, *several.comparisons)}
    )
    assert judge("x", both, grid(rows), TOLERANCE).idle == (("C", "TNEWS"),)

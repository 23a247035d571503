"""How far the rows of a table are from one of them: over which seeds, how surely, for better or worse, in words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from benchmark.page.details import detail
from benchmark.registry import Registry, Subject
from benchmark.render import differences_to_latex, differences_to_markdown
from benchmark.render.text import TextCell, gap_text
from benchmark.reporting import advice_in, differences_in, ranking_in, write_all
from benchmark.significance import paired_difference
from benchmark.store import KnownResults
from benchmark.tables import Cell, Grid, GridBuilder, GridColumn, GridRow, differences
from tests.conftest import run_module
from tests.results import made_result, tiny_inputs, with_scores

SEEDS = (0, 1, 2)


def cell(values: tuple[float, ...], draws: np.ndarray | None, better: str = "higher", **others: object) -> Cell:
    """One with three seeds expected; ``draws`` are added to its values, a row a seed."""
    seeds = others.pop("seeds", SEEDS[: len(values)])
    resample = None if draws is None else lambda: np.array(values)[:, None] + draws[: len(values)]
    return Cell(values, 3, 2, better, seeds=seeds, resample=resample, **others)


def table(*groups: list[tuple[str, list[Cell]]], measures: int = 1) -> Grid:
    rows = tuple(tuple(GridRow(key.upper(), key, tuple(cells)) for key, cells in group) for group in groups)
    columns = tuple(GridColumn(f"D{place}", ("F1",), ("f1",)) for place in range(measures))
    return Grid("t", "1", "Caption.", None, SEEDS, columns, rows)


def noise(seed: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=scale, size=(3, 300))


def printed(markdown: str) -> dict[str, list[str]]:
    """The cells of each line by its label."""
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in markdown.splitlines() if line.startswith("|")]
    return {label: cells for label, *cells in lines[2:]}


def test_better_and_worse_follow_the_measures_direction() -> None:
    """The same gap of +10 with next to no noise is a gain in F1 and a loss in ECE."""
    f1, ece = (
        [cell((70, 72, 74), noise(0, 0.01), way), cell((80, 82, 84), noise(1, 0.01), way)]
        for way in ("higher", "lower")
    )
    made = differences(table([("a", [f1[0], ece[0]]), ("b", [f1[1], ece[1]])], measures=2), {"a"}, per_group=False)
    (reference, other) = made.every_row
    assert (made.reference_labels, reference.gaps, reference.gap(0)) == (("A",), (), None)
    assert [gap.verdict for gap in other.gaps] == ["better", "worse"]
    assert [gap.estimate for gap in other.gaps] == pytest.approx([10, 10])
    marked = differences_to_markdown(made)
    found = paired_difference((80, 82, 84), (70, 72, 74), f1[1].resampled, f1[0].resampled)
    text = f"+10.00 (+{found.low:.2f} to +{found.high:.2f})"
    assert printed(marked) == {"A": ["72.00 ± 2.00"] * 2, "B": [f"**{text}**", f"{text}†"]}
    assert marked.startswith("### Table 1 (t), differences from A\n")
    assert "Differences from A, whose own values (± sample standard deviation) are shown." in marked
    assert "5 % false discoveries over the 2 differences tested here (F1, ties left out)" in marked
    latex = differences_to_latex(made)
    assert rf"\textbf{{{text}}} & {text}$^{{\dagger}}$ \\" in latex
    assert r"\label{tab:t-less-a}" in latex


def test_p_values_are_adjusted_for_all_differences_of_the_table() -> None:
    """Beside scipy's correction, with gaps of which some are beyond noise only by themselves."""
    base = cell((70, 70.1, 69.9), noise(0))
    others = [
        cell((70 + gap, 70.2 + gap, 69.8 + gap), noise(10 + place)) for place, gap in enumerate((3, 1.9, 0.5, 0.2))
    ]
    rows = [("a", [base]), *((f"b{place}", [other]) for place, other in enumerate(others))]
    made = differences(table(rows), {"a"}, per_group=False)
    alone = [paired_difference(o.values, base.values, o.resampled, base.resampled) for o in others]
    adjusted = false_discovery_control([found.p_value for found in alone])
    assert [gap.p_value for gap in made.gaps] == pytest.approx(adjusted)
    assert [gap.tested for gap in made.gaps] == alone  # the intervals are not adjusted
    assert [gap.verdict == "within noise" for gap in made.gaps] == [p >= 0.05 for p in adjusted]
    only_alone = [not found.within_noise and p >= 0.05 for found, p in zip(alone, adjusted, strict=True)]
    assert any(only_alone)
    words = dict(detail(others[1], "", SEEDS, "", {}, made.gaps[1], "A").lines)
    assert words["From the first row"].startswith("A: +")
    assert words["From the first row"].endswith("within noise once corrected for all differences of the table")


def test_what_is_not_tested_has_no_interval_and_says_why() -> None:
    draws = noise(0)
    base = cell((70, 72, 74), draws)
    rows = {
        "ensemble": cell((75,), draws, trainings=3),
        "accuracy": cell((71, 73, 75), None),
        "old": replace(base, values=(71, 73, 75), resample=lambda: None),
        "two": cell((80, 82), draws, seeds=(1, 2)),
        "elsewhere": cell((80,), draws, seeds=(7,), missing={0: "it failed"}),
        "none": replace(base, values=(), seeds=(), missing={0: "no result"}),
        "same": base,
        "bound": replace(base, values=(60, 61, 62), without_optimum=True),
    }
    grid = table([("a", [base]), *((key, [one]) for key, one in rows.items())])
    made = differences(grid, {"a"}, per_group=False)
    gaps = dict(zip(rows, made.gaps, strict=True))
    expected = {
        "ensemble": 3,
        "accuracy": 1,
        "old": 1,
        "two": 8,
        "elsewhere": None,
        "none": None,
        "same": 0,
        "bound": -11,
    }
    assert {key: gap.estimate for key, gap in gaps.items()} == expected
    assert [key for key, gap in gaps.items() if gap.tested] == ["two"]
    text = differences_to_markdown(made)
    lines = {label: one for label, (one,) in printed(text).items()}
    assert lines["ENSEMBLE"] == "+3.00"
    assert (lines["ACCURACY"], lines["SAME"], lines["BOUND"]) == ("+1.00", "+0.00", "−11.00§")
    assert (lines["ELSEWHERE"], lines["NONE"]) == ("–", "–")
    assert lines["TWO"].endswith(" (n=2)**")
    assert "over the 1 difference tested here (F1, ties left out)" in text
    reasons = (
        "Not tested, so without an interval: one of the two is an ensemble, a single value over several seeds, or this "
        "measure is not resampled, or one of the two was scored before this measure was resampled."
    )
    assert reasons in text
    assert "– missing: 2 of 8 differences (they share no seed, no result)." in text
    assert "§ Not tested: no temperature was found for this row or the one that it is compared with" in text
    assert "(n=...) fewer values than seeds; differences are over the seeds that both have." in text

    def said(key: str) -> str:
        return dict(detail(rows[key], "", SEEDS, "", {}, gaps[key], "A").lines).get("From the first row", "")

    assert said("accuracy") == "A: +1.00, not tested: this measure is not resampled"
    assert said("bound") == "A: −11.00, not tested: no temperature was found for one of the two"
    assert said("same") == "A: +0.00, the same"
    assert said("none") == ""


def test_the_reference_may_be_what_a_difference_lacks() -> None:
    """It has no value, no temperature, or fewer seeds than its rows; and its mark of the best is not shown."""
    whole, draws = cell((70, 72, 74), noise(0)), noise(1)
    empty = replace(whole, values=(), seeds=(), missing=dict.fromkeys(SEEDS, "the run failed"))
    ensemble = cell((75,), draws, trainings=3, missing={1: "an ensemble takes several seeds"})
    text = differences_to_markdown(differences(table([("a", [empty]), ("b", [ensemble])]), {"a"}, per_group=False))
    assert "– missing: 1 of 1 differences (the run failed)." in text
    bound = replace(whole, without_optimum=True)
    made = differences(table([("a", [bound]), ("b", [cell((71, 73, 75), draws)])]), {"a"}, per_group=False)
    assert printed(differences_to_markdown(made)) == {"A": ["72.00 ± 2.00§"], "B": ["+1.00§"]}
    fewer = replace(whole, values=(70,), seeds=(0,), best=True, lead_untested="untested")
    text = differences_to_markdown(differences(table([("a", [fewer]), ("b", [ensemble])]), {"a"}, per_group=False))
    assert printed(text) == {"A": ["70.00 (n=1)"], "B": ["+5.00 (n=1)"]}
    assert "(n=...) fewer values than seeds" in text
    assert "Differences from A, whose own values are shown." in text


def test_only_measures_that_are_tested_are_named_and_seeds_where_any_has_several() -> None:
    draws = noise(0)
    untested = replace(cell((70,), None))
    one, several = cell((80,), draws), cell((80, 82, 84), draws)
    base = cell((70, 72, 74), noise(1))
    rows = [("a", [base, untested]), ("b", [one, untested]), ("c", [several, untested])]
    grid = table(rows, measures=2)
    grid = replace(grid, columns=(grid.columns[0], GridColumn("D1", ("ACC",), ("accuracy",))))
    text = differences_to_markdown(differences(grid, {"a"}, per_group=False))
    assert "(paired bootstrap over test rows and the spread over seeds)" in text
    assert "tested here (F1, ties left out)" in text


def test_one_seed_says_what_noise_is_then() -> None:
    made = differences(table([("a", [cell((70,), noise(0))]), ("b", [cell((90,), noise(1))])]), {"a"}, per_group=False)
    text = differences_to_markdown(made)
    assert "(paired bootstrap over test rows)" in text
    assert "Where there is one seed, noise is that of the test rows only" in text
    said = dict(detail(made.gaps[0].cell, "", SEEDS, "", {}, made.gaps[0], "A").lines)["From the first row"]
    assert said.endswith("better, beyond the test rows’ noise")


def test_references_are_the_first_of_their_names_in_the_table_or_in_each_group() -> None:
    one, two = cell((70,), noise(0)), cell((71,), noise(1))
    grid = table([("a", [one]), ("b", [two])], [("c", [one]), ("b", [two])], [("d", [one])])
    whole = differences(grid, {"b", "c"}, per_group=False)
    assert whole.reference_labels == ("B",)
    assert [[row.row.key for row in group if row.gaps] for group in whole.groups] == [["a"], ["c"], ["d"]]
    grouped = differences(grid, {"b", "c"}, per_group=True)
    assert (grouped.reference_labels, grouped.left_out) == (("B", "C"), ("D",))
    text = differences_to_markdown(grouped)
    assert "Differences from B and C, each in its own group, whose own values are shown." in text
    assert "Left out, for want of such a row in their group: D." in text
    assert [[row.row.key for row in group if row.gaps] for group in grouped.groups] == [["a"], ["b"]]
    assert differences(grid, {"x"}, per_group=True).gaps == ()
    twice = differences(table([("a", [one]), ("b", [two])], [("a", [two]), ("c", [one])]), {"a"}, per_group=True)
    assert twice.reference_labels == ("A",)
    added = replace(grid, groups=((grid.groups[0][0], replace(grid.groups[0][1], label="+ TS")),))
    assert differences(added, {"b"}, per_group=True).reference_labels == ("A + TS",)
    below = replace(
        grid, groups=(grid.groups[0], (grid.groups[1][0], replace(grid.groups[1][1], key="x", label="+ X")))
    )
    assert differences(below, {"x"}, per_group=False).reference_labels == ("C + X",)  # of its group, not the table's
    every = differences(grid, {row.key for row in grid.every_row}, per_group=True)
    assert len(every.groups) == len(grid.groups)  # the page has them all


def results_of_main(registry: Registry) -> list:
    """BERT and LS on TNEWS, two seeds each, LS two points higher in both measures."""
    made = []
    for method, lead in (("bert", 0.0), ("ls", 0.02)):
        for seed in (0, 1):
            result = made_result(registry, Subject("tnews", "base", method), seed)
            made.append(with_scores(result, f1=0.5 + seed / 100 + lead, ece=0.4 + lead))
    return made


def test_what_is_printed_as_0_is_neither_better_nor_worse() -> None:
    """Beyond noise it may be, by less than the digits show: +0.00 in bold would say what no reader can see."""
    one, two = cell((70.0, 70.0), noise(0, 1e-6)), cell((70.001, 70.001), noise(1, 1e-6))
    (gap,) = differences(table([("a", [one]), ("b", [two])]), {"a"}, per_group=False).gaps
    assert gap.verdict == "better"
    assert gap_text(gap) == TextCell("+0.00")


def test_the_papers_differences_stand_below_ours(registry: Registry) -> None:
    builder = GridBuilder(registry, "tiny", KnownResults.of(results_of_main(registry)), tiny_inputs(), (0, 1))
    tables = {name: registry.tables[name] for name in ("main", "encoders")}
    grids = [builder.build(name, declared) for name, declared in tables.items()]
    texts, without = differences_in(tables, grids, "markdown", compare=True, method=None)
    assert list(texts) == ["main.differences.compare.md"]
    assert without == {
        "encoders": "no results of tiny albert, tiny xlnet and tiny large and another row with the same seeds "
        "(missing: no result)"
    }
    main = texts["main.differences.compare.md"].splitlines()
    papers = {key: cells["TNEWS"] for key, cells in registry.paper["main"].items()}
    ls = next(number for number, line in enumerate(main) if line.startswith("| LS "))
    assert main[ls].split("|")[3].strip() == "**+2.00 (+2.00 to +2.00)**"
    wanted = papers["ls"]["f1"] - papers["bert"]["f1"]
    assert main[ls + 1].split("|")[3].strip() == f"{wanted:+.2f}".replace("-", "−")
    bert = next(line for line in main if line.startswith("| BERT "))
    assert bert.split("|")[2].strip() == "ours"
    assert f"{papers['bert']['f1']:.2f}" in main[main.index(bert) + 1]
    assert main[main.index(bert) + 2].startswith("| TS ")  # after two lines, its own and the paper's
    assert "Below ours the paper's values and differences." in texts["main.differences.compare.md"]


def test_those_from_a_method_leave_out_tables_without_it(registry: Registry) -> None:
    builder = GridBuilder(registry, "tiny", KnownResults.of(results_of_main(registry)), tiny_inputs(), (0, 1))
    tables = {name: registry.tables[name] for name in ("main", "noise", "ablation")}
    grids = [builder.build(name, declared) for name, declared in tables.items()]
    texts, without = differences_in(tables, grids, "latex", compare=False, method="ls")
    assert list(texts) == ["main.differences_from_ls.tex", "tables.differences_from_ls.tex"]
    assert texts["tables.differences_from_ls.tex"].count(r"\begin{table*}") == 1
    assert without == {
        "noise": "no results of LS and another row with the same seeds (missing: no result)",
        "ablation": "no row of ls and another one",
    }
    assert differences_in(tables, grids, "latex", compare=False, method="mixup")[0] == {}


def test_where_there_is_none_for_want_of_scores_that_is_said(registry: Registry) -> None:
    """After a change of the bins, say: there are results of the same seeds, and it would be false to say there are not
    and no more.
    """
    twenty = replace(registry, scoring=registry.scoring.model_copy(update={"ece_bins": 20}))
    builder = GridBuilder(twenty, "tiny", KnownResults.of(results_of_main(registry)), tiny_inputs(), (0, 1))
    tables = {"main": registry.tables["main"]}
    grids = [builder.build(name, declared) for name, declared in tables.items()]
    _, without = differences_in(tables, grids, "markdown", compare=False, method=None)
    texts = [*without.values(), *advice_in(builder, tables).values(), *ranking_in(builder, tables).values()]
    assert len(texts) == 3
    for text in texts:
        assert "with the same seeds (missing: " in text
        assert "not scored yet; benchmark.run does it, or says why it cannot" in text


def test_a_comparison_of_ones_own_ends_with_them(registry: Registry, tmp_path: Path) -> None:
    builder = GridBuilder(registry, "tiny", KnownResults.of(results_of_main(registry)), tiny_inputs(), (0, 1))
    texts, _ = write_all(builder, {"main": registry.tables["main"]}, tmp_path)
    assert "main.differences.md" in texts
    assert (tmp_path / "main.differences.md").read_text(encoding="utf-8") == texts["main.differences.md"]


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["main", "--differences", "tss"], 2, 'there is no method "tss"; did you mean "ts"?'),
        (
            ["ablation_full", "--differences", "ts"],
            2,
            "--differences ts: there are none in ablation_full; name other tables by --table.",
        ),
        (["main", "--differences", "--claims"], 2, "--claims and --differences each stand in place of the tables"),
        (["main", "--differences", "--format", "csv"], 2, "--differences does not go with csv"),
        (["main", "--differences", "--format", "html"], 2, "--differences does not go with html: it is on the page"),
        (
            ["main", "ablation_full", "--differences", "ts"],
            0,
            "no differences in ablation_full: no row of ts and another one",
        ),
    ],
)
def test_the_command_says_what_cannot_be(options: list[str], code: int, sentence: str, tmp_path: Path) -> None:
    call = run_module("report", "--profile", "small", "--tables-dir", tmp_path, "--table", *options)
    assert (call.returncode, "Traceback" in call.stderr) == (code, False)
    assert sentence in call.stderr


def test_the_command_writes_what_the_published_table_says(tmp_path: Path) -> None:
    """Differences of printed means are those of the unrounded ones, to the last digit or so."""
    for options in ([], ["--differences"]):
        call = run_module("report", "--profile", "small", "--tables-dir", tmp_path, "--table", "main", *options)
        assert call.returncode == 0, call.stderr
    values, less = (printed((tmp_path / "small" / name).read_text()) for name in ("main.md", "main.differences.md"))
    for method in values.keys() - {"BERT"}:
        for ours, base, gap in zip(values[method], values["BERT"], less[method], strict=True):
            means = [float(text.strip("*").split()[0]) for text in (ours, base)]
            found = float(gap.strip("*").split()[0].replace("−", "-"))
            assert found == pytest.approx(means[0] - means[1], abs=0.0101)
    assert less["BERT"] == values["BERT"]


def test_a_table_is_printed_whatever_it_is_called(experiments: Path, tmp_path: Path) -> None:
    (experiments / "own").mkdir()
    (experiments / "own" / "mine.yaml").write_text(
        "tables:\n  by_label: {number: X, caption: Mine., rows: [[{method: bert}, {method: ls}]], "
        "columns: [{label: HWU64, dataset: hwu64, metrics: [f1]}]}\n",
        encoding="utf-8",
    )
    options = ["--profile", "small", "--experiments", experiments, "--tables-dir", tmp_path, "--table", "by_label"]
    for more in ([], ["--differences"]):
        call = run_module("report", *options, *more)
        assert (call.returncode, "| LS " in call.stdout) == (0, True), call.stderr

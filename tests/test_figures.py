"""Figures: the numbers behind them against values worked by hand, the files, what is left out, names in any script."""

import dataclasses
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D

from benchmark.errors import UserError
from benchmark.figures import draw_figures
from benchmark.figures.composing import Composer
from benchmark.figures.drawing import Lettering, Styles, fonts, house_style
from benchmark.figures.drawing.sheet import Sheet
from benchmark.figures.series import (
    Source,
    drawable_bins,
    fewer_seeds,
    label_series,
    noise_series,
    pooled_bins,
    reliability_series,
    scatter_panels,
    training_courses,
)
from benchmark.figures.words import Words, missing_sentence
from benchmark.registry import Registry, Subject, load_registry
from benchmark.store import EpochRecord, KnownResults, Reliability, Result, ResultFolder
from benchmark.tables import GridBuilder, ResultFinder, seeds_in_words
from tests.conftest import EXPERIMENTS, run_module
from tests.results import failed_result, made_logits, made_result, tiny_inputs, with_scores

METHODS = ("bert", "ls", "poscal", "avuc", "hs_rau")


@pytest.fixture(scope="module")
def results(registry: Registry) -> list[Result]:
    """All that the shipped figures need of TNEWS: clean runs of every method and their noisy ones, one seed."""
    levels = (0.0, 0.05, 0.1, 0.3, 0.5)
    return [made_result(registry, Subject("tnews", "base", method, level)) for method in METHODS for level in levels]


def only(registry: Registry, *names: str, **changes: object) -> Registry:
    """The registry with only these figures, changed."""
    figures = {name: registry.figures[name].model_copy(update=changes) for name in names}
    return dataclasses.replace(registry, figures=figures)


def source(registry: Registry, results: list[Result], seeds: tuple[int, ...] = (0,)) -> Source:
    labels = {name: method.label for name, method in registry.methods.methods.items()}
    return Source(ResultFinder(registry, "tiny", KnownResults.of(results), tiny_inputs()), seeds, labels)


def drawn(
    registry: Registry, results: list[Result], folder: Path, seeds: tuple[int, ...] = (0,)
) -> tuple[list[str], list[str]]:
    paths, remarks = draw_figures(registry, "tiny", KnownResults.of(results), tiny_inputs(), seeds, folder)
    assert all(path.is_file() for path in paths)
    return [path.name for path in paths], remarks


# --- reliability -----------------------------------------------------------------------------------------------------


def reliability(rows: dict[int, tuple[int, float, float]]) -> Reliability:
    """Sixty bins, empty but for those given: count, mean confidence, accuracy."""
    count, confidence, accuracy = [0] * 60, [None] * 60, [None] * 60
    for index, values in rows.items():
        count[index], confidence[index], accuracy[index] = values
    return Reliability(count=count, confidence=confidence, accuracy=accuracy, wrong_above_90=None)


def test_sixty_bins_add_up_to_ten() -> None:
    record = reliability({12: (4, 0.21, 0.5), 17: (6, 0.29, 1.0), 59: (10, 0.99, 0.7)})
    bins = pooled_bins([record], 10)
    assert bins.count.tolist() == [0, 0, 10, 0, 0, 0, 0, 0, 0, 10]
    assert bins.right.tolist() == [0, 0, 8, 0, 0, 0, 0, 0, 0, 7]
    assert bins.confidence[2] == pytest.approx((4 * 0.21 + 6 * 0.29) / 10)
    assert bins.accuracy[2] == pytest.approx(0.8)
    assert np.isnan(bins.confidence[[0, 1, 3, 8]]).all()
    assert np.isnan(bins.accuracy[0])
    assert bins.edges.tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def test_the_bins_of_several_seeds_are_pooled() -> None:
    first, second = reliability({59: (10, 0.99, 0.7)}), reliability({59: (30, 0.95, 0.9), 0: (2, 0.01, 0.0)})
    bins = pooled_bins([first, second], 10)
    assert (bins.count[9], bins.right[9], bins.wrong[9]) == (40, 34, 6)
    assert bins.confidence[9] == pytest.approx((9.9 + 28.5) / 40)
    assert (bins.count[0], bins.right[0]) == (2, 0)


@pytest.mark.parametrize(("wanted", "drawable"), [(10, 10), (7, 6), (25, 20), (60, 60), (100, 60), (1, 1)])
def test_only_bins_that_the_stored_ones_add_up_to_are_drawn(wanted: int, drawable: int) -> None:
    assert drawable_bins(wanted, 60) == drawable


def test_other_bins_are_refused() -> None:
    with pytest.raises(ValueError, match="60 stored bins do not add up to 7"):
        pooled_bins([reliability({})], 7)


def test_a_series_says_how_much_is_wrong_above_90(registry: Registry) -> None:
    sure = reliability({53: (10, 0.89, 0.5), 54: (10, 0.91, 0.4), 59: (20, 0.99, 0.9)})
    made = made_result(registry, Subject("tnews", "base", "bert"))
    view = made.views[0].model_copy(update={"reliability": sure})
    made = made.model_copy(update={"views": [view, *made.views[1:]]})
    (found,) = source(registry, [made]).methods("tnews", "base", ["bert"])
    series = reliability_series(found, 10)
    assert series.above_90 == pytest.approx(75.0)
    assert series.wrong_above_90 == pytest.approx(100 * (6 + 2) / 30)
    assert series.accuracy == pytest.approx(100 * (5 + 4 + 18) / 40)
    assert series.confidence == pytest.approx(100 * (8.9 + 9.1 + 19.8) / 40)


def test_a_series_agrees_with_the_stored_scores(registry: Registry) -> None:
    results = [made_result(registry, Subject("tnews", "base", "bert"), seed=seed) for seed in (0, 1)]
    (found,) = source(registry, results, (0, 1)).methods("tnews", "base", ["bert"])
    views = [result.views[0] for result in results]
    one = reliability_series(dataclasses.replace(found, scored=found.scored[:1]), 10)
    assert one.wrong_above_90 == pytest.approx(100 * views[0].reliability.wrong_above_90)
    gaps = one.bins.count * np.abs(one.bins.accuracy - one.bins.confidence)
    assert 100 * np.nansum(gaps) / one.bins.count.sum() == pytest.approx(100 * views[0].scores["top_label_ece"])
    both = reliability_series(found, 10)
    assert both.seeds == (0, 1)
    assert both.ece == pytest.approx([100 * view.scores["ece"] for view in views])
    assert both.accuracy == pytest.approx(50 * sum(view.scores["accuracy"] for view in views))
    assert both.confidence == pytest.approx(50 * sum(view.scores["confidence"] for view in views))


def test_temperature_scaling_has_its_own_diagram(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    bert, ts = source(registry, [result]).methods("tnews", "base", ["bert", "ts"])
    assert reliability_series(bert, 10).accuracy == reliability_series(ts, 10).accuracy
    assert reliability_series(bert, 10).confidence != reliability_series(ts, 10).confidence


# --- the other series ------------------------------------------------------------------------------------------------


def noisy(registry: Registry, method: str, scores: dict[float, list[float]]) -> list[Result]:
    return [
        with_scores(made_result(registry, Subject("tnews", "base", method, level), seed=seed), f1=value, ece=1 - value)
        for level, values in scores.items()
        for seed, value in enumerate(values)
    ]


def test_noise_starts_with_the_clean_runs(registry: Registry) -> None:
    made = noisy(registry, "bert", {0.0: [0.8, 0.7], 0.3: [0.6, 0.5], 0.5: [0.4]})
    series = noise_series(source(registry, made, (0, 1)), "tnews", "base", ["bert", "ls"], [0.1, 0.3, 0.5])
    assert series.levels == pytest.approx((0, 10, 30, 50))
    (line,) = series.lines
    assert [list(values) for values in line.f1] == [pytest.approx(v) for v in ([80, 70], [], [60, 50], [40])]
    assert line.ece[2] == pytest.approx([40, 50])
    assert series.missing == ("BERT at 10 % (no result)", "LS (no result)")
    assert series.partial == ("BERT n = 1 at 50 %",)
    assert series.seeds == (0, 1)


def test_one_noise_level_is_no_line(registry: Registry) -> None:
    made = noisy(registry, "bert", {0.0: [0.8]})
    assert noise_series(source(registry, made), "tnews", "base", ["bert"], [0.3]) == "no result"


def test_points_stand_beside_the_papers(registry: Registry) -> None:
    made = [
        with_scores(made_result(registry, Subject("tnews", "base", method), seed=seed), f1=f1 + seed / 100, ece=0.3)
        for method, f1 in (("bert", 0.5), ("hs_rau", 0.6))
        for seed in (0, 1)
    ]
    table = registry.tables["main"]
    grid = GridBuilder(registry, "tiny", KnownResults.of(made), tiny_inputs(), (0, 1)).build("main", table)
    panels = scatter_panels(grid, table)
    assert [panel.dataset for panel in panels] == ["tnews", "hwu64", "banking77"]  # and no average
    bert, _, hs_rau = panels[0].points  # TS has a view of BERT's run
    assert bert.f1 == pytest.approx((50, 51))
    assert hs_rau.f1 == pytest.approx((60, 61))
    assert hs_rau.ece == pytest.approx((30, 30))
    assert hs_rau.seeds == (0, 1)
    assert hs_rau.paper == (56.02, 39.99)
    assert panels[0].missing == ("LS (no result)", "PosCal (no result)", "AVUC (no result)")
    assert panels[1].points == ()


def test_labels_stand_in_the_order_of_their_training_rows(registry: Registry) -> None:
    made = [made_result(registry, Subject("tnews", "base", "bert"), seed=seed) for seed in (0, 1)]
    found = source(registry, made, (0, 1)).methods("tnews", "base", ["bert", "ts"])
    series = label_series(found)
    assert series.names == tuple(f"intent_{index}" for index in (5, 4, 3, 2, 1, 0))
    assert series.numbers == (6, 5, 4, 3, 2, 1)
    assert series.train_counts == (25, 26, 27, 28, 29, 30)
    first, second = (result.views[0].per_label.ece for result in made)
    assert series.ece["bert"] == pytest.approx([50 * (first[label] + second[label]) for label in (5, 4, 3, 2, 1, 0)])
    rarest = label_series(found, most=2)
    assert (rarest.names, rarest.n_labels) == (("intent_5", "intent_4"), 6)


def trained(result: Result) -> Result:
    """The same result with three epochs, after the second of which the last two terms join."""
    epochs = [
        EpochRecord(loss=2.0, terms=[2.0, None, None], entropy=1.5, accuracy=0.2, joined={}),
        EpochRecord(
            loss=1.0,
            terms=[1.0, None, None],
            entropy=0.9,
            accuracy=0.5,
            joined={"rau": {"after_epochs": 2.0, "threshold": 0.9}, "poscal": {"after_epochs": 2.0}},
        ),
        EpochRecord(loss=1.9, terms=[0.5, 0.4, 0.2], entropy=0.6, accuracy=0.75, joined={}),
    ]
    return result.model_copy(update={"training": result.training.model_copy(update={"epochs": epochs})})


def test_terms_that_the_paper_does_not_have_are_drawn_under_their_own_names(registry: Registry, tmp_path: Path) -> None:
    results = [made_result(registry, Subject("tnews", "base", name)) for name in ("bert", "focal", "brier")]
    narrowed = only(registry, "training", dataset="tnews", methods=("bert", "focal", "brier"))
    names, _ = drawn(narrowed, results, tmp_path)
    assert any(name.startswith("training") for name in names)
    courses = [training_courses(found) for found in source(registry, results).methods("tnews", "base", ["focal"])]
    assert [course.weights for course in courses] == [(("focal", 1.0),)]


def test_the_course_of_training_has_a_mark_where_terms_joined(registry: Registry) -> None:
    made = trained(made_result(registry, Subject("tnews", "base", "hs_rau")))
    courses = training_courses(source(registry, [made]).methods("tnews", "base", ["hs_rau"])[0])
    assert courses.weights == (("cross_entropy", 1.0), ("rau", 3.0), ("poscal", 1.0))
    (course,) = courses.courses
    assert [name for name, _ in course.terms] == ["cross_entropy", "rau", "poscal"]
    assert course.terms[0][1].tolist() == [2.0, 1.0, 0.5]
    assert np.isnan(course.terms[1][1][:2]).all()
    assert course.terms[1][1][2] == 0.4
    assert course.accuracy.tolist() == [20.0, 50.0, 75.0]
    assert course.entropy.tolist() == [1.5, 0.9, 0.6]
    assert course.joined == ((2, ("rau", "poscal")),)
    assert course.thresholds == ((2, 0.9),)


def test_words_say_which_seeds_and_what_is_missing() -> None:
    assert seeds_in_words([3], "Mean over") == "One seed (3)."
    assert seeds_in_words([0, 2], "Mean over") == "Mean over n = 2 seeds (0, 2)."
    assert seeds_in_words([0, 1, 2, 3, 5], "Mean over") == "Mean over n = 5 seeds (0, 1, 2, 3, 5)."
    assert seeds_in_words([*range(20), 40], "Mean over") == "Mean over n = 21 seeds (0 to 19, 40)."
    assert fewer_seeds([("A", (0, 1)), ("B", (0,)), ("C", ())]) == ["B n = 1"]
    assert fewer_seeds([("A", (0, 1)), ("B", (2, 3))]) == ["A n = 2", "B n = 2"]  # of the four that are named
    assert missing_sentence(["LS (no result)"], ["B n = 1"]) == "Missing: LS (no result). Fewer seeds: B n = 1."
    assert missing_sentence([], []) == ""


def test_all_letters_stand_on_the_sheet() -> None:
    """Sixteen long names in a legend, a footer in capitals, one without blanks."""
    handles = [Line2D([], [], label=f"A method of some length, no. {number}") for number in range(16)]
    footer = ("WWWWW MMMMM " * 30, "9" * 400)
    with house_style(["DejaVu Sans"]):
        sheet = Sheet(Words("A title of many words " * 8, footer), body_height=1.0, legend=handles, columns=8)
        canvas = FigureCanvasAgg(sheet.figure)
        canvas.draw()
    renderer, page = canvas.get_renderer(), sheet.figure.bbox
    (legend,) = sheet.figure.legends
    for text in (*sheet.figure.texts, *legend.get_texts()):
        box = text.get_window_extent(renderer)
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, text.get_text()[:40]
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, text.get_text()[:40]
    names = [text.get_window_extent(renderer) for text in legend.get_texts()]
    assert len({round(box.x0) for box in names}) == 3  # the columns that fit
    assert not any(one.overlaps(other) for number, one in enumerate(names) for other in names[:number])


# --- files -----------------------------------------------------------------------------------------------------------


def test_every_kind_is_drawn_where_there_are_results(registry: Registry, results: list[Result], tmp_path: Path) -> None:
    made = [trained(result) if len(result.run.loss) == 3 else result for result in results]
    names, remarks = drawn(registry, made, tmp_path)
    drawn_names = ["confidence_tnews", "reliability_tnews", "noise", "f1_against_ece", "per_label_tnews"]
    assert names == [f"{name}.{ending}" for name in [*drawn_names, "training_tnews"] for ending in ("pdf", "png")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)  # and no half files
    left = [f"{kind}_{data}" for kind in ("confidence", "reliability", "per_label", "training")
            for data in ("hwu64", "banking77")]  # fmt: skip
    assert remarks == [f"Figures left out: {', '.join(left)} (no result)."]
    for name in names:
        content = (tmp_path / name).read_bytes()
        assert content.startswith(b"%PDF" if name.endswith("pdf") else b"\x89PNG")
        if name.endswith("png"):
            assert matplotlib.image.imread(tmp_path / name).shape[1] == 1080  # 7.2 inches


def test_several_seeds_are_drawn_with_their_spread(registry: Registry, tmp_path: Path) -> None:
    made = [
        made_result(registry, Subject("tnews", "base", method, level), seed=seed)
        for method, seeds in (("bert", (0, 1)), ("hs_rau", (0,)))
        for level in (0.0, 0.3)
        for seed in seeds
    ]
    some = only(registry, "noise", "f1_against_ece")
    assert drawn(some, made, tmp_path, (0, 1)) == (
        ["noise.pdf", "noise.png", "f1_against_ece.pdf", "f1_against_ece.png"],
        [],
    )


def test_the_users_own_style_changes_nothing(registry: Registry, results: list[Result], tmp_path: Path) -> None:
    some = only(registry, "noise")
    drawn(some, results, tmp_path / "first")
    with matplotlib.rc_context({"lines.linewidth": 9.0, "axes.facecolor": "red", "savefig.bbox": "tight"}):
        drawn(some, results, tmp_path / "second")
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
    assert (tmp_path / "first" / "noise.png").read_bytes() == (tmp_path / "second" / "noise.png").read_bytes()


def test_what_cannot_be_drawn_is_said_and_no_old_picture_stays(registry: Registry, tmp_path: Path) -> None:
    for ending in ("pdf", "png"):
        (tmp_path / f"noise.{ending}").write_text("other results")
    (tmp_path / "mine.png").write_text("somebody's own")
    failed = failed_result(made_result(registry, Subject("tnews", "base", "bert")).run)
    some = only(registry, "noise", "confidence", dataset="tnews")
    elsewhere = only(registry, "per_label", dataset="elsewhere")
    some = dataclasses.replace(some, figures=some.figures | elsewhere.figures)
    names, remarks = drawn(some, [failed], tmp_path)
    assert names == []
    assert remarks == [
        "Figures left out: noise (no result); confidence (the run failed (diverged)).",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.png"]


def footer(registry: Registry, results: list[Result], figure: str, seeds: tuple[int, ...] = (0,)) -> str:
    composer = Composer(registry, "tiny", KnownResults.of(results), tiny_inputs(), seeds)
    with composer.house_style():
        picture = composer.draw(registry.figures[figure], "tnews")
    assert not isinstance(picture, str), picture
    return " ".join(" ".join(text.get_text() for text in picture.texts).split())


def test_below_each_figure_stands_what_must_be_known(registry: Registry) -> None:
    made = [made_result(registry, Subject("tnews", "base", "bert"), seed=seed) for seed in (0, 1)]
    made.append(made_result(registry, Subject("tnews", "base", "ls")))
    text = footer(registry, made, "reliability", (0, 1))
    assert text.startswith("tiny tnews, tiny base")
    assert "in 10 bins" in text
    assert "n = 2 seeds (0, 1)" in text
    assert "Missing: PosCal (no result), AVUC (no result), HS-RAU (no result). Fewer seeds: LS n = 1." in text
    assert text.endswith("For tests only.")
    assert "One seed (0)." in footer(registry, made[:1], "confidence")


def test_many_labels_with_long_names_stay_on_the_sheet(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"), logits=made_logits(0, 170, 400))
    names = [f"a_label_whose_name_is_far_too_long_to_be_written_out_in_full_{index}" for index in range(170)]
    data = result.data.model_copy(update={"label_names": names, "train_label_counts": list(range(170))})
    made = [result.model_copy(update={"data": data})]
    composer = Composer(registry, "tiny", KnownResults.of(made), tiny_inputs(), (0,))
    with composer.house_style():
        picture = composer.draw(registry.figures["per_label"], "tnews")
        assert picture.get_figheight() < 9.9
        assert len(picture.axes) == 2
        for axes in picture.axes:
            boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
            assert min(box.x0 for box in boxes) >= 0
            assert "…" in axes.get_yticklabels()[0].get_text()
    assert "The 160 rarest of 170 labels." in " ".join(text.get_text().replace("\n", " ") for text in picture.texts)


def test_labels_are_drawn_by_the_names_that_are_declared_for_them(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    data = result.data.model_copy(update={"label_names": ["100", "101", "102", "103", "104", "other"]})
    declared = {str(number): f"news {number}" for number in range(100, 105)}
    dataset = registry.datasets["tiny_tnews"].model_copy(update={"labels": declared})
    named = dataclasses.replace(registry, datasets=registry.datasets | {"tiny_tnews": dataset})
    made = KnownResults.of([result.model_copy(update={"data": data})])
    composer = Composer(named, "tiny", made, tiny_inputs(), (0,))
    with composer.house_style():
        (axes,) = composer.draw(registry.figures["per_label"], "tnews").axes
        names = [label.get_text().split("  ")[0] for label in axes.get_yticklabels()]
    assert set(names) == {*declared.values(), "other"}


def test_labels_that_are_drawn_alike_bear_their_numbers(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    data = result.data.model_copy(update={"label_names": ["play", "play ", "stop", "go", "wait", "turn"]})
    made = [result.model_copy(update={"data": data})]
    composer = Composer(registry, "tiny", KnownResults.of(made), tiny_inputs(), (0,))
    with composer.house_style():
        (axes,) = composer.draw(registry.figures["per_label"], "tnews").axes
        names = [label.get_text().split("  ")[0] for label in axes.get_yticklabels()]
    assert {"play (label 1)", "play (label 2)", "stop"} < set(names)


def test_labels_that_differ_where_there_is_no_room_bear_their_numbers(registry: Registry) -> None:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    name = "customer_account_management_request_change_of_{}_which_is_for_the_whole_of_a_business_account"
    names = [*(name.format(what) for what in ("address", "e_mail")), "stop", "go", "wait", "\u202eright to left"]
    data = result.data.model_copy(update={"label_names": names, "train_label_counts": [15, 15, 1, 2, 3, 4]})
    made = [result.model_copy(update={"data": data})]
    composer = Composer(registry, "tiny", KnownResults.of(made), tiny_inputs(), (0,))
    with composer.house_style():
        (axes,) = composer.draw(registry.figures["per_label"], "tnews").axes
        drawn = [label.get_text() for label in axes.get_yticklabels()]
    alike = [text for text in drawn if "…" in text]
    assert len(set(alike)) == 2
    assert all(text.endswith((" (label 1)  15", " (label 2)  15")) for text in alike)
    assert "right to left  4" in drawn  # without the mark, which would turn the count, too


def test_a_folder_that_cannot_be_written_is_one_sentence(
    registry: Registry, results: list[Result], tmp_path: Path
) -> None:
    (tmp_path / "figures").write_text("a file")
    with pytest.raises(UserError, match=r"noise\.pdf cannot be written: "):
        drawn(only(registry, "noise"), results, tmp_path / "figures")


def test_each_method_has_a_look_of_its_own(registry: Registry) -> None:
    styles = Styles(registry.methods.methods)
    looks = [styles.of(name) for name in [*registry.methods.methods, "a row of a table"]]
    assert len({(look.colour, look.marker) for look in looks}) == len(looks)
    assert len({look.marker for look in looks[:10]}) == 10  # in black and white, too
    assert styles.of("a row of a table") == looks[-1]


# --- names in any script ---------------------------------------------------------------------------------------------


def chinese(registry: Registry) -> list[Result]:
    result = made_result(registry, Subject("tnews", "base", "bert"))
    names = ["故事", "文化", "娱乐", "体育$x$", "财经", "intent_5"]
    return [result.model_copy(update={"data": result.data.model_copy(update={"label_names": names})})]


def label_texts(registry: Registry) -> tuple[list[str], list[str]]:
    composer = Composer(registry, "tiny", KnownResults.of(chinese(registry)), tiny_inputs(), (0,))
    with composer.house_style():
        picture = composer.draw(registry.figures["per_label"], "tnews")
        return [label.get_text() for label in picture.axes[0].get_yticklabels()], composer.complaints()


def installed() -> str | None:
    return next((family for family in Lettering("文化").families if family in fonts.CJK_FONTS), None)


@pytest.mark.skipif(installed() is None, reason="needs a font with Chinese letters, e.g. Debian's fonts-noto-cjk")
def test_chinese_names_are_drawn_with_a_font_that_has_them(
    registry: Registry, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    texts, complaints = label_texts(registry)
    assert texts == ["intent_5  25", "财经  26", "体育$x$  27", "娱乐  28", "文化  29", "故事  30"]
    assert complaints == []
    names, remarks = drawn(only(registry, "per_label", dataset="tnews"), chinese(registry), tmp_path)
    assert (len(names), remarks) == (2, [])
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_without_such_a_font_numbers_stand_for_names_and_it_is_said(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(fonts, "CJK_FONTS", ())
    texts, complaints = label_texts(registry)
    assert texts == ["intent_5  25", "label 5  26", "label 4  27", "label 3  28", "label 2  29", "label 1  30"]
    assert len(complaints) == 1
    assert "apt install fonts-noto-cjk" in complaints[0]
    assert "(label 1 is 故事, label 2 is 文化, label 3 is 娱乐, " in complaints[0]
    _, remarks = drawn(only(registry, "per_label", dataset="tnews"), chinese(registry), tmp_path)
    assert remarks == complaints
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_other_names_need_no_other_font() -> None:
    lettering = Lettering(["BERT", "naïve±", "two\nlines"])
    assert lettering.families == [fonts.MAIN_FONT]
    assert lettering.text("two\nlines", "x") == "two lines"
    undrawable = Lettering(["it's \U0001fae8 late", "\U0001fae8"])  # a symbol that is in none of the fonts
    assert undrawable.text("it's \U0001fae8 late", "x") == "it's late"
    assert undrawable.complaint is None
    assert undrawable.text("\U0001fae8", "label 1") == "label 1"
    assert undrawable.complaint is not None
    assert lettering.complaint is None


# --- the registry ----------------------------------------------------------------------------------------------------

# ruff: noqa: E501 (a line a mistake)
MISTAKES = [
    ("kind: noise", "kind: nois", r"figures\.yaml:\d+: figures\.noise\.kind: \"nois\" is unknown; did you mean \"noise\"\?$"),
    ("kind: noise\n", "\n", r"figures\.noise: the key kind is missing\.$"),
    ("levels: [0.05,", "levels: [5,", r"figures\.noise\.levels\.0: input should be less than or equal to 1, not 5\.$"),
    ("levels: [0.05,", "levels: [0.4,", r"figures\.noise\.levels: noise levels must rise, each said once\.$"),
    ("method: bert", "method: brt", r"figures\.confidence\.method: there is no method \"brt\"; did you mean \"bert\"\?$"),
    ("methods: [bert, ts, ls", "methods: [bert, tss, ls", r"figures\.reliability\.methods\.1: there is no method \"tss\"; did you mean \"ts\"\?$"),
    ("methods: [bert, ts, ls", "methods: [bert, bert, ls", r"figures\.reliability\.methods: the method \"bert\" is said twice; keep one of the two\.$"),
    ("methods: [bert, ts, ls", "methods: [rau_to_avuc, bert, ts, ls", r"figures\.reliability\.methods: at most 6 can be given, not 7\.$"),
    ("dataset: tnews", "dataset: tnew", r"figures\.noise\.dataset: there is no data set in any profile \"tnew\"; did you mean \"tnews\"\?$"),
    ("dataset: tnews", "encoder: xlnt", r"figures\.noise\.encoder: there is no encoder role in any profile \"xlnt\"; did you mean \"xlnet\"\?$"),
    ("table: main", "table: mian", r"figures\.f1_against_ece\.table: there is no table \"mian\"; did you mean \"main\"\?$"),
    ("table: main", "table: noise", r"figures\.f1_against_ece\.table: no column of table noise has both f1 and ece of a whole data set without noise\.$"),
    ("table: main", "tabel: main", r"figures\.f1_against_ece\.tabel: unknown key \"tabel\"; did you mean \"table\"\?"),
    ("  noise:\n", "  reliability_tnews:\n", r"figures\.reliability_tnews: \"reliability\" writes a file reliability_tnews, too; give one of the two another name\.$"),
    ("  noise:\n", "  Noise:\n", r"figures\.Noise: a name of small letters, digits and _, a letter first, is expected, not .Noise.\.$"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES, ids=[new.strip()[:40] for _, new, _ in MISTAKES])
def test_each_mistake_is_one_sentence(experiments: Path, old: str, new: str, sentence: str) -> None:
    path = experiments / "figures.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_registry(experiments)
    assert any(re.search(sentence, line) for line in str(caught.value).splitlines()), str(caught.value)
    assert "figures.yaml:" in str(caught.value)


def test_the_papers_two_figures_are_declared() -> None:
    figures = load_registry(EXPERIMENTS).figures
    assert (figures["confidence"].kind, figures["confidence"].method) == ("confidence", "bert")
    assert figures["reliability"].methods == ("bert", "ts", "ls", "poscal", "avuc", "hs_rau")


# --- the command -----------------------------------------------------------------------------------------------------


def test_report_draws_the_same_bytes_in_another_process(
    registry: Registry, results: list[Result], experiments: Path, tmp_path: Path
) -> None:
    declared = yaml.safe_load((experiments / "figures.yaml").read_text(encoding="utf-8"))
    declared["figures"] = {"confidence": declared["figures"]["confidence"]}
    (experiments / "figures.yaml").write_text(yaml.safe_dump(declared), encoding="utf-8")
    folder = ResultFolder(tmp_path / "results", "tiny")
    for result in results:
        folder.save(result)
    options = ["--experiments", experiments, "--results-dir", tmp_path / "results", "--tables-dir", tmp_path / "tables"]
    call = run_module("report", "--profile", "tiny", "--table", "noise", "--figures", *options)
    assert call.returncode == 0, call.stderr
    names, remarks = drawn(load_registry(experiments), results, tmp_path / "here")
    assert remarks == ["Figures left out: confidence_hwu64, confidence_banking77 (no result)."]
    written = [str(tmp_path / "tables" / "tiny" / "figures" / name) for name in names]
    assert call.stderr.splitlines()[1:] == [*remarks, f"written: {', '.join(written)}"]
    for name in names:
        content = (tmp_path / "here" / name).read_bytes()
        assert (tmp_path / "tables" / "tiny" / "figures" / name).read_bytes() == content, name
        assert b"CreationDate" not in content

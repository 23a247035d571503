"""The recommendation: the best calibrated method that loses no F1, and what else a reader must know."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark.declarations import TableRow
from benchmark.recommendation import Recommendation, recommend, rule_in_words
from benchmark.registry import Registry, Subject, select_tables
from benchmark.specs import RESAMPLED
from benchmark.store import KnownResults, Result
from benchmark.tables import GridBuilder
from tests.results import from_before, made_result, tiny_inputs, with_rau, with_scores


def scored(
    registry: Registry, method: str, f1: float, ece: float, noise: float = 0.001, seed: int = 0, **scores: float
) -> Result:
    """A result on TNEWS whose resamples scatter around its scores by ``noise``, independent of other methods'; scores
    beside F1 and ECE are resampled where they are given.
    """
    given = {name: value for name, value in scores.items() if name in RESAMPLED}
    scores = {"f1": f1, "ece": ece, "ece_if_calibrated": ece / 2} | scores
    result = with_scores(made_result(registry, Subject("tnews", "base", method), seed), **scores)
    draws = np.random.default_rng(sum(map(ord, method)))
    views = []
    for view in result.views:
        spread = [list(value + noise * draws.normal(size=300)) for value in (f1, ece, *given.values())]
        measures = dict(zip(given, spread[2:], strict=True))
        changed = {"f1": spread[0], "ece": spread[1], "measures": measures}
        views.append(view.model_copy(update={"resampled": view.resampled.model_copy(update=changed)}))
    return result.model_copy(update={"views": views})


def advice(
    registry: Registry, results: list[Result], seeds: tuple[int, ...] = (0,), by: str = "ece"
) -> list[Recommendation]:
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), seeds)
    return recommend(builder, select_tables(registry, "tiny", ["main"]).values(), by)


def test_the_lowest_ece_wins_among_methods_that_lose_no_f1(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40),
        scored(registry, "ls", 0.80, 0.30),
        scored(registry, "poscal", 0.70, 0.10),
        scored(registry, "hs_rau", 0.81, 0.3005),
    ]
    found = advice(registry, results)
    assert [(item.dataset, item.method) for item in found] == [("tiny tnews", "LS")]
    assert found[0].sentences[0].startswith("Use LS: ECE 30.00 against 40.00 of BERT (−10.00, 95 % interval −10.")
    assert "By ECE LS cannot be told from HS-RAU (30.05)." in found[0].sentences
    assert "Set aside because they lose F1: PosCal (−10.00)." in found[0].sentences


def test_what_chance_alone_makes_of_the_ece_is_said_where_it_is_known(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40, ece_if_calibrated=0.12),
        scored(registry, "ls", 0.80, 0.30, ece_if_calibrated=0.25),
        scored(registry, "hs_rau", 0.80, 0.35, ece_if_calibrated=0.2),
        scored(registry, "avuc", 0.80, 0.45, ece_if_calibrated=0.3),
    ]
    (found,) = advice(registry, results)
    chance = "By chance alone a perfectly calibrated model as sure as BERT would have an ECE of "
    # the first, the advised and the next by ECE
    assert f"{chance}12.00, as sure as LS 25.00, as sure as HS-RAU 20.00." in found.sentences
    assert "no sign of better calibration" not in found.sentences[0]
    # HS-RAU is surer and has a lower ECE, by less than chance makes of that
    results[2] = scored(registry, "hs_rau", 0.80, 0.35, ece_if_calibrated=0.06)
    (found,) = advice(registry, results)
    merely = "HS-RAU, because its lower ECE (−5.00) is no more than its being surer makes by chance (−6.00)."
    assert f"Set aside: {merely}" in found.sentences
    (found,) = advice(registry, [results[0], results[2]])
    assert found.method == "BERT"
    assert found.sentences[0] == "Keep BERT: it has the lowest ECE, 40.00, of the methods not set aside."
    for result in results:  # as scored before there was this measure
        for view in result.views:
            del view.scores["ece_if_calibrated"]
    (without,) = advice(registry, results)
    assert not any(sentence.startswith("By chance") for sentence in without.sentences)


def test_an_ece_is_said_as_the_tables_print_it(registry: Registry) -> None:
    fractions = registry.metrics["ece"].model_copy(update={"scale": 1.0, "decimals": 4})
    printed = replace(registry, metrics={**registry.metrics, "ece": fractions})
    results = [
        scored(registry, "bert", 0.80, 0.40, ece_if_calibrated=0.12),
        scored(registry, "ls", 0.80, 0.30, ece_if_calibrated=0.25, confidence=0.85),
        scored(registry, "hs_rau", 0.80, 0.35, ece_if_calibrated=0.06),
    ]
    (found,) = advice(printed, results)
    assert found.sentences[0].startswith("Use LS: ECE 0.3000 against 0.4000 of BERT (−0.1000, 95 % interval −0.1")
    said = " ".join(found.sentences)
    assert "as sure as BERT would have an ECE of 0.1200, as sure as LS 0.2500" in said
    assert "its lower ECE (−0.0500) is no more than its being surer makes by chance (−0.0600)." in said
    leaning = 100 * (0.85 - next(view.scores["accuracy"] for view in results[1].views))
    assert f"LS {leaning:+.2f}".replace("-", "−") in said  # in points, whatever the ECE is printed in
    results[0] = scored(registry, "bert", 0.80, 0.40, ece_if_calibrated=0.41)
    assert (
        "its 0.4000 is no more than chance alone makes of one as sure (0.4100)"
        in advice(printed, results)[0].sentences[0]
    )


def test_where_the_ece_cannot_tell_the_baseline_from_a_calibrated_model_another_measure_decides(
    registry: Registry,
) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40, ece_if_calibrated=0.41, top_label_ece=0.2),
        scored(registry, "ls", 0.80, 0.30, ece_if_calibrated=0.35, top_label_ece=0.25),
        scored(registry, "poscal", 0.80, 0.45, ece_if_calibrated=0.40, top_label_ece=0.1),
    ]
    blind = (
        "ECE cannot tell BERT from a calibrated model: its 40.00 is no more than chance alone makes of one as sure "
        "(41.00), so that a lower ECE is no sign of better calibration."
    )
    (found,) = advice(registry, results)
    assert found.method == "PosCal"
    assert found.sentences[0].startswith(f"{blind} By top-label ECE: Use PosCal: top-label ECE 10.00 against 20.00 of")
    (found,) = advice(registry, [from_before(result) for result in results])
    assert found.method is None
    assert found.sentences[0].startswith(f"{blind} By top-label ECE: No method can be recommended by top-label ECE: ")
    higher = [results[0], scored(registry, "ls", 0.80, 0.45, ece_if_calibrated=0.35, top_label_ece=0.1)]
    (found,) = advice(registry, higher)  # nor is a higher one a sign of worse
    assert found.method == "LS"
    # a calibrated and surer method: its ECE falls by as much as chance makes of that, and is not set aside over it
    surer = [results[0], scored(registry, "ls", 0.80, 0.30, ece_if_calibrated=0.29, top_label_ece=0.05)]
    (found,) = advice(registry, surer)
    assert found.method == "LS"


def test_a_lower_ece_counts_where_nll_is_lower_too_though_chance_makes_as_much_of_it(registry: Registry) -> None:
    bert = scored(registry, "bert", 0.80, 0.40, ece_if_calibrated=0.30, nll=1.0)
    for nll, advised in ((0.9, "LS"), (1.0, "BERT")):
        surer = scored(registry, "ls", 0.80, 0.35, ece_if_calibrated=0.20, nll=nll)
        (found,) = advice(registry, [bert, surer])
        assert found.method == advised


def test_of_methods_that_noise_cannot_tell_apart_the_lowest_nll_decides(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40, nll=1.0),
        scored(registry, "ls", 0.80, 0.3000, nll=0.9),
        scored(registry, "poscal", 0.80, 0.3001, nll=0.8),
        scored(registry, "hs_rau", 0.80, 0.35, nll=0.7),  # beyond noise behind them
    ]
    (found,) = advice(registry, results)
    assert found.method == "PosCal"
    assert found.sentences[0].endswith(
        "LS has a lower mean, 30.00, from which noise cannot tell it: the lower NLL decides (0.800 against 0.900)."
    )
    results[2] = scored(registry, "poscal", 0.80, 0.3001, nll=0.95)
    (found,) = advice(registry, results)
    assert found.method == "LS"
    assert "noise cannot tell it" not in found.sentences[0]


def test_an_nll_above_that_of_knowing_nothing_is_a_caution(registry: Registry) -> None:
    def sentences(nll: float) -> tuple[str, ...]:
        (found,) = advice(registry, [scored(registry, method, 0.80, 0.40, nll=nll) for method in ("bert", "ls")])
        return tuple(sentence for sentence in found.sentences if "goes on too long" in sentence)

    labels = len(scored(registry, "bert", 0.80, 0.40).views[0].per_label.support)
    assert sentences(np.log(labels) - 0.01) == ()
    assert sentences(np.log(labels) + 0.0001) == ()  # which would be printed alike
    (said,) = sentences(np.log(labels) + 0.01)
    assert said.startswith(
        f"The NLL of BERT, {np.log(labels) + 0.01:.3f}, is higher than that of giving every label the "
    )


def test_validation_rows_that_are_unlike_the_test_rows_are_a_caution(registry: Registry) -> None:
    def said(validation: float) -> list[str]:
        results = []
        for method in ("bert", "ls"):
            result = scored(registry, method, 0.80, 0.40, accuracy=0.5)
            plain = result.views[0]
            easier = with_scores(result, f1=0.80, accuracy=validation).views[0]
            view = plain.view.model_copy(update={"split": "validation"})
            results.append(
                result.model_copy(update={"views": [*result.views, easier.model_copy(update={"view": view})]})
            )
        (found,) = advice(registry, results)
        return [sentence for sentence in found.sentences if "more unlike than chance" in sentence]

    rows = sum(scored(registry, "bert", 0.80, 0.40).views[0].per_label.support)
    at_one_percent = 2.576 * np.sqrt(2 * 0.25 / rows)
    assert said(0.5) == said(0.5 + 0.9 * at_one_percent) == []
    (sentence,) = said(0.5 + 1.1 * at_one_percent)
    assert f"of {rows} validation rows and 50.00 % of {rows} test rows" in sentence


def test_a_model_far_less_sure_than_it_is_right_is_a_caution(registry: Registry) -> None:
    def results(confidence: float) -> list[Result]:
        found = [scored(registry, "bert", 0.80, 0.40), scored(registry, "ls", 0.80, 0.30)]
        for view in found[0].views:
            view.scores.update(confidence=confidence, accuracy=0.9)
        return found

    (found,) = advice(registry, results(0.65))
    assert "BERT is far less sure than it is right (−25.00 points), as where training ends too early. More" in " ".join(
        found.sentences
    )
    assert not any("ends too early" in sentence for sentence in advice(registry, results(0.8))[0].sentences)


def test_a_temperature_that_was_not_found_is_not_advised(registry: Registry) -> None:
    """On validation rows that are all right the surer is the better: ECE falls, NLL goes beyond all measure."""
    bert = scored(registry, "bert", 0.80, 0.40)
    views = [
        view
        if view.view.calibrator is None
        else view.model_copy(
            update={
                "at_bound": True,
                "temperature": 0.01,
                "scores": view.scores | {"ece": 0.2, "ece_if_calibrated": 0.01},
                "resampled": view.resampled.model_copy(update={"ece": [one - 0.2 for one in view.resampled.ece]}),
            }
        )
        for view in bert.views
    ]
    bounded = bert.model_copy(update={"views": views})
    ended = "TS, because the search for its temperature ended at a bound (seed 0): the validation rows name no best one"
    (found,) = advice(registry, [bounded, scored(registry, "ls", 0.80, 0.41)])
    assert found.method == "BERT"
    assert found.sentences[0] == "Keep BERT: it has the lowest ECE, 40.00, of the methods not set aside."
    assert found.sentences[1] == f"Set aside: {ended}."
    (found,) = advice(registry, [bounded, scored(registry, "ls", 0.80, 0.30)])
    assert found.method == "LS"
    rows = ((TableRow(method="ts"), TableRow(method="ls")),)
    first = registry.tables["main"].model_copy(update={"rows": rows})
    builder = GridBuilder(
        registry, "tiny", KnownResults.of([bounded, scored(registry, "ls", 0.80, 0.41)]), tiny_inputs(), (0,)
    )
    (found,) = recommend(builder, [first])
    assert found.method == "TS"  # it is the one to compare with
    assert f"Beware of {ended}." in found.sentences


def test_which_way_a_model_errs_is_said(registry: Registry) -> None:
    """Two of three rows right at a confidence of 0.9, and one at 0.5 is wrong: 76.67 of confidence to 66.67 right."""
    bert = scored(registry, "bert", 0.80, 0.40)
    for view in bert.views:
        view.scores.update(confidence=2.3 / 3, accuracy=2 / 3)
    (found,) = advice(registry, [bert, scored(registry, "ls", 0.80, 0.30)])
    way = "Mean confidence less accuracy, in points (+ over-, − under-confident): BERT +10.00, LS "
    assert any(sentence.startswith(way) for sentence in found.sentences)


def test_where_nothing_is_better_beyond_noise_that_is_said(registry: Registry) -> None:
    found = advice(registry, [scored(registry, "bert", 0.80, 0.40, 0.05), scored(registry, "ls", 0.80, 0.39, 0.05)])
    said = found[0].sentences[0]
    keep = "Keep BERT: of the methods not shown to lose F1 none has a lower ECE beyond noise."
    assert said.startswith(f"{keep} Lowest is LS: ECE 39.00")
    assert found[0].method == "BERT"


def test_a_lower_mean_that_is_within_noise_does_not_hide_one_that_is_beyond(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40, 0.001),
        scored(registry, "ls", 0.80, 0.37, 0.001),
        scored(registry, "hs_rau", 0.80, 0.36, 0.05),
    ]
    (found,) = advice(registry, results)
    assert found.method == "LS"
    assert found.sentences[0].startswith("Use LS: ECE 37.00 against 40.00 of BERT (−3.00, 95 % interval −3.")
    assert "HS-RAU has a lower mean, 36.00, but is not below BERT beyond noise (−4.00," in found.sentences[0]
    assert found.sentences[1] == "That is one training each; another seed may say otherwise."
    assert "By ECE LS cannot be told from HS-RAU (36.00)." in found.sentences


def test_where_the_baseline_is_kept_other_measures_are_compared_with_it(registry: Registry) -> None:
    best = {"nll": 0.9, "brier": 0.2, "top_label_ece": 0.2, "adaptive_ece": 0.2, "aurc": 0.1}
    results = [
        scored(registry, "bert", 0.80, 0.40, 0.05, **best),
        scored(registry, "ls", 0.80, 0.39, 0.05, **best | {"aurc": 0.3}),
        scored(registry, "hs_rau", 0.80, 0.41, 0.05, **best | {"nll": 0.7, "brier": 0.3}),
    ]
    (found,) = advice(registry, results)
    assert "By ECE LS cannot be told from BERT (40.00), TS (40.00), HS-RAU (41.00)." in found.sentences
    assert (
        "By other measures another method than BERT has the best mean: NLL HS-RAU (0.700 against 0.900, beyond noise)."
        in found.sentences
    )


def test_numbers_that_are_compared_are_of_the_same_seeds(registry: Registry) -> None:
    bert = [scored(registry, "bert", 0.80, ece, seed=seed) for seed, ece in ((0, 0.40), (1, 0.20))]
    found = advice(registry, [*bert, scored(registry, "ls", 0.80, 0.15)], seeds=(0, 1))
    assert found[0].sentences[0].startswith("Use LS: ECE 15.00 against 40.00 of BERT (−25.00,")
    assert found[0].sentences[-3:] == (
        "All this is over the seeds that these methods share. One seed (0).",
        "Not compared: PosCal, AVUC, HS-RAU (no result).",
        "Compared: BERT, TS, LS.",
    )


def test_a_method_that_is_behind_does_not_cost_the_others_their_seeds(registry: Registry) -> None:
    """Five rows of three seeds (TS is BERT's run) allow more comparisons than six of one."""
    whole = [
        scored(registry, method, 0.80, ece, seed=seed)
        for method, ece in (("bert", 0.40), ("ls", 0.30), ("avuc", 0.35), ("hs_rau", 0.45))
        for seed in (0, 1, 2)
    ]
    for late in (0, 5):  # a seed that the others have, and one that they have not
        found = advice(registry, [*whole, scored(registry, "poscal", 0.80, 0.10, seed=late)], seeds=(0, 1, 2, 5))
        assert found[0].method == "LS"
        assert found[0].sentences[-2].endswith("Left out, having fewer values or other seeds: PosCal.")
        assert found[0].sentences[-1] == "Compared: BERT, TS, LS, AVUC, HS-RAU."


def test_another_table_does_not_put_another_baseline_in_the_place_of_a_missing_one(registry: Registry) -> None:
    results = [scored(registry, "hs_rau", 0.80, 0.30), scored(registry, "without_hs", 0.80, 0.40)]
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    tables = select_tables(registry, "tiny", ["main", "ablation"])
    assert recommend(builder, tables.values()) == []
    alone = select_tables(registry, "tiny", ["ablation"])
    assert [item.method for item in recommend(builder, alone.values())] == ["HS-RAU"]


def test_a_method_without_a_seed_of_the_baseline_is_named(registry: Registry) -> None:
    results = [scored(registry, "bert", 0.80, 0.40), scored(registry, "ls", 0.80, 0.30, seed=1)]
    (found,) = advice(registry, results, seeds=(0, 1))
    assert found.sentences[-3].endswith("Left out, having fewer values or other seeds: LS.")
    assert found.sentences[-2] == "Not compared: PosCal, AVUC, HS-RAU (no result)."
    assert found.sentences[-1] == "Compared: BERT, TS."


def test_the_baseline_is_kept_where_it_is_best(registry: Registry) -> None:
    bert = scored(registry, "bert", 0.80, 0.20)
    alone = bert.model_copy(update={"views": [view for view in bert.views if view.view.calibrator is None]})
    (found,) = advice(registry, [alone, scored(registry, "ls", 0.80, 0.39)])
    assert found.method == "BERT"
    assert found.sentences[0] == "Keep BERT: it has the lowest ECE, 20.00, of the methods not shown to lose F1."


def test_other_measures_that_choose_otherwise_are_named(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40, nll=0.9, brier=0.2, top_label_ece=0.2, adaptive_ece=0.2, aurc=0.1),
        scored(registry, "ls", 0.80, 0.30, nll=0.8, brier=0.3, top_label_ece=0.1, adaptive_ece=0.1, aurc=0.1),
    ]
    found = advice(registry, results)
    worse = "By other measures LS has a worse mean than BERT"
    assert f"{worse}: Brier (30.00 against 20.00, beyond noise)." in found[0].sentences
    found = advice(registry, [from_before(result) for result in results])
    assert f"{worse} (not tested): Brier (30.00 against 20.00)." in found[0].sentences
    assert not any("the best mean" in sentence for sentence in found[0].sentences)  # BERT's, which was said


def test_an_advised_method_that_is_worse_by_other_measures_says_so(registry: Registry) -> None:
    """As where few validation rows make a model too sure: the class-wise sum falls, NLL and Brier rise."""
    other = {"adaptive_ece": 0.2, "aurc": 0.1}
    results = [
        scored(registry, "bert", 0.80, 0.40, nll=0.332, brier=0.18, top_label_ece=0.11, **other),
        scored(registry, "ls", 0.80, 0.30, nll=0.503, brier=0.21, top_label_ece=0.11, **other),
    ]
    (found,) = advice(registry, results)
    assert found.method == "BERT"
    assert "Set aside: LS, because its NLL is higher beyond noise (0.503 against 0.332)." in found.sentences
    (found,) = advice(registry, [from_before(result) for result in results])  # whose NLL cannot be tested
    assert found.method == "LS"
    worse = "LS has a worse mean than BERT (not tested): Brier (21.00 against 18.00), NLL (0.503 against 0.332)."
    assert found.sentences[1] == f"By other measures {worse}"
    (kept,) = advice(registry, results, by="nll")
    assert not any("a worse mean" in sentence for sentence in kept.sentences)


def test_two_seeds_are_said_to_be_few(registry: Registry) -> None:
    results = [
        scored(registry, method, 0.80, ece + gap, seed=seed)
        for method, ece in (("bert", 0.4), ("ls", 0.3))
        for seed, gap in ((0, 0.0), (1, 0.01), (2, 0.02))
    ]
    few = "Two seeds hardly say how far trainings scatter; with a third, intervals are much narrower."
    assert few in advice(registry, results, (0, 1))[0].sentences
    assert few not in advice(registry, results, (0, 1, 2))[0].sentences


def test_another_measure_may_decide(registry: Registry) -> None:
    """By ECE LS is best; by top-label ECE PosCal is, LS above BERT, and HS-RAU's lead within noise."""
    results = [
        scored(registry, "bert", 0.80, 0.40, top_label_ece=0.20, nll=0.9),
        scored(registry, "ls", 0.80, 0.30, top_label_ece=0.25, nll=0.8),
        scored(registry, "poscal", 0.80, 0.45, top_label_ece=0.15, nll=0.9),
        scored(registry, "hs_rau", 0.80, 0.35, 0.1, top_label_ece=0.14, nll=0.85),
    ]
    assert advice(registry, results)[0].method == "LS"
    (found,) = advice(registry, results, by="top_label_ece")
    assert found.method == "PosCal"
    assert found.sentences[0].startswith("Use PosCal: top-label ECE 15.00 against 20.00 of BERT (−5.00, 95 % interval")
    assert "HS-RAU has a lower mean, 14.00, but is not below BERT beyond noise (−6.00, " in found.sentences[0]
    assert "By top-label ECE PosCal cannot be told from HS-RAU (14.00)." in found.sentences
    (others,) = (sentence for sentence in found.sentences if "another method than" in sentence)
    assert "than PosCal has the best mean: ECE LS (30.00 against 45.00, beyond noise)" in others
    assert "NLL LS (0.800 against 0.900, beyond noise)" in others
    assert "top-label" not in others
    assert not any(sentence.startswith("By chance") for sentence in found.sentences)  # which is about the ECE
    assert "lower top-label ECE and lose neither F1 nor NLL, " in rule_in_words(registry, "top_label_ece")
    assert "On few rows top-label ECE favours the surer" in rule_in_words(registry, "top_label_ece")
    assert "On few rows" not in rule_in_words(registry, "nll")
    (kept,) = advice(registry, [results[0], results[1]], by="top_label_ece")
    assert (
        kept.sentences[0] == "Keep BERT: it has the lowest top-label ECE, 20.00, of the methods not shown to lose F1."
    )
    (gained,) = advice(
        registry, [results[0], scored(registry, "ls", 0.82, 0.30, top_label_ece=0.25)], by="top_label_ece"
    )
    assert "F1 above that of BERT beyond noise, whatever the top-label ECE: LS (+2.00)." in gained.sentences


def test_a_sure_model_that_is_always_right_is_not_called_nearly_uniform(registry: Registry) -> None:
    """Its ECE, too, is far below what chance makes: never wrong, it is a little less sure than it is right."""
    results = [
        scored(registry, "bert", 1.0, 0.0261, ece_if_calibrated=0.057, top_label_ece=0.0131),
        scored(registry, "ls", 1.0, 0.04, ece_if_calibrated=0.08, top_label_ece=0.02),
    ]
    (found,) = advice(registry, results)
    assert found.method == "BERT"
    assert not any("nearly as sure" in sentence for sentence in found.sentences)


def test_a_nearly_uniform_method_is_set_aside_where_the_ece_decides_alone(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.60, 0.50, top_label_ece=0.3),
        scored(registry, "ls", 0.60, 0.10, ece_if_calibrated=0.85, top_label_ece=0.5),
    ]
    assert any(sentence.startswith("Set aside: LS is nearly") for sentence in advice(registry, results)[0].sentences)
    (found,) = advice(registry, results, by="top_label_ece")
    assert found.method == "BERT"
    assert not any("Set aside" in sentence for sentence in found.sentences)
    assert not any("ECE LS" in sentence for sentence in found.sentences)  # nor is that ECE held up as the best


def test_results_from_before_a_measure_was_resampled_are_not_compared_by_it(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40, nll=0.9),
        scored(registry, "ls", 0.80, 0.30, nll=0.8),
        scored(registry, "poscal", 0.80, 0.30, nll=0.5),
    ]
    (whole,) = advice(registry, results, by="nll")
    assert whole.method == "PosCal"
    (without_poscal,) = advice(registry, [*results[:2], from_before(results[2])], by="nll")
    assert without_poscal.method == "LS"
    (said,) = (sentence for sentence in without_poscal.sentences if sentence.startswith("Left out"))
    assert said.startswith("Left out, scored before there were resamples of NLL (benchmark.run scores again ")
    assert said.endswith("): PosCal.")
    (none,) = advice(registry, [from_before(results[0]), *results[1:]], by="nll")
    assert none.method is None
    because = "No method can be recommended by NLL: BERT was scored before there were resamples of it; benchmark.run"
    assert none.sentences[0].startswith(because)
    assert advice(registry, [from_before(results[0]), *results[1:]])[0].method is not None  # by ECE


def test_one_method_alone_or_no_baseline_gives_no_advice(registry: Registry) -> None:
    assert advice(registry, []) == []
    assert advice(registry, [scored(registry, "ls", 0.8, 0.3), scored(registry, "hs_rau", 0.8, 0.3)]) == []


def test_the_methods_of_several_tables_are_compared_together(registry: Registry) -> None:
    """Those of tables with the same baseline, and each once."""
    results = [
        scored(registry, "bert", 0.80, 0.40),
        scored(registry, "ls", 0.80, 0.30),
        scored(registry, "focal", 0.80, 0.20),
        scored(registry, "without_hs", 0.80, 0.10),
    ]
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    tables = select_tables(registry, "tiny", ["main", "main_full", "ablation", "more_methods"])
    (found,) = recommend(builder, tables.values())
    assert found.sentences[-1] == "Compared: BERT, TS, LS, Focal loss."
    assert found.method == "Focal loss"
    (main,) = recommend(builder, select_tables(registry, "tiny", ["main"]).values())
    assert main.sentences[-1] == "Compared: BERT, TS, LS."


def test_methods_that_two_tables_call_the_same_are_told_apart(registry: Registry) -> None:
    """TS is set aside, because its temperature was not found; LS, of the same name, is not."""
    bert = scored(registry, "bert", 0.80, 0.40)
    views = [view.model_copy(update={"at_bound": True}) if view.temperature else view for view in bert.views]
    results = [bert.model_copy(update={"views": views}), scored(registry, "ls", 0.80, 0.30)]
    main = registry.tables["main"]
    rows = {row.method: row for row in main.every_row}
    tables = [
        main.model_copy(update={"rows": ((rows["bert"], rows[method].model_copy(update={"label": "Mine"})),)})
        for method in ("ts", "ls")
    ]
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    (found,) = recommend(builder, tables)
    assert found.method == "Mine (ls)"
    assert found.sentences[-1] == "Compared: BERT, Mine (ts), Mine (ls)."
    assert any(sentence.startswith("Set aside: Mine (ts), because") for sentence in found.sentences)


def test_the_first_table_with_advice_gives_it(registry: Registry) -> None:
    results = [scored(registry, "bert", 0.80, 0.40), scored(registry, "ls", 0.80, 0.30)]
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    tables = select_tables(registry, "tiny", ["encoders", "noise", "main"])
    assert [item.method for item in recommend(builder, tables.values())] == ["LS"]


@pytest.mark.parametrize("missing", ["f1", "ece"])
def test_a_registry_without_the_deciding_metrics_gives_none(registry: Registry, missing: str) -> None:
    metrics = {name: metric for name, metric in registry.metrics.items() if name != missing}
    results = [scored(registry, "bert", 0.80, 0.40), scored(registry, "ls", 0.80, 0.30)]
    builder = GridBuilder(replace(registry, metrics=metrics), "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    assert recommend(builder, select_tables(registry, "tiny", ["main"]).values()) == []


def test_a_gain_in_f1_is_said_though_the_ece_decides(registry: Registry) -> None:
    results = [
        scored(registry, "bert", 0.80, 0.40, 0.001),
        scored(registry, "ls", 0.80, 0.30, 0.001),
        scored(registry, "hs_rau", 0.82, 0.40, 0.001),
    ]
    (found,) = advice(registry, results)
    assert found.method == "LS"
    assert "F1 above that of BERT beyond noise, whatever the ECE: HS-RAU (+2.00)." in found.sentences
    results[1] = scored(registry, "ls", 0.81, 0.30, 0.001)  # its own gain stands in the first sentence
    assert "LS (+" not in " ".join(advice(registry, results)[0].sentences)


def test_few_test_rows_are_a_caution(registry: Registry) -> None:
    (found,) = advice(registry, [scored(registry, "bert", 0.80, 0.40), scored(registry, "ls", 0.80, 0.30)])
    assert "Only 60 test rows stand behind this." in found.sentences


def test_what_was_found_in_the_rows_is_part_of_the_advice(registry: Registry) -> None:
    results = [scored(registry, "bert", 0.80, 0.40), scored(registry, "ls", 0.80, 0.30)]
    remarks = ["test texts that are training or validation texts, too: 60", "only 60 test rows: few differences"]
    known = [
        result.model_copy(update={"data": result.data.model_copy(update={"remarks": remarks})}) for result in results
    ]
    (found,) = advice(registry, known)
    assert f"Found in the rows: {'; '.join(remarks)}." in found.sentences
    assert not any("Only 60" in sentence for sentence in found.sentences)  # once is enough


def test_an_ece_below_what_chance_makes_is_a_caution(registry: Registry) -> None:
    """Of 1,000 labels all nearly equal the class-wise sum sees little: 0.43 where chance alone makes 0.90."""
    results = [
        scored(registry, "bert", 0.60, 0.43, ece_if_calibrated=0.9, top_label_ece=0.634),
        scored(registry, "ls", 0.60, 0.80, ece_if_calibrated=0.85),
    ]
    (found,) = advice(registry, results)
    assert found.method is None
    assert found.sentences[0] == (
        "No method can be recommended. BERT is nearly as sure of every label (seed 0), which this ECE cannot see: "
        "43.00, where chance alone makes 90.00 of a calibrated model's. Its top-label ECE is 63.40: go by that (--by "
        "top_label_ece), or by NLL (--by nll)."
    )
    assert not any("cannot be told" in sentence or "By other measures" in sentence for sentence in found.sentences)
    uniform = scored(registry, "ls", 0.60, 0.10, ece_if_calibrated=0.85, top_label_ece=0.5)
    others = [scored(registry, "bert", 0.60, 0.50), uniform, scored(registry, "poscal", 0.60, 0.40)]
    (found,) = advice(registry, others)  # it costs itself, and no other
    assert found.method == "PosCal"
    assert found.sentences[0].startswith("Use PosCal: ")
    assert found.sentences[1].startswith("Set aside: LS is nearly as sure of every label (seed 0), which this ECE")
    results[0] = scored(registry, "bert", 0.60, 0.43, ece_if_calibrated=0.45)
    assert not any("nearly as sure" in sentence for sentence in advice(registry, results)[0].sentences)


def test_a_model_that_has_learnt_nothing_is_a_caution(registry: Registry) -> None:
    def results(accuracy: float) -> list[Result]:
        return [
            scored(registry, method, 0.1, ece, accuracy=accuracy, seed=seed)
            for method, ece in (("bert", 0.4), ("ls", 0.3))
            for seed in (0, 1)
        ]

    supports = [result.views[0].per_label.support for result in results(0.5)[:2]]
    shares = [max(support) / sum(support) for support in supports]  # of the commonest label, which each seed draws
    higher = shares.index(max(shares))
    assert shares[0] != shares[1]
    (found,) = advice(registry, results(max(shares)), (0, 1))
    assert found.method == "LS"
    assert found.sentences[1] == (
        f"Nothing was learnt by BERT (seed {higher}) and LS (seed {higher}): no more often right than whoever always "
        "says the commonest label; calibration then says little."
    )
    (found,) = advice(registry, results(min(shares)), (0, 1))
    assert found.method is None
    assert found.sentences[0].startswith("No method can be recommended. Nothing was learnt by BERT (seed 0, 1) and LS")
    collapsed = [*results(min(shares))[:2], *results(0.9)[2:]]  # BERT, and LS has not
    (found,) = advice(registry, collapsed, (0, 1))
    assert found.method == "LS"
    assert found.sentences[1].startswith("Nothing was learnt by BERT (seed 0, 1): ")
    (found,) = advice(registry, results(max(shares) + 0.01), (0, 1))
    assert found.method is not None
    assert not any("Nothing was learnt" in sentence for sentence in found.sentences)


def test_chance_is_a_mean_over_all_seeds_or_not_said(registry: Registry) -> None:
    results = [
        scored(registry, method, 0.80, ece, seed=seed, ece_if_calibrated=chance)
        for method, ece in (("bert", 0.4), ("ls", 0.3))
        for seed, chance in ((0, 0.1), (1, 0.2))
    ]
    (found,) = advice(registry, results, (0, 1))
    assert "as sure as BERT would have an ECE of 15.00, as sure as LS 15.00." in " ".join(found.sentences)
    for view in results[0].views:
        del view.scores["ece_if_calibrated"]
    (without,) = advice(registry, results, (0, 1))
    assert "By chance" not in " ".join(without.sentences)


def test_advice_is_on_the_base_encoder_alone(registry: Registry) -> None:
    made = [made_result(registry, Subject("tnews", "albert_tiny", name)) for name in ("bert", "hs_rau")]
    builder = GridBuilder(registry, "tiny", KnownResults.of(made), tiny_inputs(), (0,))
    assert recommend(builder, select_tables(registry, "tiny", ["encoders"]).values()) == []


def test_a_rule_that_older_results_cannot_be_asked_is_named(registry: Registry) -> None:
    def said(nll: dict[str, float], by: str = "ece", chance: float | None = 0.1) -> str:
        results = [scored(registry, method, 0.80, ece, **nll) for method, ece in (("bert", 0.40), ("ls", 0.30))]
        for view in results[1].views if chance is None else []:
            del view.scores["ece_if_calibrated"]
        (found,) = advice(registry, results, by=by)
        return " ".join(one for one in found.sentences if one.startswith("Not checked"))

    assert said({"nll": 0.5}) == ""
    assert said({}) == "Not checked, for want of the numbers: whether a method loses NLL."
    both = "whether a method loses NLL and whether chance alone makes a lower ECE"
    assert said({}, chance=None) == f"Not checked, for want of the numbers: {both}."
    assert (
        said({"brier": 0.5}, by="brier", chance=None)
        == "Not checked, for want of the numbers: whether a method loses NLL."
    )
    assert said({"nll": 0.5}, by="nll", chance=None) == ""
    mixed = [scored(registry, "bert", 0.80, 0.40, nll=0.5), scored(registry, "ls", 0.80, 0.30, nll=0.5)]
    mixed.append(from_before(scored(registry, "hs_rau", 0.80, 0.35, nll=0.5)))
    (found,) = advice(registry, mixed)
    assert "Not checked, for want of the numbers: whether a method loses NLL." in found.sentences


def test_a_method_whose_rau_did_nothing_is_named(registry: Registry) -> None:
    results = [scored(registry, "bert", 0.80, 0.40), with_rau(scored(registry, "hs_rau", 0.80, 0.30), [None, 0.6931])]
    (found,) = advice(registry, results)
    why = "next to no training row was certain, or next to none uncertain"
    assert f"RAU had no effect in HS-RAU: {why}." in found.sentences
    (found,) = advice(registry, [results[0], with_rau(results[1], [0.6931, 0.6])])
    assert not [one for one in found.sentences if one.startswith("RAU")]


def test_where_the_baseline_is_kept_a_lead_in_f1_alone_is_advice_too(registry: Registry) -> None:
    """ECE is lower within noise, F1 higher beyond it."""
    noisy = {"noise": 0.001, "top_label_ece": 0.1}

    def verdict(f1: float, nll: float = 0.5) -> str:
        results = [
            scored(registry, "bert", 0.80, 0.40, **noisy, nll=0.5),
            scored(registry, "hs_rau", f1, 0.3995, **noisy, nll=nll),
        ]
        (found,) = advice(registry, results)
        assert found.method == "BERT"
        return found.sentences[0] + "".join(one for one in found.sentences if one.startswith("F1 above"))

    said = "So where F1 counts, HS-RAU is the one to use."
    assert verdict(0.82).endswith(said)
    assert said not in verdict(0.8005)
    assert said not in verdict(0.82, nll=0.6)


def test_it_is_no_advice_where_another_has_a_higher_f1_or_nll_is_not_known(registry: Registry) -> None:
    def sentences(**changes: dict[str, float]) -> str:
        given = {"bert": {"ece": 0.40}, "hs_rau": {"f1": 0.82, "ece": 0.3995}} | changes
        base = {"f1": 0.80, "nll": 0.5, "top_label_ece": 0.1}
        results = [scored(registry, method, **(base | scores)) for method, scores in given.items()]
        return " ".join(advice(registry, results)[0].sentences)

    advised, gained = "where F1 counts", "F1 above that of BERT beyond noise, whatever the ECE: "
    assert advised in sentences()
    assert gained not in sentences()
    more = sentences(ls={"f1": 0.90, "ece": 0.3998})
    assert advised not in more
    assert f"{gained}LS (+10.00)." in more
    results = [scored(registry, "bert", 0.80, 0.40), scored(registry, "hs_rau", 0.82, 0.3995)]
    assert advised not in " ".join(advice(registry, results)[0].sentences)


def test_a_lead_in_f1_of_the_lowest_is_said_where_another_is_advised(registry: Registry) -> None:
    """Its ECE scatters too much to be below the baseline's."""
    results = [
        scored(registry, "bert", 0.80, 0.40),
        scored(registry, "ls", 0.80, 0.35),
        scored(registry, "hs_rau", 0.90, 0.34, noise=0.04),
    ]
    (found,) = advice(registry, results)
    assert found.method == "LS"
    assert "F1 above that of BERT beyond noise, whatever the ECE: HS-RAU (+10.00)." in found.sentences

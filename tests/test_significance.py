"""Differences between methods and their noise, against known distributions, hand-made cases and plain loops."""

import numpy as np
import pytest
from scipy import stats

from benchmark import metrics
from benchmark.resampling import resampled_scores
from benchmark.significance import false_discoveries_controlled, paired_difference, share_interval
from benchmark.specs import RESAMPLED


def some_scores(n: int = 200, n_labels: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, n_labels, n)
    logits = generator.normal(size=(n, n_labels))
    logits[np.arange(n), labels] += 1
    probabilities = metrics.softmax(logits)
    return probabilities, labels, probabilities.argmax(axis=1)


def drawn_counts(labels: np.ndarray, n_resamples: int) -> np.ndarray:
    """How often each resample (B, N) draws each row, found again by scoring rows that can be told apart: beyond the
    labels each row has a column of its own, which holds nothing but that row's probability 1 for a label that it does
    not bear. So a column's ECE is its row's share of the resample.
    """
    n_rows, n_labels = len(labels), labels.max() + 1
    probabilities = np.hstack([np.zeros((n_rows, n_labels)), np.eye(n_rows)])
    counts = n_rows * resampled_scores(probabilities, labels, labels, 10, n_resamples).label_ece[:, n_labels:]
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    return counts.round().astype(int)


def test_the_draws_are_rows_with_replacement() -> None:
    """As many as there are; each comes with the same chance, so that all but 1 / e of the rows are in a resample."""
    _, labels, _ = some_scores()
    counts = drawn_counts(labels, 500)
    assert (counts.sum(axis=1) == len(labels)).all()
    assert len(np.unique(counts, axis=0)) == 500
    assert (counts > 0).mean() == pytest.approx(1 - np.exp(-1), abs=0.01)
    assert stats.chisquare(counts.sum(axis=0)).pvalue > 0.001


def test_a_label_scores_where_its_only_row_is_drawn() -> None:
    """The counts once more, by F1: one label a row and every prediction right."""
    labels = np.random.default_rng(0).permutation(60)
    found = resampled_scores(np.eye(60)[labels], labels, labels, 10, 20)
    np.testing.assert_array_equal(found.label_f1[:, labels] > 0, drawn_counts(labels, 20) > 0)


@pytest.mark.parametrize("model", [0, 1])
def test_resampled_scores_are_those_of_the_metrics_on_the_drawn_rows(model: int) -> None:
    """For two models on the same labels, so that their draws are the same."""
    _, labels, _ = some_scores()
    probabilities = some_scores(seed=model)[0]
    predictions = probabilities.argmax(axis=1)
    found = resampled_scores(probabilities, labels, predictions, 10, 7)
    for index, counts in enumerate(drawn_counts(labels, 7)):
        rows = np.repeat(np.arange(len(labels)), counts)
        scores = metrics.classification_scores(labels[rows], predictions[rows], 5)
        ece = metrics.classwise_ece(probabilities[rows], labels[rows], 10)
        assert found.f1[index] == pytest.approx(scores["f1"])
        assert found.ece[index] == pytest.approx(ece.sum())
        np.testing.assert_allclose(found.label_f1[index], scores["per_label"]["f1"])
        np.testing.assert_allclose(found.label_ece[index], ece)
        drawn = probabilities[rows], labels[rows]
        assert found.measures.keys() == set(RESAMPLED)
        assert found.measures["top_label_ece"][index] == pytest.approx(metrics.top_label_ece(*drawn, 10))
        assert found.measures["brier"][index] == pytest.approx(metrics.brier_score(*drawn))
        assert found.measures["nll"][index] == pytest.approx(metrics.negative_log_likelihood(*drawn))


def test_other_labels_have_other_draws() -> None:
    """Those of one row more, of one label changed; not those of the same labels held as other numbers."""
    _, labels, _ = some_scores()
    counts = drawn_counts(labels, 7)
    changed = np.concatenate([(labels[:1] + 1) % 5, labels[1:]])
    assert (drawn_counts(changed, 7) != counts).any(axis=1).all()
    assert (drawn_counts(np.append(labels, 0), 7)[:, :-1] != counts).any(axis=1).all()
    np.testing.assert_array_equal(drawn_counts(labels.astype(np.int16), 7), counts)


def test_the_draws_are_those_that_stored_results_were_resampled_with() -> None:
    """Others would not pair with them."""
    assert drawn_counts(np.array([0, 1, 2, 1, 0]), 3).tolist() == [
        [1, 2, 1, 0, 1],
        [0, 0, 1, 1, 3],
        [0, 2, 1, 1, 1],
    ]


def test_the_draws_do_not_depend_on_how_many_are_held_at_once(monkeypatch) -> None:
    whole = resampled_scores(*some_scores(), 10, 6)
    monkeypatch.setattr("benchmark.resampling._WEIGHTS_AT_ONCE", 450)  # two resamples of 200 rows
    np.testing.assert_array_equal(resampled_scores(*some_scores(), 10, 6).ece, whole.ece)


def test_a_label_that_no_row_bears_scores_nothing_and_breaks_nothing() -> None:
    probabilities = np.full((4, 3), 1 / 3)
    found = resampled_scores(probabilities, np.array([0, 0, 1, 1]), np.zeros(4, dtype=int), 10, 5)
    assert (found.label_f1[:, 2] == 0).all()
    assert np.isfinite(found.ece).all()


def test_one_row_is_always_the_row_itself() -> None:
    found = resampled_scores(np.array([[0.7, 0.3]]), np.array([0]), np.array([0]), 10, 3)
    assert found.f1.tolist() == [0.5, 0.5, 0.5]
    np.testing.assert_allclose(found.ece, 0.6)


def test_a_paired_difference_of_means_has_the_textbooks_error() -> None:
    """On plain means the standard error is known: that of the paired t-test, up to the bootstrap's own noise."""
    generator = np.random.default_rng(0)
    common = generator.normal(size=400)
    first, second = common + generator.normal(size=400) / 5 + 0.02, common + generator.normal(size=400) / 5
    rows = generator.integers(0, 400, size=(2000, 400))
    found = paired_difference(
        [first.mean()], [second.mean()], first[rows].mean(axis=1)[None], second[rows].mean(axis=1)[None]
    )
    test = stats.ttest_rel(first, second)
    low, high = test.confidence_interval()
    assert found.estimate == pytest.approx(first.mean() - second.mean())
    assert found.low == pytest.approx(low, abs=0.002)
    assert found.high == pytest.approx(high, abs=0.002)
    assert found.p_value == pytest.approx(test.pvalue, rel=0.15)


@pytest.mark.parametrize("gaps", [[1.0, 3.0], [1.0, 2.0, 6.0], [0.0, 1.0, 2.0, 3.0, 9.0]])
def test_the_spread_over_seeds_is_not_underestimated(gaps: list[float]) -> None:
    """Rows that change nothing: what is left is the standard error of a mean over seeds, s / sqrt(S)."""
    still = np.repeat(np.array(gaps)[:, None], 20_000, axis=1)
    found = paired_difference(gaps, [0.0] * len(gaps), still, np.zeros_like(still))
    assert found.estimate == pytest.approx(np.mean(gaps))
    assert found.standard_error == pytest.approx(stats.sem(gaps))
    test = stats.ttest_1samp(gaps, 0.0)
    assert found.p_value == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(test.confidence_interval()))


def test_rows_that_all_seeds_share_add_to_the_spread_over_seeds_and_no_others_do() -> None:
    """Two seeds, three resamples, by hand. Seeds' gaps 1 and 3: s^2 / S = 2 / 2 = 1. Resampled gaps (0, 3, 3) and
    (2, 3, 7): means over seeds 1, 3, 5, variance 4; means over resamples 2 and 4, so residuals of the first row are
    (0, 1, -1), of the second their opposites: sum of squares 4, two degrees, interaction 2, less by 2 / 2. Shared
    4 - 1 = 3; variance 4; degrees 16 / (1 / 1 + 9 / 2).
    """
    found = paired_difference([1, 3], [0, 0], [[0, 3, 3], [2, 3, 7]], np.zeros((2, 3)))
    assert found.standard_error == pytest.approx(2)
    assert found.p_value == pytest.approx(2 * stats.t.sf(1, 16 / 5.5))


@pytest.mark.parametrize("seed_deviation", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("n_seeds", [2, 3, 5])
def test_equal_methods_are_told_apart_as_often_as_the_level_says(n_seeds: int, seed_deviation: float) -> None:
    """300 pairs of equal methods: rows that all trainings find hard, rows that one does, trainings that differ."""
    generator = np.random.default_rng(n_seeds)
    n_rows, n_resamples, n_pairs = 200, 100, 300
    drawn = generator.multinomial(n_rows, np.full(n_rows, 1 / n_rows), size=n_resamples) / n_rows
    told_apart = 0
    for _ in range(n_pairs):
        shared = generator.normal(size=(1, n_rows)) / 4
        rows = shared + generator.normal(size=(n_seeds, n_rows)) / 4
        rows = rows + seed_deviation * generator.normal(size=(n_seeds, 1))
        still = np.zeros((n_seeds, n_resamples))
        found = paired_difference(rows.mean(axis=1), np.zeros(n_seeds), rows @ drawn.T, still)
        told_apart += not found.within_noise
    assert 0.01 <= told_apart / n_pairs <= {2: 0.15, 3: 0.11, 5: 0.10}[n_seeds]


def test_no_difference_at_all_is_noise_and_a_constant_one_is_not() -> None:
    same = np.random.default_rng(0).normal(size=(1, 50))
    assert paired_difference([1.0], [1.0], same, same).p_value == 1.0
    shifted = paired_difference([1.0], [0.5], np.full((1, 50), 1.0), np.full((1, 50), 0.5))
    assert shifted.p_value == 0.0
    assert not shifted.within_noise
    assert (shifted.low, shifted.high) == (0.5, 0.5)


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(S, B\)"):
        paired_difference([1.0, 2.0], [1.0, 2.0], np.zeros((1, 5)), np.zeros((1, 5)))
    with pytest.raises(ValueError, match=r"\(S, B\)"):
        paired_difference([], [], np.zeros((0, 5)), np.zeros((0, 5)))


def test_many_comparisons_raise_the_p_values() -> None:
    """Benjamini and Hochberg by hand: sorted p times m over rank, made monotone from the top."""
    assert false_discoveries_controlled([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.04, 0.04])
    assert false_discoveries_controlled([]).tolist() == []


@pytest.mark.parametrize(("right", "rows"), [(0, 5), (61, 61), (32, 40), (1, 1)])
def test_the_interval_of_a_share_is_scipys_and_never_without_width(right: int, rows: int) -> None:
    low, high = share_interval(right / rows, rows)
    expected = stats.binomtest(right, rows).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert high - low > 0.05


def test_false_discoveries_as_scipy_controls_them() -> None:
    generator = np.random.default_rng(0)
    for size in (1, 2, 3, 30):
        for draws in (generator.random(size), generator.random(size) ** 8, np.round(generator.random(size), 1)):
            assert false_discoveries_controlled(draws) == pytest.approx(stats.false_discovery_control(draws), abs=1e-15)


def test_a_rounding_error_is_no_difference() -> None:
    still = np.full((1, 50), 0.3)
    assert paired_difference([0.1 + 0.2], [0.3], still, still).p_value == 1.0


def test_seeds_that_agree_by_luck_do_not_take_the_rows_noise_away() -> None:
    """Resampled gaps (0, 2), (2, 0): means over seeds 1 and 1, variance 0; residuals of 1 each, sum of squares 4, one
    degree: interaction 4, of a mean over two seeds 2. The seeds' own s^2 / S is 2 / 2 = 1, which is less.
    """
    found = paired_difference([1, 3], [0, 0], [[0, 2], [2, 0]], np.zeros((2, 2)))
    assert found.standard_error == pytest.approx(2**0.5)
    assert found.p_value == pytest.approx(2 * stats.t.sf(2**0.5, 1))


@pytest.mark.parametrize("gaps", [[1.0, 1.0, 1.0], [0.9, 1.0, 1.1], [-3.0, 0.0, 6.0]])
def test_no_standard_error_is_below_that_of_the_rows(gaps: list[float]) -> None:
    """Three seeds that agree to the last digit said once that 0.10 was beyond noise, where rows alone made 0.23."""
    generator = np.random.default_rng(3)
    resampled = generator.normal(size=(1, 300)) / 2 + generator.normal(size=(3, 300)) / 3
    found = paired_difference(gaps, np.zeros(3), resampled, np.zeros((3, 300)))
    by_rows = resampled.mean(axis=0).std(ddof=1)
    assert found.standard_error >= by_rows * (1 - 1e-12)
    if gaps[0] == gaps[1]:
        assert found.standard_error == pytest.approx(by_rows)
        assert found.high - found.estimate == pytest.approx(1.96 * by_rows, rel=0.01)


def test_one_resample_tells_nothing() -> None:
    found = paired_difference([1.0], [0.0], [[1.0]], [[0.0]])
    assert (found.within_noise, found.standard_error) == (True, float("inf"))

"""Metrics against hand-worked values and against independent implementations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss, precision_recall_fscore_support
from torchmetrics.functional.classification import multiclass_calibration_error

from benchmark import metrics


def random_predictions(seed: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, k)) * generator.uniform(0.1, 6)
    return metrics.softmax(logits), generator.integers(0, k, size=n)


def classwise_by_hand(probabilities: np.ndarray, labels: np.ndarray, n_bins: int) -> list[float]:
    """The paper's formula, written as loops, edges compared one by one."""
    errors = []
    for label in range(probabilities.shape[1]):
        total = 0.0
        for number in range(n_bins):
            low, high = number / n_bins, (number + 1) / n_bins
            members = [
                row
                for row in range(len(labels))
                if (low < probabilities[row, label] <= high) or (number == 0 and probabilities[row, label] == 0)
            ]
            if members:
                accuracy = np.mean([labels[row] == label for row in members])
                confidence = np.mean([probabilities[row, label] for row in members])
                total += len(members) / len(labels) * abs(accuracy - confidence)
        errors.append(total)
    return errors


def test_classwise_ece_of_two_rows_by_hand() -> None:
    errors = metrics.classwise_ece([[0.95, 0.05], [1, 0]], [0, 1], 10)
    assert errors.mean() == pytest.approx(0.475)


def test_classwise_ece_of_certain_and_always_wrong() -> None:
    assert metrics.classwise_ece([[0, 1]] * 4, [0] * 4, 10).mean() == pytest.approx(1.0)


def test_classwise_ece_counts_a_label_without_rows() -> None:
    probabilities = [[0.62, 0.25, 0.13]] * 2 + [[0.22, 0.65, 0.13]] * 2
    errors = metrics.classwise_ece(probabilities, [0, 0, 1, 1], 10)
    assert errors.mean() == pytest.approx(0.24333, abs=1e-5)
    assert errors[2] == pytest.approx(0.13)


def test_ece_by_chance_is_that_of_labels_drawn_from_the_probabilities() -> None:
    """Against a loop that draws its own labels and scores them with the metric itself."""
    generator = np.random.default_rng(1)
    probabilities = generator.dirichlet(np.full(6, 0.3), size=200)
    drawn = [
        metrics.classwise_ece(probabilities, np.array([generator.choice(6, p=row) for row in probabilities])).sum()
        for _ in range(40)
    ]
    assert metrics.ece_if_calibrated(probabilities) == pytest.approx(np.mean(drawn), abs=0.01)


def test_ece_by_chance_is_exact_where_hardly_anything_is_expected() -> None:
    """100 rows, each wrong once in 10,000 times: E|X - 0.01| = 2 * 0.01 * P(X = 0), of either label."""
    probabilities = np.tile([[0.9999, 0.0001]], (100, 1))
    assert metrics.ece_if_calibrated(probabilities) == pytest.approx(2 * 2 * 0.01 * 0.9999**100 / 100)


@pytest.mark.parametrize(("rows", "share"), [(32, 0.05), (240, 0.1), (60, 1.0)])
def test_ece_by_chance_is_known_well_on_few_rows(rows: int, share: float) -> None:
    """A single draw is off by a tenth to a quarter here."""
    generator = np.random.default_rng(2)
    probabilities = generator.dirichlet(np.full(4, share), size=rows)
    cumulative = probabilities.cumsum(axis=1)
    drawn = [
        metrics.classwise_ece(
            probabilities, np.minimum((cumulative < generator.random((rows, 1))).sum(axis=1), 3)
        ).sum()
        for _ in range(4000)
    ]
    assert metrics.ece_if_calibrated(probabilities) == pytest.approx(np.mean(drawn), rel=0.03)


def test_ece_by_chance_of_many_rows_is_not_drawn_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    probabilities = np.random.default_rng(3).dirichlet([0.2, 0.2], size=400)
    exact = metrics.ece_if_calibrated(probabilities)
    monkeypatch.setattr(metrics, "_MOST_DRAWN", 1)
    assert 0 < abs(metrics.ece_if_calibrated(probabilities) / exact - 1) < 0.3  # 20 draws


def test_ece_by_chance_is_smaller_for_surer_models_and_more_rows() -> None:
    generator = np.random.default_rng(0)
    unsure, sure = (generator.dirichlet(np.full(5, share), size=400) for share in (2.0, 0.05))
    assert metrics.ece_if_calibrated(sure) < metrics.ece_if_calibrated(unsure)
    assert metrics.ece_if_calibrated(unsure) < metrics.ece_if_calibrated(unsure[:40]) / 2
    assert metrics.ece_if_calibrated(np.eye(5)) == 0  # what is certain happens
    assert metrics.ece_if_calibrated(np.eye(5) * (1 + 1e-7)) == 0  # and what is so but for a rounding error
    assert metrics.ece_if_calibrated([[0.5, 0.5]]) == pytest.approx(1.0)  # whichever it is, both are half off


def test_adaptive_ece_does_not_split_equal_confidences() -> None:
    probabilities = [[0.8, 0.2]] * 4
    assert metrics.adaptive_ece(probabilities, [0, 0, 1, 1], 15) == pytest.approx(0.30)


def test_adaptive_ece_in_two_bins_of_equal_mass_by_hand() -> None:
    probabilities = [[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]]
    # lower half: mean confidence 0.65, one of two right; upper half: 0.85, both right
    assert metrics.adaptive_ece(probabilities, [0, 1, 0, 0], 2) == pytest.approx((0.15 + 0.15) / 2)


def test_adaptive_ece_of_rows_that_the_bins_do_not_divide_by_hand() -> None:
    """Five rows in two bins: three and two. All wrong but the last; gaps are summed within a bin."""
    confidence = np.array([0.5625, 0.625, 0.6875, 0.75, 0.875])
    probabilities = np.stack([confidence, 1 - confidence], axis=1)
    lower, upper = confidence[:3].sum(), confidence[3:].sum() - 1
    assert metrics.adaptive_ece(probabilities, [1, 1, 1, 1, 0], 2) == pytest.approx((lower + upper) / 5)


def test_adaptive_ece_keeps_a_tie_across_the_end_of_a_run_in_that_run() -> None:
    """Four rows in two bins; the second and third are equally sure, so the first bin has three."""
    probabilities = np.array([[0.6, 0.4], [0.7, 0.3], [0.7, 0.3], [0.9, 0.1]])
    expected = (abs(1 - (0.6 + 0.7 + 0.7)) + abs(1 - 0.9)) / 4
    assert metrics.adaptive_ece(probabilities, [1, 0, 1, 0], 2) == pytest.approx(expected)


def test_adaptive_ece_does_not_depend_on_the_order_of_rows() -> None:
    generator = np.random.default_rng(0)
    confidence = generator.choice([0.55, 0.7, 0.9], size=40)
    probabilities = np.stack([confidence, 1 - confidence], axis=1)
    labels = generator.integers(0, 2, size=40)
    order = generator.permutation(40)
    assert metrics.adaptive_ece(probabilities, labels, 7) == metrics.adaptive_ece(
        probabilities[order], labels[order], 7
    )


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(2, 6), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_classwise_ece_is_the_formula(seed: int, n: int, k: int, n_bins: int) -> None:
    probabilities, labels = random_predictions(seed, n, k)
    probabilities = np.round(probabilities, 1)  # onto the edges
    probabilities[:, 0] = np.clip(1 - probabilities[:, 1:].sum(axis=1), 0, 1)
    probabilities = probabilities[np.abs(probabilities.sum(axis=1) - 1) < 1e-9]
    labels = labels[: len(probabilities)]
    if len(probabilities):
        expected = classwise_by_hand(probabilities, labels, n_bins)
        np.testing.assert_allclose(metrics.classwise_ece(probabilities, labels, n_bins), expected, atol=1e-12)


@pytest.mark.parametrize("n_bins", [1, 10, 15, 20])
@pytest.mark.parametrize("seed", range(5))
def test_top_label_ece_is_torchmetrics(seed: int, n_bins: int) -> None:
    probabilities, labels = random_predictions(seed, 500, 7)
    theirs = multiclass_calibration_error(
        torch.tensor(probabilities), torch.tensor(labels), num_classes=7, n_bins=n_bins, norm="l1"
    )
    assert metrics.top_label_ece(probabilities, labels, n_bins) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_brier_and_likelihood_are_scikit_learn(seed: int) -> None:
    probabilities, labels = random_predictions(seed, 300, 5)
    classes = list(range(5))
    brier = brier_score_loss(labels, probabilities, labels=classes, scale_by_half=False)
    assert metrics.brier_score(probabilities, labels) == pytest.approx(brier)
    likelihood = log_loss(labels, probabilities, labels=classes)
    assert metrics.negative_log_likelihood(probabilities, labels) == pytest.approx(likelihood)


def test_likelihood_of_an_impossible_label_is_finite() -> None:
    assert np.isfinite(metrics.negative_log_likelihood([[1.0, 0.0]], [1]))


@pytest.mark.parametrize("seed", range(5))
def test_classification_scores_are_scikit_learn(seed: int) -> None:
    generator = np.random.default_rng(seed)
    labels, predictions = generator.integers(0, 6, 200), generator.integers(0, 8, 200)
    ours = metrics.classification_scores(labels, predictions, 9)
    precision, recall, f1, support = precision_recall_fscore_support(
        labels, predictions, labels=range(9), zero_division=0
    )
    for name, theirs in (("precision", precision), ("recall", recall), ("f1", f1)):
        np.testing.assert_allclose(ours["per_label"][name], theirs)
        assert ours[name] == pytest.approx(theirs.mean())
    np.testing.assert_array_equal(ours["per_label"]["support"], support)
    assert ours["accuracy"] == pytest.approx((labels == predictions).mean())


def test_macro_f1_divides_by_all_labels() -> None:
    scores = metrics.classification_scores([0, 1, 2, 4], [0, 1, 2, 1], 5)
    assert scores["f1"] == pytest.approx(0.5333, abs=1e-4)
    present = scores["per_label"]["support"] > 0
    assert scores["per_label"]["f1"][present].mean() == pytest.approx(0.6667, abs=1e-4)


@pytest.mark.parametrize(
    ("value", "n_bins", "expected"),
    [(0.0, 10, 0), (0.1, 10, 0), (0.3, 10, 2), (0.7, 10, 6), (0.30000000000000004, 10, 3), (1.0, 10, 9), (0.05, 20, 0)],
)
def test_bins_are_closed_on_the_right(value: float, n_bins: int, expected: int) -> None:
    assert metrics.bin_indices(np.array([value]), n_bins)[0] == expected


@pytest.mark.parametrize("n_bins", [2, 3, 7, 10, 15, 20, 100])
def test_every_edge_falls_below_and_the_next_float_above(n_bins: int) -> None:
    edges = np.arange(1, n_bins) / n_bins
    np.testing.assert_array_equal(metrics.bin_indices(edges, n_bins), np.arange(n_bins - 1))
    np.testing.assert_array_equal(metrics.bin_indices(np.nextafter(edges, 1), n_bins), np.arange(1, n_bins))


def test_reliability_bins_by_hand() -> None:
    bins = metrics.reliability_bins([[0.95, 0.05], [0.92, 0.08], [0.55, 0.45]], [0, 1, 0], 10)
    assert bins["count"].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert bins["confidence"][9] == pytest.approx(0.935)
    assert bins["accuracy"][9] == pytest.approx(0.5)
    assert np.isnan(bins["accuracy"][0])


@pytest.mark.parametrize(
    ("probabilities", "labels"),
    [
        ([[0.5, 0.6]], [0]),
        ([[float("nan"), 1.0]], [0]),
        ([[-0.1, 1.1]], [0]),
        ([[0.5, 0.5]], [2]),
        ([[0.5, 0.5]], [-1]),
        ([[0.5, 0.5]], [0.0]),
        ([[0.5, 0.5]], [0, 1]),
        ([], []),
        ([0.5, 0.5], [0, 1]),
    ],
)
def test_what_is_no_prediction_is_refused(probabilities: list, labels: list) -> None:
    for metric in (metrics.classwise_ece, metrics.top_label_ece, metrics.adaptive_ece, metrics.brier_score):
        with pytest.raises(ValueError, match=r"must|rows|labels"):
            metric(probabilities, labels)


def test_softmax_of_large_logits() -> None:
    np.testing.assert_allclose(metrics.softmax([[1000.0, 0.0], [-1000.0, -1000.0]]), [[1, 0], [0.5, 0.5]])


def test_a_near_uniform_model_hides_from_the_classwise_sum() -> None:
    """Why the harness records mean confidence and top-label ECE, too: 77 labels, always nearly uniform, mostly
    right.
    """
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(77), 40)
    logits = generator.normal(scale=0.05, size=(len(labels), 77))
    logits[np.arange(len(labels)), labels] += 1.0
    probabilities = metrics.softmax(logits)
    assert (probabilities.argmax(axis=1) == labels).mean() > 0.99
    assert probabilities.max(axis=1).mean() < 0.05
    assert metrics.top_label_ece(probabilities, labels) > 0.9
    assert metrics.classwise_ece(probabilities, labels).sum() < 2.0


# --- other measures --------------------------------------------------------------------------------------------------


FOUR = (
    np.array([[0.95, 0.05], [0.9, 0.1], [0.65, 0.35], [0.35, 0.65]]),
    np.array([0, 1, 0, 0]),
)  # right and wrong in turn


def test_the_maximum_calibration_error_by_hand() -> None:
    assert metrics.maximum_calibration_error(*FOUR, n_bins=2) == pytest.approx(abs(0.5 - 0.7875))
    assert metrics.maximum_calibration_error(*FOUR, n_bins=10) == pytest.approx(0.9)  # 0.9, wrong, alone


def test_the_debiased_error_takes_off_each_bins_variance() -> None:
    gap, variance = (0.5 - 0.7875) ** 2, 0.25 / 3
    assert metrics.debiased_calibration_error(*FOUR, n_bins=1) == pytest.approx(np.sqrt(max(gap - variance, 0)))
    one_by_one = (np.array([[0.95, 0.05], [0.3, 0.7]]), np.array([1, 1]))
    assert metrics.debiased_calibration_error(*one_by_one, n_bins=10) == 0.0
    probabilities, labels = np.array([[0.9, 0.1]] * 100), np.array([0] * 50 + [1] * 50)
    expected = np.sqrt(0.4**2 - 0.25 / 99)
    assert metrics.debiased_calibration_error(probabilities, labels) == pytest.approx(expected)
    one_more = (
        np.append(probabilities, [[0.3, 0.7]], axis=0),
        np.append(labels, 1),
    )  # alone in its bin: a row that adds 0
    assert metrics.debiased_calibration_error(*one_more) == pytest.approx(expected * np.sqrt(100 / 101))


@pytest.mark.parametrize("n", [40, 400, 4000])
def test_of_a_calibrated_model_the_debiased_error_is_smaller_than_that_of_the_bins(n: int) -> None:
    generator = np.random.default_rng(5)
    squares, plain = [], []
    for _ in range(200):
        sure = generator.uniform(0.5, 1, size=n)
        probabilities, labels = np.stack([sure, 1 - sure], axis=1), (generator.random(n) > sure).astype(int)
        squares.append(metrics.debiased_calibration_error(probabilities, labels, 10) ** 2)
        plain.append(metrics.top_label_ece(probabilities, labels, 10) ** 2)
    assert np.mean(squares) < np.mean(plain)


def test_risk_and_coverage_by_hand() -> None:
    risks = [0, 1 / 2, (0 + 1 + 0.5) / 3, 2 / 4]  # the two at 0.65 are one right, one wrong: half each
    assert metrics.area_under_risk_coverage(*FOUR) == pytest.approx(np.mean(risks))
    assert metrics.risk_at_coverage(*FOUR, coverage=0.5) == pytest.approx(0.5)
    assert metrics.risk_at_coverage(*FOUR, coverage=0.25) == 0
    assert metrics.risk_at_coverage(*FOUR, coverage=0.01) == 0
    assert metrics.risk_at_coverage(*FOUR, coverage=1.0) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="coverage"):
        metrics.risk_at_coverage(*FOUR, coverage=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_area_does_not_depend_on_the_order_of_rows(seed: int) -> None:
    generator = np.random.default_rng(seed)
    probabilities = np.round(generator.dirichlet(np.ones(3), size=60), 1)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    labels = generator.integers(0, 3, size=60)
    order = generator.permutation(60)
    first = metrics.area_under_risk_coverage(probabilities, labels)
    assert metrics.area_under_risk_coverage(probabilities[order], labels[order]) == pytest.approx(first)


def test_the_sum_over_labels_cannot_see_a_model_that_says_nothing() -> None:
    """77 labels, all probabilities near 1/77: right every time and never sure, which the class-wise sum calls well
    calibrated beside a model that is right nine times in ten and nearly as sure.
    """
    generator = np.random.default_rng(0)
    labels = np.arange(77).repeat(40)
    logits = 0.05 * np.eye(77)[labels]
    vague = metrics.softmax(logits)
    sure = metrics.softmax(8 * np.eye(77)[np.where(generator.random(len(labels)) < 0.9, labels, (labels + 1) % 77)])
    assert (vague.argmax(axis=1) == labels).all()
    assert metrics.top_label_ece(vague, labels) > 0.98
    assert metrics.classwise_ece(vague, labels).sum() < 1e-6
    assert metrics.classwise_ece(sure, labels).sum() > metrics.classwise_ece(vague, labels).sum()
    assert metrics.top_label_ece(sure, labels) < 0.1


def test_a_rounding_of_the_coverage_leaves_no_row_out() -> None:
    """29 of 100 rows, the last of them wrong; 0.29 times 100 is 28.999... in floating point."""
    sure = np.linspace(0.99, 0.6, 100)
    p = np.stack([sure, 1 - sure], axis=1)
    assert metrics.risk_at_coverage(p, np.array([0] * 28 + [1] * 72), 0.29) == pytest.approx(1 / 29)


def test_of_two_models_equally_far_from_calibrated_the_surer_one_scores_lower_on_few_rows() -> None:
    """Why the documents say so: labels are drawn from the softmax of logits that temperatures then sharpen or blur."""
    generator = np.random.default_rng(0)

    def drawn(rows: int) -> tuple[np.ndarray, np.ndarray]:
        logits = generator.normal(size=(rows, 64))
        logits[np.arange(rows), generator.integers(64, size=rows)] += generator.normal(7, 2, size=rows)
        below = metrics.softmax(logits).cumsum(axis=1) < generator.random((rows, 1))
        return logits, np.minimum(below.sum(axis=1), 63)

    def ece(temperature: float, logits: np.ndarray, labels: np.ndarray) -> float:
        return float(100 * metrics.classwise_ece(metrics.softmax(logits / temperature), labels).sum())

    many, few = drawn(50_000), [drawn(1_000) for _ in range(5)]
    sure, unsure = 0.75, 1.2
    assert ece(sure, *many) > ece(unsure, *many) - 0.5
    assert np.mean([ece(sure, *rows) - ece(unsure, *rows) for rows in few]) < -2

"""Calibrators beyond temperature scaling: against hand-worked values, other libraries and what made the data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from benchmark.calibrators import (
    fit,
    fit_beta,
    fit_dirichlet,
    fit_histogram,
    fit_isotonic,
    fit_temperature,
    fit_vector_scaling,
)
from benchmark.metrics import negative_log_likelihood, softmax
from benchmark.specs import (
    BetaCalibration,
    Calibrator,
    DirichletCalibration,
    HistogramBinning,
    IsotonicRegression,
    TemperatureScaling,
    VectorScaling,
)

SPECS: dict[str, Calibrator] = {
    "vector": VectorScaling(kind="vector", least_gain=1e-9),
    "dirichlet": DirichletCalibration(kind="dirichlet", off_diagonal=10.0, intercept=1.0),
    "beta": BetaCalibration(kind="beta"),
    "isotonic": IsotonicRegression(kind="isotonic"),
    "histogram": HistogramBinning(kind="histogram", bins=15),
}
by_kind = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def drawn(probabilities: np.ndarray, seed: int = 0) -> np.ndarray:
    """A label for each row, drawn from its probabilities."""
    draws = np.random.default_rng(seed).random((len(probabilities), 1))
    return np.minimum((probabilities.cumsum(axis=1) < draws).sum(axis=1), probabilities.shape[1] - 1)


def miscalibrated(n: int = 6000, k: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits whose true probabilities are those of logits * (0.4, 0.6, ...) + (0, 0.3, ...), labels, the true ones."""
    logits = 3 * np.random.default_rng(seed).normal(size=(n, k))
    true = softmax(logits * (0.4 + 0.2 * np.arange(k)) + 0.3 * np.arange(k))
    return logits, drawn(true, seed + 1), true


@pytest.mark.parametrize("kind", ["isotonic", "histogram"])
def test_of_a_share_of_0_a_millionth_of_the_softmax_is_left(kind: str) -> None:
    """No validation row has the third label."""
    logits, _, _ = miscalibrated(n=300, k=3)
    labels = np.random.default_rng(0).integers(0, 2, size=300)
    found = fit(SPECS[kind], logits, labels).probabilities(logits[:20])
    np.testing.assert_allclose(found[:, 2], 1e-6 * softmax(logits[:20])[:, 2], rtol=1e-6)


def test_a_calibrator_is_fitted_with_the_settings_that_are_declared() -> None:
    logits, labels, _ = miscalibrated(n=300)
    scores = logits[:50]
    bounded = TemperatureScaling(kind="temperature", lowest=0.3, highest=0.5)
    assert fit(bounded, logits, labels).temperature == pytest.approx(fit_temperature(logits, labels, 0.3, 0.5))
    assert fit(bounded, logits, labels).at_bound
    assert fit_temperature(logits, labels, 0.01, 100.0) > 0.5
    factor, offset = fit_vector_scaling(logits, labels, 1e-2)
    found = fit(VectorScaling(kind="vector", least_gain=1e-2), logits, labels).probabilities(scores)
    np.testing.assert_allclose(found, softmax(factor * scores + offset))
    matrix, shift = fit_dirichlet(logits, labels, off_diagonal=50.0, intercept=0.5)
    declared = DirichletCalibration(kind="dirichlet", off_diagonal=50.0, intercept=0.5)
    found = fit(declared, logits, labels).probabilities(scores)
    np.testing.assert_allclose(found, softmax(np.log(softmax(scores)) @ matrix.T + shift), rtol=1e-6)
    swapped, _ = fit_dirichlet(logits, labels, off_diagonal=0.5, intercept=50.0)
    assert np.abs(swapped - matrix).max() > 0.01


def test_vector_scaling_finds_the_factors_that_made_the_labels() -> None:
    logits, labels, true = miscalibrated(60_000)
    factor, offset = fit_vector_scaling(logits, labels, 1e-9)
    assert factor == pytest.approx([0.4, 0.6, 0.8, 1.0], abs=0.03)
    assert offset - offset[0] == pytest.approx([0, 0.3, 0.6, 0.9], abs=0.05)
    assert np.abs(softmax(factor * logits + offset) - true).mean() < 0.01


def test_vector_scaling_ends_at_the_optimum_where_rows_are_few() -> None:
    """Three rows a label: the validation likelihood of 1e-9 is that of 1e-12; one of 1e-3 ends before it."""
    logits, labels, _ = miscalibrated(60, k=20)

    def likelihood(least_gain: float) -> float:
        factor, offset = fit_vector_scaling(logits, labels, least_gain)
        return negative_log_likelihood(softmax(factor * logits + offset), labels)

    assert likelihood(1e-9) == pytest.approx(likelihood(1e-12), abs=1e-4)
    assert likelihood(1e-3) > likelihood(1e-9) + 1e-4


def test_dirichlet_calibration_finds_the_matrix_that_made_the_labels() -> None:
    generator = np.random.default_rng(3)
    logits = 2 * generator.normal(size=(60_000, 3))
    matrix = np.array([[0.8, 0.3, 0.0], [0.0, 0.6, -0.2], [0.1, 0.0, 0.9]])
    log_p = np.log(softmax(logits))
    true = softmax(log_p @ matrix.T + np.array([0.0, 0.4, -0.4]))
    found, offset = fit_dirichlet(logits, drawn(true), 0.0, 0.0)
    assert np.abs(softmax(log_p @ found.T + offset) - true).mean() < 0.01


def test_dirichlet_weights_pull_to_a_diagonal_without_an_offset() -> None:
    logits, labels, _ = miscalibrated(500)
    matrix, offset = fit_dirichlet(logits, labels, 1e6, 1e6)
    assert np.abs(matrix - np.diag(np.diag(matrix))).max() < 1e-3
    assert np.abs(offset).max() < 1e-3
    free, _ = fit_dirichlet(logits, labels, 0.0, 0.0)
    assert np.abs(free - np.diag(np.diag(free))).max() > 0.05


def test_beta_calibration_is_a_logistic_regression_on_two_logarithms() -> None:
    generator = np.random.default_rng(1)
    p = generator.beta(2, 3, size=5000)
    right = generator.random(5000) < 1 / (1 + np.exp(-(0.5 * np.log(p) - 1.5 * np.log(1 - p) + 0.3)))
    parts = np.stack([np.log(p), -np.log(1 - p)], axis=1)
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(parts, right)
    grid = np.linspace(0.01, 0.99, 50)
    expected = other.predict_proba(np.stack([np.log(grid), -np.log(1 - grid)], axis=1))[:, 1]
    assert fit_beta(p, right)(grid) == pytest.approx(expected, abs=2e-3)


def test_beta_calibration_never_turns_the_order_round() -> None:
    p = np.linspace(0.05, 0.95, 40)
    mapped = fit_beta(p, p < 0.5)(p)  # the wrong way round: the best that is left is flat
    assert np.all(np.diff(mapped) >= -1e-9)


def test_isotonic_regression_by_hand() -> None:
    mapped = fit_isotonic([0.1, 0.2, 0.3, 0.4], [False, True, False, True])
    assert mapped(np.array([0.0, 0.1, 0.2, 0.3, 0.4, 1.0])) == pytest.approx([0, 0, 0.5, 0.5, 1, 1])


def test_histogram_binning_by_hand() -> None:
    mapped = fit_histogram([0.1, 0.2, 0.6, 0.7, 0.75], [False, True, True, True, False], bins=2)
    assert mapped(np.array([0.0, 0.5, 0.51, 1.0])) == pytest.approx([0.5, 0.5, 2 / 3, 2 / 3])
    empty = fit_histogram([0.1], [True], bins=10)
    assert empty(np.array([0.05, 0.95])) == pytest.approx([1.0, 0.95])


@by_kind
def test_they_lower_the_likelihood_of_fresh_rows(spec: Calibrator) -> None:
    logits, labels, _ = miscalibrated(4000)
    fresh, fresh_labels, _ = miscalibrated(4000, seed=9)
    before = negative_log_likelihood(softmax(fresh), fresh_labels)
    after = negative_log_likelihood(fit(spec, logits, labels).probabilities(fresh), fresh_labels)
    assert after < before - 0.1


@by_kind
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 30), k=st.integers(2, 5), scale=st.sampled_from([0.0, 1.0, 200.0]))
def test_whatever_comes_in_probabilities_come_out(spec: Calibrator, seed: int, n: int, k: int, scale: float) -> None:
    """Labels without a row, rows that are all right, logits that are all equal or huge."""
    generator = np.random.default_rng(seed)
    logits, labels = scale * generator.normal(size=(n, k)), generator.integers(0, k, size=n)
    found = fit(spec, logits, labels).probabilities(scale * generator.normal(size=(7, k)))
    assert found.shape == (7, k)
    assert found.min() >= 0
    assert found.sum(axis=1) == pytest.approx(np.ones(7))


@pytest.mark.parametrize("kind", ["isotonic", "histogram"])
def test_labels_of_one_share_keep_the_order_of_their_logits(kind: str) -> None:
    logits = np.array([[4.0, 3.9, 0.0], [3.9, 4.0, 0.0], [0.0, 0.0, 4.0]] * 4)
    labels = np.array([1, 0, 2] * 4)  # either of two labels, the other way round: both get one share
    found = fit(SPECS[kind], logits, labels).probabilities(np.array([[4.0, 3.9, 0.0], [3.9, 4.0, 0.0]]))
    assert found[0, :2] == pytest.approx([0.5, 0.5], abs=1e-5)
    assert found.argmax(axis=1).tolist() == [0, 1]
    assert np.all(found > 0)


@by_kind
def test_wrong_arrays_are_refused(spec: Calibrator) -> None:
    for logits, labels in (([[1.0, 2.0]], [2]), ([[np.nan, 1.0]], [0]), ([1.0, 2.0], [0]), ([[1.0, 2.0]], [0, 1])):
        with pytest.raises(ValueError, match=r"labels|finite"):
            fit(spec, logits, labels)

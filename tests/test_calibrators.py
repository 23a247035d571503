"""Temperature scaling: against a grid search, and where no finite temperature is best."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.calibrators import at_bound, fit_temperature
from benchmark.calibrators.temperature import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from benchmark.metrics import negative_log_likelihood, softmax


def likelihood(logits: np.ndarray, labels: np.ndarray, temperature: float) -> float:
    return negative_log_likelihood(softmax(np.asarray(logits) / temperature), labels)


def overconfident(seed: int, n: int = 400, k: int = 6) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, k))
    probabilities = softmax(logits)
    labels = np.array([generator.choice(k, p=row) for row in probabilities])
    return (logits * 3.0).astype(np.float32), labels


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_the_best_of_a_fine_grid(seed: int) -> None:
    logits, labels = overconfident(seed)
    fitted = fit_temperature(logits, labels)
    grid = np.geomspace(0.05, 50, 2000)
    best = grid[np.argmin([likelihood(logits, labels, value) for value in grid])]
    assert fitted == pytest.approx(best, rel=5e-3)
    assert 2.0 < fitted < 4.5  # the logits were made three times too large
    assert not at_bound(fitted)


@pytest.mark.parametrize("labels", [[1, 0], [0, 1]])
def test_all_wrong_and_all_right_end_at_a_bound(labels: list[int]) -> None:
    logits = np.array([[5.0, 0.0], [0.0, 5.0]])
    fitted = fit_temperature(logits, labels)
    assert fitted == (HIGHEST_TEMPERATURE if labels == [1, 0] else LOWEST_TEMPERATURE)
    assert at_bound(fitted)
    assert likelihood(logits, labels, fitted) <= likelihood(logits, labels, 1.0) + 1e-6


def test_one_row_that_is_right_is_made_as_sure_as_may_be() -> None:
    assert fit_temperature([[5.0, 0.0]], [0]) == LOWEST_TEMPERATURE


@pytest.mark.parametrize(("lowest", "highest"), [(-1, 5), (5, 1), (0, 100), (float("nan"), 3), (1, float("inf"))])
def test_impossible_bounds_are_refused(lowest: float, highest: float) -> None:
    with pytest.raises(ValueError, match="bounds of a temperature must be 0 < lowest < highest"):
        fit_temperature(np.eye(3), [0, 1, 2], lowest, highest)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 5), st.floats(1e-3, 1e3))
@settings(max_examples=80, deadline=None)
def test_never_worse_than_no_scaling_and_never_another_prediction(seed: int, n: int, k: int, scale: float) -> None:
    generator = np.random.default_rng(seed)
    logits = (generator.normal(size=(n, k)) * scale).astype(np.float32)
    labels = generator.integers(0, k, size=n)
    fitted = fit_temperature(logits, labels)
    assert LOWEST_TEMPERATURE <= fitted <= HIGHEST_TEMPERATURE
    assert likelihood(logits, labels, fitted) <= likelihood(logits, labels, 1.0) + 1e-6
    np.testing.assert_array_equal((logits.astype(np.float64) / fitted).argmax(axis=1), logits.argmax(axis=1))


def test_bounds_can_be_chosen() -> None:
    assert fit_temperature([[5.0, 0.0]], [1], highest=4.0) == 4.0


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        ([[np.nan, 0.0]], [0]),
        ([[np.inf, 0.0]], [0]),
        ([[1.0, 0.0]], [2]),
        ([[1.0, 0.0]], [0.5]),
        ([1.0, 0.0], [0, 1]),
        ([], []),
    ],
)
def test_what_are_no_logits_is_refused(logits: list, labels: list) -> None:
    with pytest.raises(ValueError, match="must be"):
        fit_temperature(logits, labels)

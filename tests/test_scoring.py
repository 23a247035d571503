"""From logits to scores: a pure function; temperature scaling sees validation labels only and changes no prediction."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark import metrics
from benchmark.calibrators import fit, fit_temperature
from benchmark.data import corrupt_labels
from benchmark.resampling import resampled_scores
from benchmark.scoring import score as score_with
from benchmark.specs import SCORING_VERSION, TemperatureScaling, VectorScaling, ViewSpec
from benchmark.store import Logits, ViewRecord
from tests.results import made_data, made_logits

SCALED = TemperatureScaling(kind="temperature", lowest=0.01, highest=100.0)


def view(
    split: str = "test", calibrator: TemperatureScaling | None = None, ece_bins: int = 10, resamples: int = 20
) -> ViewSpec:
    return ViewSpec(
        scoring_version=SCORING_VERSION,
        split=split,
        calibrator=calibrator,
        ece_bins=ece_bins,
        resamples=resamples,
        rare_labels=2,
    )


def score(view: ViewSpec, logits: Logits) -> ViewRecord:
    return score_with(view, logits, made_data(logits.test_logits.shape[1]))


def test_scoring_is_a_pure_function() -> None:
    assert score(view(), made_logits(0)) == score(view(), made_logits(0))


@pytest.mark.parametrize("seed", range(5))
def test_temperature_scaling_keeps_every_prediction(seed: int) -> None:
    logits = made_logits(seed)
    plain, scaled = score(view(), logits), score(view(calibrator=SCALED), logits)
    for name in ("accuracy", "precision", "recall", "f1"):
        assert plain.scores[name] == scaled.scores[name]
    for name in ("precision", "recall", "f1", "support"):
        assert getattr(plain.per_label, name) == getattr(scaled.per_label, name)
    assert scaled.scores["nll"] < plain.scores["nll"]
    assert scaled.temperature > 1
    assert scaled.at_bound is False


def test_predictions_stay_even_where_probabilities_become_equal() -> None:
    """Two logits that differ have the same probability; the prediction is still the second, the higher one."""
    logits = made_logits(0, n_labels=3)
    close = np.tile(np.array([[1e-20, 2e-20, -1.0]], np.float32), (60, 1))
    assert len(set(metrics.softmax(close[:1] / 100)[0])) == 2
    wrong = np.full(60, 2)
    tied = replace(
        logits, validation_logits=close, validation_labels=wrong, test_logits=close, test_labels=np.ones(60, int)
    )
    scaled = score(view(calibrator=SCALED), tied)
    assert scaled.temperature == 100.0
    assert scaled.at_bound is True
    assert scaled.scores["accuracy"] == 1.0


def test_under_label_noise_a_calibrator_is_fitted_on_the_noisy_or_on_the_clean_labels() -> None:
    """What is scored are the test rows, whose labels are never noisy, or the validation rows as they were trained."""
    clean = made_logits(0)
    noisy = replace(clean, validation_labels=corrupt_labels(clean.validation_labels, 0.5, 6, seed=3))
    on_clean = SCALED.model_copy(update={"validation_labels": "clean"})
    data, right = made_data(6), clean.validation_labels
    found = score_with(view(calibrator=on_clean), noisy, data, right)
    expected = score(view(calibrator=SCALED), clean)
    assert (found.temperature, found.scores) == (expected.temperature, expected.scores)
    as_trained = score_with(view(calibrator=SCALED), noisy, data, right)
    assert as_trained == score(view(calibrator=SCALED), noisy)
    assert as_trained.temperature > found.temperature
    of_validation = score_with(view("validation", on_clean), noisy, data, right)
    temperature = fit_temperature(noisy.validation_logits, right, SCALED.lowest, SCALED.highest)
    assert of_validation.temperature == temperature
    probabilities = metrics.softmax(noisy.validation_logits / temperature)
    assert of_validation.scores["nll"] == pytest.approx(
        metrics.negative_log_likelihood(probabilities, noisy.validation_labels)
    )
    assert score_with(view(calibrator=on_clean), clean, data).scores == expected.scores


def test_the_temperature_is_fitted_on_validation_labels_only() -> None:
    logits = made_logits(0)
    fitted = score(view(calibrator=SCALED), logits).temperature
    other_test = replace(logits, test_labels=(logits.test_labels + 1) % 6, test_logits=-logits.test_logits)
    assert score(view(calibrator=SCALED), other_test).temperature == fitted
    other_validation = replace(logits, validation_labels=(logits.validation_labels + 1) % 6)
    assert score(view(calibrator=SCALED), other_validation).temperature != fitted


def test_splits_are_scored_on_their_own_labels() -> None:
    logits = made_logits(1)
    expected = (logits.validation_logits.argmax(axis=1) == logits.validation_labels).mean()
    assert score(view(split="validation"), logits).scores["accuracy"] == pytest.approx(expected)


def test_labels_without_rows_are_counted_and_score_zero() -> None:
    logits = made_logits(0)
    fewer = replace(logits, test_labels=np.minimum(logits.test_labels, 3))
    scored = score(view(), fewer)
    assert scored.labels_without_rows == 2
    assert scored.per_label.support[4:] == [0, 0]
    assert list(scored.per_label.recall[4:]) == [0.0, 0.0]
    assert scored.scores["recall"] == pytest.approx(sum(scored.per_label.recall) / 6)


def test_bin_counts_are_written_into_the_view() -> None:
    ten, twenty = score(view(), made_logits(0)), score(view(ece_bins=20), made_logits(0))
    assert ten.view.ece_bins == 10
    assert ten.scores["ece"] != twenty.scores["ece"]
    assert len(ten.reliability.count) == len(twenty.reliability.count) == 60
    assert ten.view_id != twenty.view_id


def test_the_share_of_wrong_rows_among_the_sure_ones() -> None:
    logits = made_logits(0)
    test = np.array([[9.0, 0, 0, 0, 0, 0], [9.0, 0, 0, 0, 0, 0], [0.1, 0, 0, 0, 0, 0]], np.float32)
    three = replace(logits, test_logits=test, test_labels=np.array([0, 1, 0]))
    assert score(view(), three).reliability.wrong_above_90 == pytest.approx(0.5)
    unsure = replace(logits, test_logits=test[2:], test_labels=np.array([0]))
    assert score(view(), unsure).reliability.wrong_above_90 is None


def test_every_score_is_its_metric_of_the_views_probabilities() -> None:
    logits = made_logits(0)
    found = score(view(ece_bins=7), logits)
    p, labels = metrics.softmax(logits.test_logits), logits.test_labels
    classified = metrics.classification_scores(labels, p.argmax(axis=1), 6)
    expected = {name: classified[name] for name in ("accuracy", "precision", "recall", "f1")} | {
        "ece": metrics.classwise_ece(p, labels, 7).sum(),
        "ece_if_calibrated": metrics.ece_if_calibrated(p, 7),
        "top_label_ece": metrics.top_label_ece(p, labels, 7),
        "adaptive_ece": metrics.adaptive_ece(p, labels, 7),
        "brier": metrics.brier_score(p, labels),
        "nll": metrics.negative_log_likelihood(p, labels),
        "mce": metrics.maximum_calibration_error(p, labels, 7),
        "debiased_ce": metrics.debiased_calibration_error(p, labels, 7),
        "aurc": metrics.area_under_risk_coverage(p, labels),
        "risk_at_80": metrics.risk_at_coverage(p, labels, 0.8),
        "confidence": p.max(axis=1).mean(),
    }
    assert len(set(expected.values())) == len(expected)  # or a swap of two would go unseen
    assert found.scores == pytest.approx(expected)
    for name in ("precision", "recall", "f1", "support"):
        assert list(getattr(found.per_label, name)) == classified["per_label"][name].tolist()


def test_a_calibrator_that_moves_the_arg_max_is_scored_by_its_own_predictions() -> None:
    logits, vector = made_logits(0), VectorScaling(kind="vector", least_gain=1e-9)
    fitted = fit(vector, logits.validation_logits, logits.validation_labels)
    predictions = fitted.probabilities(logits.test_logits.astype(np.float64)).argmax(axis=1)
    assert (predictions != logits.test_logits.argmax(axis=1)).any()
    found = score(view(calibrator=vector), logits)
    expected = metrics.classification_scores(logits.test_labels, predictions, 6)
    assert (found.scores["accuracy"], found.scores["f1"]) == (expected["accuracy"], expected["f1"])


@pytest.mark.parametrize("calibrator", [None, SCALED, VectorScaling(kind="vector", least_gain=1e-9)])
def test_what_is_resampled_are_the_views_own_probabilities_in_its_own_bins(
    calibrator: TemperatureScaling | VectorScaling | None,
) -> None:
    logits = made_logits(0)
    found = score(view(calibrator=calibrator, ece_bins=7), logits).resampled
    p = metrics.softmax(logits.test_logits.astype(np.float64))
    if calibrator is not None:
        fitted = fit(calibrator, logits.validation_logits, logits.validation_labels)
        p = fitted.probabilities(logits.test_logits.astype(np.float64))
    expected = resampled_scores(p, logits.test_labels, p.argmax(axis=1), 7, 20)
    assert (list(found.f1), list(found.ece)) == (pytest.approx(expected.f1), pytest.approx(expected.ece))
    assert found.measures.keys() == expected.measures.keys() == {"top_label_ece", "brier", "nll"}
    for name, draws in expected.measures.items():
        assert list(found.measures[name]) == pytest.approx(draws, rel=1e-6)
    assert len({tuple(draws) for draws in found.measures.values()}) == 3


def test_the_rarest_labels_are_resampled_each_with_its_own_scores() -> None:
    logits = made_logits(0)
    found = score(view(), logits).resampled  # of the two rarest labels, which are the last ones
    p = metrics.softmax(logits.test_logits)
    expected = resampled_scores(p, logits.test_labels, p.argmax(axis=1), 10, 20)
    assert (list(found.f1), list(found.ece)) == (pytest.approx(expected.f1), pytest.approx(expected.ece))
    assert [rare.label for rare in found.rare_labels] == [5, 4]
    for rare in found.rare_labels:
        assert list(rare.f1) == pytest.approx(expected.label_f1[:, rare.label])
        assert list(rare.ece) == pytest.approx(expected.label_ece[:, rare.label])

"""From stored logits to the scores of a view: a pure function, without torch."""

import traceback
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from benchmark import metrics
from benchmark.calibrators import fit
from benchmark.errors import UserError, first_line
from benchmark.resampling import resampled_scores
from benchmark.specs import DeepEnsemble, McDropout, PostHoc, ViewSpec, identity
from benchmark.store import (
    RELIABILITY_BINS,
    DataRecord,
    Logits,
    PerLabel,
    Reliability,
    ResampledLabel,
    ResampledScores,
    ViewRecord,
    finite_or_none,
)


def score(view: ViewSpec, logits: Logits, data: DataRecord, clean: NDArray[np.int64] | None = None) -> ViewRecord:
    """All scores of one view. ``data`` says which labels are the rarest, ``clean`` (N,) what the validation labels were
    before any was changed (None: none was).

    A calibrator is fitted on the validation rows only. Under none, and under a temperature, predictions are the arg
    max of the raw logits, so that accuracy, precision, recall and F1 are exactly the same; other calibrators may move
    it. Passes with dropout are taken from the stored ones; the logits of an ensemble are those of the whole ensemble.
    """
    raw, labels = _split(view, logits)
    calibrator = None
    if isinstance(view.calibrator, McDropout):
        raw = logits.mc_dropout[view.calibrator.passes]
    elif view.calibrator is not None and not isinstance(view.calibrator, DeepEnsemble):
        calibrator = fit(view.calibrator, logits.validation_logits, _fitted_on(view.calibrator, logits, clean))
    scores = raw.astype(np.float64)
    probabilities = metrics.softmax(scores) if calibrator is None else calibrator.probabilities(scores)
    keeps_order = calibrator is None or calibrator.temperature is not None
    predictions = (raw if keeps_order else probabilities).argmax(axis=1)
    n_labels = raw.shape[1]
    classified = metrics.classification_scores(labels, predictions, n_labels)
    per_label = classified["per_label"]
    label_ece = metrics.classwise_ece(probabilities, labels, view.ece_bins)
    return ViewRecord(
        view_id=identity(view),
        view=view,
        temperature=calibrator.temperature if calibrator else None,
        at_bound=calibrator.at_bound if calibrator else None,
        scores={
            **{name: classified[name] for name in ("accuracy", "precision", "recall", "f1")},
            "ece": float(label_ece.sum()),
            "ece_if_calibrated": metrics.ece_if_calibrated(probabilities, view.ece_bins),
            "top_label_ece": metrics.top_label_ece(probabilities, labels, view.ece_bins),
            "adaptive_ece": metrics.adaptive_ece(probabilities, labels, view.ece_bins),
            "brier": metrics.brier_score(probabilities, labels),
            "nll": metrics.negative_log_likelihood(probabilities, labels),
            "mce": metrics.maximum_calibration_error(probabilities, labels, view.ece_bins),
            "debiased_ce": metrics.debiased_calibration_error(probabilities, labels, view.ece_bins),
            "aurc": metrics.area_under_risk_coverage(probabilities, labels),
            "risk_at_80": metrics.risk_at_coverage(probabilities, labels, 0.8),
            "confidence": float(probabilities.max(axis=1).mean()),
        },
        labels_without_rows=int((per_label["support"] == 0).sum()),
        per_label=PerLabel(
            precision=per_label["precision"].tolist(),
            recall=per_label["recall"].tolist(),
            f1=per_label["f1"].tolist(),
            support=per_label["support"].tolist(),
            ece=label_ece.tolist(),
        ),
        reliability=_reliability(probabilities, labels, predictions),
        resampled=_resampled(view, data, probabilities, labels, predictions) if view.resamples else None,
    )


def score_all(
    views: Iterable[ViewSpec], logits: Logits, data: DataRecord, clean: NDArray[np.int64] | None = None
) -> tuple[list[ViewRecord], dict[str, str]]:
    """All views that can be scored (arguments as for one), and by their identity a sentence for each that cannot,
    whatever went wrong (a calibrator of the user's own, memory): what was trained is not lost by it, nor are the other
    views.
    """
    records, failures = [], {}
    for view in views:
        try:
            records.append(score(view, logits, data, clean))
        except UserError as error:
            failures[identity(view)] = str(error)
        except Exception as error:
            traceback.print_exception(error)  # a fault of the program: what it says is not enough to find it
            by = f"calibrator {view.calibrator.kind}" if view.calibrator else "no calibrator"
            failures[identity(view)] = (
                f"the {view.split} rows, {by}, could not be scored: {type(error).__name__}: {first_line(error)}"
            )
    return records, failures


def _fitted_on(calibrator: PostHoc, logits: Logits, clean: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The validation labels that the calibrator is fitted on."""
    if clean is None or calibrator.validation_labels == "as_trained":
        return logits.validation_labels
    return clean


def _split(view: ViewSpec, logits: Logits) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if view.split == "validation":
        return logits.validation_logits, logits.validation_labels
    return logits.test_logits, logits.test_labels


def _reliability(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64], predictions: NDArray[np.int64]
) -> Reliability:
    bins = metrics.reliability_bins(probabilities, labels, RELIABILITY_BINS)
    sure = probabilities.max(axis=1) > 0.9
    return Reliability(
        count=bins["count"].tolist(),
        confidence=finite_or_none(bins["confidence"]),
        accuracy=finite_or_none(bins["accuracy"]),
        wrong_above_90=float((predictions != labels)[sure].mean()) if sure.any() else None,
    )


def _resampled(
    view: ViewSpec,
    data: DataRecord,
    probabilities: NDArray[np.float64],
    labels: NDArray[np.int64],
    predictions: NDArray[np.int64],
) -> ResampledScores:
    scores = resampled_scores(probabilities, labels, predictions, view.ece_bins, view.resamples)
    ranked = [data.rarest(rank) for rank in range(1, view.rare_labels + 1)]
    return ResampledScores(
        f1=scores.f1.tolist(),
        ece=scores.ece.tolist(),
        measures={name: draws.tolist() for name, draws in scores.measures.items()},
        rare_labels=[
            ResampledLabel(label=label, f1=scores.label_f1[:, label].tolist(), ece=scores.label_ece[:, label].tolist())
            for label in ranked
            if label is not None
        ],
    )

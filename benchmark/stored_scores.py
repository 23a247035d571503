"""Scores of a stored result: made of its logits, and stored with it."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from benchmark.data import corruption_seed, original_labels
from benchmark.scoring import score_all
from benchmark.specs import OwnFunction, RunSpec, ViewSpec, identity
from benchmark.store import Logits, Result, ResultFolder


def score_and_save(
    folder: ResultFolder, result: Result, views: Iterable[ViewSpec], logits: Logits
) -> tuple[Result, list[str]]:
    """Score views of a successful result and store it with them, and with why others could not be scored; returns it,
    and a sentence for each of these.

    Calibrators of the user's own come after the others, one by one, and that one begins is stored before it does: one
    that ends the process costs no view that is before it, is named, and the next time comes last.
    """
    data, failures = result.data, list[str]()
    assert data is not None, "a successful result has data"
    plain, own = _parts(result, views)
    clean = _clean_validation_labels(result.run, logits)
    for part in [plain, *own.values()]:
        if part is not plain:
            result = folder.save(result.with_views([], {identity(view): _ended_over(view) for view in part}))
        records, failed = score_all(part, logits, data, clean)
        failures += failed.values()
        scored = result.with_views(records, failed)
        if records or scored.unscored_because != result.unscored_because:
            result = folder.save(scored)
    return result, failures


def _clean_validation_labels(run: RunSpec, logits: Logits) -> NDArray[np.int64]:
    """What they were before the run changed its share of them."""
    n_labels = logits.validation_logits.shape[1]
    return original_labels(
        logits.validation_labels, run.data.corruption, n_labels, corruption_seed(run.seed, "validation")
    )


def _parts(result: Result, views: Iterable[ViewSpec]) -> tuple[list[ViewSpec], dict[str, list[ViewSpec]]]:
    """The views without a calibrator of the user's own, and those with one, by its identity: first those that nothing
    is known against.
    """
    plain, own = list[ViewSpec](), dict[str, list[ViewSpec]]()
    for view in views:
        if isinstance(view.calibrator, OwnFunction):
            own.setdefault(identity(view.calibrator), []).append(view)
        else:
            plain.append(view)

    def has_failed(calibrator: str) -> bool:
        return any(identity(view) in result.unscored_because for view in own[calibrator])

    return plain, {calibrator: own[calibrator] for calibrator in sorted(own, key=has_failed)}


def _ended_over(view: ViewSpec) -> str:
    assert isinstance(view.calibrator, OwnFunction), "only these are stored before they are scored"
    return f"a process ended while {view.calibrator.function} was at work in it"

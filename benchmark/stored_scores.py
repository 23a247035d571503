"""Scores of a stored result: made of its logits, and stored with it."""

from collections.abc import Iterable

from benchmark.scoring import score_all
from benchmark.specs import OwnFunction, ViewSpec
from benchmark.store import Logits, Result, ResultFolder


def score_and_save(
    folder: ResultFolder, result: Result, views: Iterable[ViewSpec], logits: Logits
) -> tuple[Result, list[str]]:
    """Score views of a successful result and store it with them, and with why others could not be scored; returns it,
    and a sentence for each of these. Calibrators of the user's own come last, after the others are stored: one that
    ends the process costs no other view.
    """
    data, failures = result.data, list[str]()
    assert data is not None, "a successful result has data"
    parts: tuple[list[ViewSpec], list[ViewSpec]] = ([], [])
    for view in views:
        parts[isinstance(view.calibrator, OwnFunction)].append(view)
    for part in parts:
        records, failed = score_all(part, logits, data)
        failures += failed.values()
        scored = result.with_views(records, failed)
        if records or scored.unscored_because != result.unscored_because:
            result = folder.save(scored)
    return result, failures

"""The course of training, epoch by epoch."""

from dataclasses import dataclass

import numpy as np

from benchmark.figures.series.collecting import MethodResults
from benchmark.metrics import Array
from benchmark.specs import term_name
from benchmark.store import Result


@dataclass(frozen=True)
class Course:
    """One seed. Arrays of shape (epochs,); a term's values, before its weight, are NaN until it has joined."""

    terms: tuple[tuple[str, Array], ...]  # a term's name, its values
    accuracy: Array  # percent, on the training rows
    entropy: Array  # nats
    joined: tuple[tuple[int, tuple[str, ...]], ...]  # after which epoch, counted from 1, which terms joined
    thresholds: tuple[tuple[int, float], ...]  # from the end of which epoch on, at which entropy in nats


@dataclass(frozen=True)
class MethodCourses:
    """One method: a course for each seed, and the weight of each term in the loss."""

    method: str
    label: str
    weights: tuple[tuple[str, float], ...]
    seeds: tuple[int, ...]
    courses: tuple[Course, ...]


def training_courses(found: MethodResults) -> MethodCourses:
    """The courses of one method that has at least one result."""
    results = [scored.result for scored in found.scored]
    weights = tuple((term_name(term), term.weight) for term in results[0].run.loss)
    return MethodCourses(found.method, found.label, weights, found.seeds, tuple(_course(result) for result in results))


def _course(result: Result) -> Course:
    assert result.training is not None, "a successful result has a training"
    epochs = result.training.epochs
    joined = [(number, epoch.joined) for number, epoch in enumerate(epochs, start=1) if epoch.joined]
    return Course(
        terms=tuple(
            (term_name(term), np.array([epoch.terms[index] for epoch in epochs], dtype=float))
            for index, term in enumerate(result.run.loss)
        ),
        accuracy=np.array([100 * epoch.accuracy for epoch in epochs]),
        entropy=np.array([epoch.entropy for epoch in epochs]),
        joined=tuple((number, tuple(terms)) for number, terms in joined),
        thresholds=tuple(
            (number, about["threshold"]) for number, terms in joined for about in terms.values() if "threshold" in about
        ),
    )

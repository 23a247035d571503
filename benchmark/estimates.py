"""How long runs will take: from operation counts at first, from measured runs on the same device as soon as there are
some.
"""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass

from benchmark.declarations import Dataset, Encoder, GeneratedSource
from benchmark.specs import RunSpec
from benchmark.store import Outline

# Rough rates for a first guess, by kind of device: sustained operations a second of one training process, and seconds
# that a step takes a layer however small it is. Measured on one core of a Xeon with AMX (bfloat16), and taken from
# the peak of an H100 at a third.
_OPERATIONS_PER_SECOND = {"cpu": 1.2e11, "cuda": 2.5e14}
_SECONDS_PER_LAYER_AND_STEP = {"cpu": 0.014, "cuda": 0.0008}
_START_SECONDS = {"cpu": 8.0, "cuda": 20.0}


@dataclass(frozen=True)
class Work:
    """What a training costs: floating-point operations, and steps through layers."""

    operations: float
    layer_steps: float


def work_of(run: RunSpec, dataset: Dataset, encoder: Encoder) -> Work:
    """Operations of forward and backward over all tokens (6 per weight and token; embeddings are look-ups)."""
    size = encoder.size
    layers = run.encoder.layers or size.layers
    weights = layers * (4 * size.hidden**2 + 2 * size.hidden * size.intermediate)
    rows = _training_rows(dataset)
    tokens = rows * min(dataset.tokens_per_text, run.encoder.max_length)
    settings = run.optimisation
    return Work(
        operations=6.0 * weights * tokens * settings.epochs,
        layer_steps=float(layers * settings.epochs * -(-rows // settings.batch_size)),
    )


class Estimator:
    """Seconds that a run takes on one kind of device, alone on it."""

    def __init__(self, kind: str, device: str) -> None:
        self.kind = kind
        self.device = device
        self.factors = _Median()
        self.extras = _Median()
        self.factor = 1.0  # how long trainings take, against the first guess
        self.extra = 0.0  # seconds that a run takes beside its training: data, encoder, evaluation, scores, files

    def learn(self, results: Iterable[Outline], works: dict[str, Work]) -> None:
        """Take note of finished runs on this very device: how their time compares with the first guess."""
        for result in results:
            if result.status == "success" and result.training and result.environment.device == self.device:
                work = works.get(result.run_id)
                if work is not None:
                    self.add(work, result.training.seconds + result.training.evaluation_seconds, None)

    def add(self, work: Work, training: float, extra: float | None) -> None:
        """Take note of one measured run: seconds of its training, and those that it took beside it where that tells
        something of the next one's.
        """
        self.factor = self.factors.add(training / self.guess(work))
        if extra is not None:
            self.extra = self.extras.add(extra)

    @property
    def measured(self) -> bool:
        """Whether the estimates rest on measured runs."""
        return bool(self.factors.values)

    def seconds(self, work: Work) -> float:
        """The estimate for one run, without start-up."""
        return self.guess(work) * self.factor + self.extra

    @property
    def start_seconds(self) -> float:
        """A worker's start-up: imports and the first data set and encoder."""
        return _START_SECONDS[self.kind]

    def guess(self, work: Work) -> float:
        """Seconds of training as first guessed, whatever was measured."""
        return (
            work.operations / _OPERATIONS_PER_SECOND[self.kind]
            + work.layer_steps * _SECONDS_PER_LAYER_AND_STEP[self.kind]
        )


class _Median:
    """The median of numbers that come one by one."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, value: float) -> float:
        insort(self.values, value)
        middle = len(self.values) // 2
        return (self.values[middle] + self.values[~middle]) / 2


def _training_rows(dataset: Dataset) -> int:
    if dataset.expected is not None:
        return dataset.expected.train
    if isinstance(dataset.source, GeneratedSource):
        return dataset.source.rows["train"]
    if dataset.training_rows is not None:
        return dataset.training_rows
    return 10_000  # unknown before the files are read


def duration(seconds: float) -> str:
    """A time as a person says it: ``40 s``, ``12 min``, ``3 h 05 min``."""
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"

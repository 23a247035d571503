"""How long runs will take: from operation counts at first, from measured runs on the same device as soon as there are
some.
"""

from bisect import insort
from collections.abc import Iterable, Mapping
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
    """What a training costs: floating-point operations, and steps through layers. What else a run costs is much the
    same for all that share ``inputs``, an encoder and a data set by name.
    """

    operations: float
    layer_steps: float
    inputs: str = ""


def work_of_results(
    results: Iterable[Outline], datasets: Mapping[str, Dataset], encoders: Mapping[str, Encoder]
) -> dict[str, Work]:
    """What each finished training cost, by its id, whatever it was made for; of inputs that are declared."""
    return {
        one.run_id: work_of(one.run, datasets[one.run.data.dataset], encoders[one.run.encoder.encoder])
        for one in results
        if one.run.data.dataset in datasets and one.run.encoder.encoder in encoders
    }


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
        inputs=f"{run.encoder.encoder} {run.data.dataset}",
    )


class Estimator:
    """Seconds that a run takes on one kind of device, alone on it.

    What was measured of runs with the same inputs counts before what was measured of others, and what is measured now
    before what results at hand say: the machine may be busier, the code faster.
    """

    def __init__(self, kind: str, device: str) -> None:
        self.kind = kind
        self.device = device
        self._before = _Measured()
        self._now = _Measured()

    def learn(self, results: Iterable[Outline], works: dict[str, Work]) -> None:
        """Take note of finished runs on this very device: how their time compares with the first guess."""
        for result in results:
            if result.status == "success" and result.training and result.environment.device == self.device:
                work = works.get(result.run_id)
                if work is not None:
                    seconds = result.training.seconds + result.training.evaluation_seconds
                    self._before.add(work.inputs, seconds / self.guess(work), None)

    def add(self, work: Work, training: float, extra: float | None) -> None:
        """Take note of one run measured now: seconds of its training, and those that it took beside it where that tells
        something of the next one's.
        """
        self._now.add(work.inputs, training / self.guess(work), extra)

    @property
    def measured(self) -> bool:
        """Whether the estimates rest on measured runs."""
        return self._now.measured or self._before.measured

    def knows(self, inputs: str) -> bool:
        """Whether a run with these inputs has been measured, now or before."""
        return self.knows_now(inputs) or self._before.knows(inputs)

    def knows_now(self, inputs: str) -> bool:
        """Whether a run with these inputs has been measured now."""
        return self._now.knows(inputs)

    def factor(self, inputs: str) -> float:
        """How long trainings with these inputs take, against the first guess."""
        for measured in (self._now, self._before):
            if measured.knows(inputs):
                return measured.factor(inputs)
        return self._now.factor() if self._now.measured else self._before.factor()

    def beside(self, inputs: str) -> float:
        """Seconds that a run takes beside its training: data, encoder, evaluation, scores, files."""
        return self._now.beside(inputs)

    def seconds(self, work: Work) -> float:
        """The estimate for one run, without start-up."""
        return self.guess(work) * self.factor(work.inputs) + self.beside(work.inputs)

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


class _Measured:
    """Medians of what was measured, by inputs and over all."""

    def __init__(self) -> None:
        self._factors: dict[str, _Median] = {}
        self._extras: dict[str, _Median] = {}
        self._any_factor, self._any_extra = _Median(1.0), _Median(0.0)

    def add(self, inputs: str, factor: float, extra: float | None) -> None:
        for median in (self._any_factor, self._factors.setdefault(inputs, _Median(1.0))):
            median.add(factor)
        if extra is not None:
            for median in (self._any_extra, self._extras.setdefault(inputs, _Median(0.0))):
                median.add(extra)

    @property
    def measured(self) -> bool:
        return bool(self._factors)

    def knows(self, inputs: str) -> bool:
        return inputs in self._factors

    def factor(self, inputs: str | None = None) -> float:
        """Of these inputs, else of all; 1 where nothing was measured."""
        return self._any_factor.value if inputs is None else self._factors.get(inputs, self._any_factor).value

    def beside(self, inputs: str) -> float:
        """Of these inputs, else of all; 0 where nothing was measured."""
        return self._extras.get(inputs, self._any_extra).value


class _Median:
    """The median of numbers that come one by one; a value of its own before the first."""

    def __init__(self, before: float) -> None:
        self.value = before
        self._values: list[float] = []

    def add(self, value: float) -> None:
        insort(self._values, value)
        middle = len(self._values) // 2
        self.value = (self._values[middle] + self._values[~middle]) / 2


def _training_rows(dataset: Dataset) -> int:
    if dataset.expected is not None:
        return dataset.expected.train
    if dataset.train is not None:
        return dataset.train.rows
    if isinstance(dataset.source, GeneratedSource):
        return dataset.source.rows["train"]
    if dataset.training_rows is not None:
        return dataset.training_rows
    return 10_000  # unknown before the files are read

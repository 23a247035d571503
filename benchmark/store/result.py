"""The result of one run and seed: one strict JSON document that says what was trained, on what, how, and how it
scored.
"""

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from benchmark.specs import RESAMPLED, RunSpec, ViewSpec, identity
from benchmark.splits import SPLITS, SplitName
from benchmark.store.likeness import ResultLike
from benchmark.store.numbers import Draws, NotNegative, Number, Numbers, Whole, require_scores

SCHEMA_VERSION: Literal[4] = 4
RELIABILITY_BINS = 60
_ROUNDING = 1e-9  # of sums in another order
_SHARES = {"accuracy", "precision", "recall", "f1", "top_label_ece", "adaptive_ece", "mce", "debiased_ce", "aurc"}


class Record(BaseModel):
    """A part of a result: strict, frozen, no unknown key."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, val_json_bytes="base64")


class CorruptionRecord(Record):
    """Rows whose label was changed, asked for and done."""

    requested: NotNegative
    train_changed: Whole
    validation_changed: Whole


class DataRecord(Record):
    """The rows. ``train_label_counts`` counts the clean training labels: the low-frequency tables rank by it;
    ``remarks``: what to know of the rows before numbers made from them are trusted, in words; older results have none.
    """

    dataset: str
    origin: str
    publisher: str | None = None  # and homepage, as declared; older results have none
    fingerprint: str
    label_names: list[str]
    rows: dict[SplitName, Whole]
    train_label_counts: list[Whole]
    corruption: CorruptionRecord
    remarks: list[str] | None = None

    def rarest(self, rank: int) -> int | None:
        """The label of that rank by training count, 1 the rarest; ties by label order; None beyond the last."""
        order = sorted(range(len(self.train_label_counts)), key=lambda label: (self.train_label_counts[label], label))
        return order[rank - 1] if rank <= len(order) else None


class EncoderRecord(Record):
    """The encoder that was loaded, and whether texts shared rows."""

    encoder: str
    origin: str
    revision: str | None  # the hub's commit that was loaded, where it is known
    fingerprint: str
    architecture: str
    layers: Whole
    hidden: Whole
    parameters: Whole
    rows: Literal["packed", "padded"]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", strict=True))
class EpochRecord:
    """Means over the training rows of an epoch, dropout on; a term's over those that it acted on, none where it had not
    joined.
    """

    loss: Number
    terms: list[Number | None]
    entropy: Number
    accuracy: NotNegative
    joined: dict[str, dict[str, Number]]  # what terms joined after this epoch, and with which threshold


class TrainingRecord(Record):
    """How the training went; tokens are real ones, without padding."""

    seconds: NotNegative
    evaluation_seconds: NotNegative
    steps: Whole
    tokens: Whole
    tokens_per_second: NotNegative
    precision: str
    pieces: Whole = 1  # into how many parts a batch was cut, 1 unless memory ran out
    peak_host_bytes: Whole
    peak_device_bytes: Whole | None
    epochs: list[EpochRecord]


class PerLabel(Record):
    """One value a label, in the order of ``label_names``; fractions."""

    precision: Numbers
    recall: Numbers
    f1: Numbers
    support: list[Whole]
    ece: Numbers

    @property
    def n_labels(self) -> set[int]:
        """Of how many labels there is a value; one number where all is right."""
        return {len(values) for values in (self.precision, self.recall, self.f1, self.support, self.ece)}


_of_all_bins = Field(min_length=RELIABILITY_BINS, max_length=RELIABILITY_BINS)


class Reliability(Record):
    """Sixty equal bins of the predicted label's confidence, which add up to any number of bins that divides 60; an
    empty bin has neither mean.
    """

    count: Annotated[list[Whole], _of_all_bins]
    confidence: Annotated[list[NotNegative | None], _of_all_bins]
    accuracy: Annotated[list[NotNegative | None], _of_all_bins]
    wrong_above_90: Annotated[float, Field(ge=0, le=1)] | None  # share of wrong rows among those with confidence > 0.9


class ResampledLabel(Record):
    """The scores of one label on each resample."""

    label: Whole
    f1: Draws
    ece: Draws


class ResampledScores(Record):
    """Scores on bootstrap resamples of the rows; the same place in two results' lists is the same resample.
    ``measures``: those of ``RESAMPLED``; results from before there were such have none.
    """

    f1: Draws
    ece: Draws
    measures: dict[str, Draws] = {}
    rare_labels: list[ResampledLabel]  # the rarest first

    @model_validator(mode="after")
    def _all_on_the_same(self) -> "ResampledScores":
        lists = [self.f1, self.ece, *self.measures.values()]
        for rare in self.rare_labels:
            lists += (rare.f1, rare.ece)
        if unknown := self.measures.keys() - set(RESAMPLED):
            raise ValueError(f"{min(unknown)} is not among the scores that are resampled")
        if len(set(map(len, lists))) > 1:
            raise ValueError("not all scores are on the same resamples")
        require_scores(*lists)
        return self

    @property
    def n_resamples(self) -> int:
        return len(self.f1)


class Member(Record):
    """A run of an ensemble and the SHA-256 of the logits that it gave."""

    run_id: str
    logits: str


class ViewRecord(Record):
    """The scores of one view, fractions at full precision. ``scores["ece"]`` is the class-wise ECE summed over
    labels.
    """

    view_id: str
    view: ViewSpec
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    at_bound: bool | None
    members: list[Member] = []  # of an ensemble
    scores: dict[str, NotNegative]
    labels_without_rows: Whole
    per_label: PerLabel
    reliability: Reliability
    resampled: ResampledScores | None

    @model_validator(mode="after")
    def _consistent(self) -> "ViewRecord":
        if self.view_id != identity(self.view):
            raise ValueError("view_id is not the identity of the view")
        if (self.resampled.n_resamples if self.resampled else 0) != self.view.resamples:
            raise ValueError("there are other scores on resamples than the view asks for")
        for name, value in self._made_of_parts().items():
            if abs(value - self.scores.get(name, value)) > _ROUNDING:
                raise ValueError(f"{name} is not what the parts of it beside it add up to")
        for name in _SHARES & self.scores.keys():
            if self.scores[name] > 1 + _ROUNDING:
                raise ValueError(f"{name} is above 1, which no share is")
        return self

    def _made_of_parts(self) -> dict[str, float]:
        """The scores that follow from what stands beside them: who changes one by hand would have to change all."""
        labels = self.per_label
        n_labels, n_rows = max(len(labels.f1), 1), max(sum(labels.support), 1)
        right = sum(map(mul, labels.recall, labels.support))
        means = {name: sum(getattr(labels, name)) / n_labels for name in ("precision", "recall", "f1")}
        return means | {"ece": sum(labels.ece), "accuracy": right / n_rows}


class LogitsRecord(Record):
    """The file of logits beside the result, and the SHA-256 of its bytes; by how many passes with dropout it also holds
    probabilities.
    """

    file: str
    sha256: str
    mc_dropout: list[Whole] = []


class EnvironmentRecord(Record):
    """Code, packages and machine behind a result."""

    code_version: str
    code_commit: str | None
    code_changed: bool | None  # whether the working tree differed from that commit
    python: str
    platform: str
    packages: dict[str, str]
    device: str
    device_uuid: str | None
    threads: Whole
    finished_at: str


class Failure(Record):
    """Why a run failed: a kind, a sentence, the name of its log."""

    kind: str
    reason: str
    log: str | None


class Result(Record, ResultLike):
    """A finished or failed run. A failed one has a reason and no scores, and is never taken for done."""

    schema_version: Literal[4]
    run_id: str
    status: Literal["success", "failed"]
    run: RunSpec
    data: DataRecord | None = None
    encoder: EncoderRecord | None = None
    training: TrainingRecord | None = None
    views: list[ViewRecord] = []
    logits: LogitsRecord | None = None
    environment: EnvironmentRecord
    failure: Failure | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Result":
        self.check()
        n_labels = len(self.data.label_names) if self.data else 0
        if self.data and len(self.data.train_label_counts) != n_labels:
            raise ValueError("there is not one count of training rows for each label")
        if self.data and self.data.rows.keys() != set(SPLITS):
            raise ValueError("there are not as many numbers of rows as splits")
        if self.training and any(len(epoch.terms) != len(self.run.loss) for epoch in self.training.epochs):
            raise ValueError("there is not one value for each loss term")
        if any(view.per_label.n_labels != {n_labels} for view in self.views):
            raise ValueError("there is not one score for each label")
        return self

    @classmethod
    def failed(cls, run: RunSpec, failure: Failure, environment: EnvironmentRecord) -> "Result":
        """The result of a run that failed."""
        return cls(
            schema_version=SCHEMA_VERSION,
            run_id=identity(run),
            status="failed",
            run=run,
            environment=environment,
            failure=failure,
        )

    def with_views(self, made: Sequence[ViewRecord]) -> "Result":
        """The result with these views, too, in the place of older ones of the same identity."""
        replaced = {view.view_id for view in made}
        kept = [view for view in self.views if view.view_id not in replaced]
        return self.model_copy(update={"views": [*kept, *made]})

    def view(self, spec: ViewSpec) -> ViewRecord | None:
        """The scores of that view, if they were made."""
        wanted = identity(spec)
        return next((view for view in self.views if view.view_id == wanted), None)

    def has_all(self, specs: Iterable[ViewSpec]) -> bool:
        """Whether the run is done, with every one of the views."""
        return self.status == "success" and not self.unscored(specs)


def finite_or_none(values: Any) -> list[float | None]:
    """A list for JSON: numbers, and None where a value is not finite (the mean of an empty bin)."""
    return [float(value) if math.isfinite(value) else None for value in values]

"""The result of one run and seed: one strict JSON document that says what was trained, on what, how, and how it
scored.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from benchmark.specs import RunSpec, ViewSpec, identity
from benchmark.splits import SPLITS, SplitName
from benchmark.store.likeness import ResultLike
from benchmark.store.numbers import NotNegative, Number, Whole
from benchmark.store.record import Record
from benchmark.store.view import ViewRecord

SCHEMA_VERSION: Literal[4] = 4
_NOTHING: Mapping[str, str] = MappingProxyType({})


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


class LogitsRecord(Record):
    """The file of logits beside the result, and the SHA-256 of its bytes; by how many passes with dropout it also holds
    probabilities.
    """

    file: str
    sha256: str
    mc_dropout: list[Whole] = Field(default_factory=list)


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
    views: list[ViewRecord] = Field(default_factory=list)
    unscored_because: dict[str, str] = Field(default_factory=dict)  # by view_id: what could not be scored, and why
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
        if self.data and sum(self.data.train_label_counts) != self.data.rows["train"]:
            raise ValueError("the labels' training rows do not add up to all of them")
        if self.training and any(len(epoch.terms) != len(self.run.loss) for epoch in self.training.epochs):
            raise ValueError("there is not one value for each loss term")
        if any(view.per_label.n_labels != {n_labels} for view in self.views):
            raise ValueError("there is not one score for each label")
        for view in self.views:
            self._check_view(view)
        return self

    def _check_view(self, view: ViewRecord) -> None:
        assert self.data is not None, "views are those of a successful result"
        if sum(view.per_label.support) != self.data.rows[view.view.split]:
            raise ValueError("a view is not of as many rows as its split has")
        rare = [one.label for one in view.resampled.rare_labels] if view.resampled else []
        if rare != [self.data.rarest(rank) for rank in range(1, len(rare) + 1)]:
            raise ValueError("the labels that were resampled as the rarest are not the rarest")

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

    def with_views(self, made: Sequence[ViewRecord], unscored_because: Mapping[str, str] = _NOTHING) -> "Result":
        """The result with these views, too, in the place of older ones of the same identity; ``unscored_because``: why
        others could not be made, by their identity.
        """
        replaced = {view.view_id for view in made}
        kept = [view for view in self.views if view.view_id not in replaced]
        because = {view_id: why for view_id, why in self.unscored_because.items() if view_id not in replaced}
        return self.model_copy(update={"views": [*kept, *made], "unscored_because": {**because, **unscored_because}})

    def view(self, spec: ViewSpec) -> ViewRecord | None:
        """The scores of that view, if they were made."""
        wanted = identity(spec)
        return next((view for view in self.views if view.view_id == wanted), None)

    def has_all(self, specs: Iterable[ViewSpec]) -> bool:
        """Whether the run is done, with every one of the views."""
        return self.status == "success" and not self.unscored(specs)

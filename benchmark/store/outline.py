"""What planning needs of a result, without scores and records: a third of the time to read, a tenth of the memory."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from benchmark.specs import RunSpec
from benchmark.store.likeness import ResultLike
from benchmark.store.numbers import NotNegative
from benchmark.store.result import Failure, LogitsRecord


class _Part(BaseModel):
    """A part of an outline: what else the file holds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class OutlinedTraining(_Part):
    """How long it took."""

    seconds: NotNegative
    evaluation_seconds: NotNegative


class OutlinedResamples(_Part):
    """Which other scores than F1 and ECE were resampled."""

    measures: Annotated[frozenset[str], BeforeValidator(frozenset)] = frozenset()  # their draws are passed over


class OutlinedView(_Part):
    """Which scores there are."""

    view_id: str
    scores: dict[str, NotNegative]
    resampled: OutlinedResamples | None = None


class OutlinedData(_Part):
    """Which rows."""

    dataset: str
    fingerprint: str


class OutlinedEncoder(_Part):
    """Which one was trained."""

    encoder: str
    fingerprint: str


class OutlinedEnvironment(_Part):
    """What it ran on."""

    device: str


class Outline(_Part, ResultLike):
    """A result as planning sees it. Fields are those of ``Result``; a file may be wrong in what is passed over."""

    schema_version: Literal[4]
    run_id: str
    status: Literal["success", "failed"]
    run: RunSpec
    data: OutlinedData | None = None
    encoder: OutlinedEncoder | None = None
    training: OutlinedTraining | None = None
    views: list[OutlinedView] = []
    logits: LogitsRecord | None = None
    environment: OutlinedEnvironment
    failure: Failure | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Outline":
        self.check()
        return self

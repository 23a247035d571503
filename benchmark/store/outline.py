"""What planning needs of a result, without scores and records: a third of the time to read, a tenth of the memory."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from benchmark.specs import RunSpec, identity
from benchmark.store.result import Failure, LogitsRecord, NotNegative, Number
from benchmark.store.views import HasViews


class _Part(BaseModel):
    """A part of an outline: what else the file holds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class OutlinedTraining(_Part):
    """How long it took."""

    seconds: NotNegative
    evaluation_seconds: NotNegative


class OutlinedView(_Part):
    """Which scores there are."""

    view_id: str
    scores: dict[str, Number]


class OutlinedData(_Part):
    """Which rows."""

    fingerprint: str


class OutlinedEnvironment(_Part):
    """What it ran on."""

    device: str


class Outline(_Part, HasViews):
    """A result as planning sees it. Fields are those of ``Result``; a file may be wrong in what is passed over."""

    schema_version: Literal[3]
    run_id: str
    status: Literal["success", "failed"]
    run: RunSpec
    data: OutlinedData | None = None
    training: OutlinedTraining | None = None
    views: list[OutlinedView] = []
    logits: LogitsRecord | None = None
    environment: OutlinedEnvironment
    failure: Failure | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Outline":
        if self.run_id != identity(self.run):
            raise ValueError("run_id is not the identity of the run")
        if self.status == "success" and not (self.data and self.training and self.views):
            raise ValueError("a successful result has data, encoder, training and views")
        if (self.status == "failed") != (self.failure is not None):
            raise ValueError("a failure belongs to a failed result, and only there")
        if self.data and self.data.fingerprint != self.run.data.fingerprint:
            raise ValueError("the data are not those of the run")
        return self

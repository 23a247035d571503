"""What a scheduler and its workers say to each other: one line of JSON a message."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, Strict, TypeAdapter

from benchmark.declarations import Dataset, Encoder
from benchmark.specs import Declared, Items, RunSpec, ViewSpec

# A path, written as text in JSON.
FolderPath = Annotated[Path, Strict(False)]


class WorkerSetup(Declared):
    """The first message to a worker: where things are and what it computes on."""

    results_root: FolderPath
    profile: str
    data_folders: Items[FolderPath]
    encoder_folders: Items[FolderPath]
    built_encoders: FolderPath
    device: Literal["cpu", "cuda"]
    threads: int


class Job(Declared):
    """A run to train, with everything that it takes to do so."""

    run: RunSpec
    views: Items[ViewSpec]
    dataset: Dataset
    encoder: Encoder
    redo: bool


class Ready(Declared):
    """The worker has started and takes jobs."""

    event: Literal["ready"] = "ready"


class EpochDone(Declared):
    """So many epochs of the job are done, in so many seconds."""

    event: Literal["epoch"] = "epoch"
    done: int
    of: int
    seconds: float


class JobEnded(Declared):
    """How a job ended: trained, found done, held by another scheduler, failed (then the worker ends, too), or not at
    all, because the worker died over it.
    """

    event: Literal["ended"] = "ended"
    outcome: Literal["success", "already_done", "claimed", "failed", "died"]
    seconds: float
    summary: str = ""
    reason: str = ""
    log: str | None = None


Event = Annotated[Ready | EpochDone | JobEnded, Field(discriminator="event")]
parse_event = TypeAdapter(Event).validate_json

"""What a scheduler and its workers say to each other: one line of JSON a message."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, Strict, TypeAdapter

from benchmark.declarations import Dataset, Encoder
from benchmark.specs import Count, Declared, Items, RunSpec, ViewSpec

# A path, written as text in JSON.
FolderPath = Annotated[Path, Strict(False)]


class WorkerSetup(Declared):
    """The first message to a worker: where things are and what it computes on."""

    results_root: FolderPath
    profile: str
    data_folders: Items[FolderPath]
    encoder_folders: Items[FolderPath]
    built_encoders: FolderPath
    file_hashes: FolderPath  # a file that remembers the SHA-256 of encoders' files
    own_folder: FolderPath
    device: Literal["cpu", "cuda"]
    threads: int


class Job(Declared):
    """A run to train, with everything that it takes to do so."""

    run: RunSpec
    views: Items[ViewSpec]
    dataset: Dataset
    encoder: Encoder
    redo: bool
    pieces: Count = 1  # into how many parts a batch is cut, for memory
    summary_of: Literal["test", "validation"] = "test"  # the rows whose scores the display shows


class Ready(Declared):
    """The worker has started and takes jobs."""

    event: Literal["ready"] = "ready"


class EpochMeans(Declared):
    """Means over the training rows of an epoch, dropout on; a term's over those that it acted on, none where it had not
    joined. Numbers that are not finite are sent, too: it is not for a message to stop a run.
    """

    model_config = ConfigDict(ser_json_inf_nan="constants")

    loss: float
    terms: Items[float | None]
    entropy: float
    accuracy: float


class EpochDone(Declared):
    """So many epochs of the job are done, in so many seconds, and what was recorded of the last of them."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    event: Literal["epoch"] = "epoch"
    done: int
    of: int
    seconds: float
    means: EpochMeans | None = None


class JobEnded(Declared):
    """How a job ended: trained, found done, held by another command, failed; or not at all, because memory ran out or
    the worker died over it. After a failure or out of memory the worker ends, too, but not over a user's mistake or a
    training that diverged. A success with a reason was trained, and not all of it scored.
    """

    event: Literal["ended"] = "ended"
    outcome: Literal["success", "already_done", "claimed", "failed", "out_of_memory", "died"]
    seconds: float
    summary: str = ""
    reason: str = ""
    log: str | None = None
    over_deaths: bool = False  # failed, because workers died over it time and again
    worker_ended: bool = False  # a success, over whose scoring the worker ended
    worker_goes_on: bool = False  # after a failure that says nothing against it

    @property
    def in_words(self) -> str:
        """The reason, and where more is said of it, if anywhere."""
        return self.reason.rstrip(".") + (f" (log: {self.log})" if self.log else "")

    @property
    def was_the_last(self) -> bool:
        """Whether the worker takes no other job."""
        broken = self.outcome in ("failed", "out_of_memory", "died") and not self.worker_goes_on
        return self.worker_ended or broken


Event = Annotated[Ready | EpochDone | JobEnded, Field(discriminator="event")]
parse_event = TypeAdapter(Event).validate_json

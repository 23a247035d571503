"""What a tracker is: something that keeps a log of each run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmark.specs import RunSpec, identity, readable_name


@dataclass(frozen=True)
class TrackedRun:
    """A run whose training begins, the methods that it stands for, and the profile that asks for it."""

    run: RunSpec
    methods: tuple[str, ...]
    profile: str

    @property
    def name(self) -> str:
        """What the run is called in the tracker: as its result's file."""
        return readable_name(self.run)

    def configuration(self) -> dict[str, Any]:
        """All that decides the run, as JSON has it."""
        return {
            "run_id": identity(self.run),
            "profile": self.profile,
            "methods": list(self.methods),
            "run": self.run.model_dump(mode="json"),
        }


class RunLog(Protocol):
    """The log of one attempt at a run. Each method may raise whatever a disk or a network raises."""

    def epoch(self, done: int, numbers: Mapping[str, float]) -> None:
        """Note the numbers of the epoch that ended, the ``done``-th, by name."""

    def end(self, outcome: str, scores: Mapping[str, float]) -> None:
        """Note how the attempt ended and, after a success, the scores by name; nothing is noted after it."""


class Tracker(Protocol):
    """Where logs of runs are kept."""

    def begin(self, run: TrackedRun) -> RunLog:
        """Start the log of a run, anew where there is one of an earlier attempt."""


# Makes a tracker whose files lie in a folder of logs.
MakeTracker = Callable[[Path], Tracker]

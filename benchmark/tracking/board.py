"""Event files for TensorBoard, written by its own record writer: without torch, TensorFlow, or a thread."""

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from benchmark.tracking.tracker import TrackedRun

_PREFIX = "events.out.tfevents"  # by which TensorBoard knows its files


class Board:
    """Keeps ``tensorboard/<run>/`` in a folder of logs."""

    def __init__(self, logs: Path) -> None:
        self.folder = logs / "tensorboard"

    def begin(self, run: TrackedRun) -> "BoardLog":
        """Start the events of a run; files of earlier attempts are emptied. Were they deleted, a board that is open
        without its data server would not go on to the new one.
        """
        folder = self.folder / run.name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{_PREFIX}.*"):
            os.truncate(old, 0)
        return BoardLog(folder / f"{_PREFIX}.{time.time_ns()}.{socket.gethostname()}", run)


class BoardLog:
    """One event file. It is opened for each group of events, so that all trouble shows where it arises."""

    def __init__(self, path: Path, run: TrackedRun) -> None:
        self.path = path
        self.epochs_done = 0
        texts = {name: _as_markdown(value) for name, value in run.configuration().items()}
        self._write(
            _event(0, file_version="brain.Event:2"),
            _event(0, session_log=SessionLog(status=SessionLog.START)),  # a board that is open forgets earlier attempts
            _event(0, summary=Summary(value=[_text(f"about/{name}", text) for name, text in texts.items()])),
        )

    def epoch(self, done: int, numbers: Mapping[str, float]) -> None:
        self.epochs_done = done
        self._write(_event(done, summary=_scalars(numbers)))

    def end(self, outcome: str, scores: Mapping[str, float]) -> None:
        how = Summary(value=[_text("about/outcome", outcome)])
        self._write(
            _event(self.epochs_done, summary=_scalars(scores)),
            _event(self.epochs_done, summary=how),
        )

    def _write(self, *events: Event) -> None:
        with self.path.open("ab") as file:
            writer = RecordWriter(file)
            for event in events:
                writer.write(event.SerializeToString())


def _event(step: int, **content: Any) -> Event:
    return Event(wall_time=time.time(), step=step, **content)


def _scalars(numbers: Mapping[str, float]) -> Summary:
    return Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()])


def _text(tag: str, text: str) -> Summary.Value:
    """A text as the board's tab of texts reads it: a tensor of one string."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    return Summary.Value(
        tag=tag,
        metadata=SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text")),
        tensor=TensorProto(dtype=DT_STRING, string_val=[text.encode()], tensor_shape=shape),
    )


def _as_markdown(value: object) -> str:
    if isinstance(value, str):
        return value
    indented = json.dumps(value, indent=2).replace("\n", "\n    ")
    return f"    {indented}"

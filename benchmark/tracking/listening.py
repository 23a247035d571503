"""From what the scheduler hears to what a tracker notes."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

from benchmark.errors import first_line
from benchmark.jobs import EpochDone, EpochMeans, Job, JobEnded
from benchmark.plan import PlannedRun
from benchmark.schedule import Update
from benchmark.specs import RunSpec, identity, term_name
from benchmark.store import Result, ResultFolder
from benchmark.tracking.tracker import MakeTracker, RunLog, TrackedRun, Tracker

_SECONDS_TO_END = 120.0


@contextmanager
def listening(
    makers: Mapping[str, MakeTracker],
    folder: ResultFolder,
    plan: Sequence[PlannedRun],
    say: Callable[[str], None],
) -> Iterator[list[Callable[[Update], None]]]:
    """The listeners of the trackers, by name, that log the planned runs beside the results in ``folder``.

    A tracker that fails is switched off, which ``say`` is told. On leaving, all that was heard is noted.
    """
    methods = {planned.run_id: planned.methods for planned in plan}
    listeners = [Listener(name, make, folder, methods, say) for name, make in makers.items()]
    try:
        yield [listener.update for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()


class Listener:
    """Feeds one tracker, in a thread of its own: a disk or a network that is slow or fails holds up no run."""

    def __init__(
        self,
        name: str,
        make: MakeTracker,
        folder: ResultFolder,
        methods: Mapping[str, tuple[str, ...]],
        say: Callable[[str], None],
    ) -> None:
        self.name = name
        self.make = make
        self.folder = folder
        self.methods = methods
        self.say = say
        self.logs: dict[str, RunLog] = {}  # of runs at work, by identity
        self.updates: SimpleQueue[Update | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=f"track {name}", daemon=True)
        self.thread.start()

    def update(self, update: Update) -> None:
        """Take note of what happened on a slot; returns at once and never raises."""
        if self.thread.is_alive():
            self.updates.put(update)

    def close(self) -> None:
        """Wait until all is noted, two minutes at most; runs still at work were interrupted."""
        self.updates.put(None)
        self.thread.join(_SECONDS_TO_END)
        if self.thread.is_alive():
            self.say(f"--track {self.name} is still busy after {_SECONDS_TO_END:.0f} s; its logs may lack the end.")

    def _work(self) -> None:
        try:
            tracker = self.make(self.folder.folder / "logs")
            while (update := self.updates.get()) is not None:
                self._note(tracker, update)
            for run_id in list(self.logs):
                self._end(run_id, "interrupted", {})
        except Exception as error:  # whatever it is, it is not worth a run
            self.say(f"--track {self.name} failed and is switched off, the runs go on: {first_line(error)}")

    def _note(self, tracker: Tracker, update: Update) -> None:
        job, event = update.job, update.event
        run_id = identity(job.run)
        if event is None:
            self._end(run_id, "died", {})  # handed out again without a word of its first end
        elif isinstance(event, EpochDone):
            self._begin(tracker, run_id, job)
            if event.means is not None:
                self.logs[run_id].epoch(event.done, epoch_numbers(job.run, event.means, event.seconds))
        elif event.outcome not in ("claimed", "already_done"):
            self._ended(tracker, run_id, job, event)

    def _ended(self, tracker: Tracker, run_id: str, job: Job, event: JobEnded) -> None:
        result = self.folder.read(job.run) if event.outcome == "success" else None
        if event.outcome in ("success", "failed"):
            self._begin(tracker, run_id, job)  # one that failed before its first epoch shall be seen, too
        self._end(run_id, event.outcome, {} if result is None else scores(result))

    def _begin(self, tracker: Tracker, run_id: str, job: Job) -> None:
        """Start the log if it is not there. It never starts when the job is handed out: the run may be another
        scheduler's, which keeps its log in the same place.
        """
        if run_id not in self.logs:
            run = TrackedRun(job.run, self.methods.get(run_id, ()), self.folder.folder.name)
            self.logs[run_id] = tracker.begin(run)

    def _end(self, run_id: str, outcome: str, numbers: Mapping[str, float]) -> None:
        if log := self.logs.pop(run_id, None):
            log.end(outcome, numbers)


def epoch_numbers(run: RunSpec, means: EpochMeans, seconds: float) -> dict[str, float]:
    """What is noted of an epoch, by name: means over the training rows, terms that have joined without their weights,
    entropy in nats, accuracy as a fraction, and the seconds since the training began.
    """
    numbers = {
        "training/loss": means.loss,
        "training/entropy": means.entropy,
        "training/accuracy": means.accuracy,
        "training/seconds": seconds,
    }
    for term, value in zip(run.loss, means.terms, strict=True):
        if value is not None:
            numbers[f"terms/{term_name(term)}"] = value
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def scores(result: Result) -> dict[str, float]:
    """The scores of the result's views without a calibrator, as they are stored, by name: ``test/f1``."""
    return {
        f"{view.view.split}/{name}": value
        for view in result.views
        if view.view.calibrator is None
        for name, value in view.scores.items()
    }

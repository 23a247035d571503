"""What a person sees while runs are made: a live display on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from benchmark.durations import duration
from benchmark.estimates import Estimator, Work
from benchmark.jobs import EpochDone, JobEnded
from benchmark.schedule.pool import Update
from benchmark.specs import RunSpec, identity

_REFRESHES_PER_SECOND = 2
_SECONDS_BETWEEN_LINES = 60.0  # where there is no live display


@dataclass
class _Running:
    run_id: str
    label: str
    share: float = 0.0
    trained: float = 0.0  # seconds, at that share


@dataclass
class _Left:
    """What is left of the runs with the same inputs: how many, seconds of training as first guessed, and the runs, the
    longest last (ended ones are taken out when they come to the end).
    """

    runs: int = 0
    guess: float = 0.0
    longest_last: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """How all jobs ended. ``unscored``: those that succeeded, but for a view that could not be scored."""

    succeeded: int = 0
    already_done: int = 0
    failed: list[tuple[str, JobEnded]] = field(default_factory=list)  # label of the run, how it ended
    unscored: list[tuple[str, JobEnded]] = field(default_factory=list)
    cut_short: str = ""  # why jobs were left that nobody could do


class Display:
    """Counts and shows. Use as a context manager around the pool's work; ``update`` is the pool's listener."""

    def __init__(
        self, console: Console, works: dict[str, Work], labels: dict[str, str], estimator: Estimator, n_slots: int
    ) -> None:
        self.console = console
        self.works = works
        self.labels = labels
        self.estimator = estimator
        self.n_slots = n_slots
        self.open = dict.fromkeys(works)
        # kept up to date, not added up at every line: with thousands of runs that would take longer than the runs
        self.guesses = {run_id: estimator.guess(work) for run_id, work in works.items()}
        self.left: dict[str, _Left] = {}  # by inputs
        for run_id in sorted(works, key=lambda run_id: self.guesses[run_id]):
            left = self.left.setdefault(works[run_id].inputs, _Left())
            left.guess += self.guesses[run_id]
            left.longest_last.append(run_id)
            left.runs += 1
        self.running: dict[int, _Running] = {}
        self.warm: set[int] = set()  # slots that have ended a job
        self.held: set[str] = set()  # runs of which it was said that another command is at them
        self.outcome = Outcome()
        self.last_line = time.monotonic()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rest]}"),
        )
        self.total: TaskID = self.progress.add_task("runs", total=len(works), rest="")
        self.live = Live(self.progress, console=console, refresh_per_second=_REFRESHES_PER_SECOND)

    def __enter__(self) -> "Display":
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def update(self, update: Update) -> None:
        """Take note of what happened on a slot."""
        run_id = identity(update.job.run)
        if update.event is None:
            self.running[update.slot] = _Running(run_id, self.labels[run_id])
        elif isinstance(update.event, EpochDone):
            running = self.running[update.slot]
            running.share, running.trained = update.event.done / update.event.of, update.event.seconds
            if not self.console.is_terminal and time.monotonic() - self.last_line > _SECONDS_BETWEEN_LINES:
                self._say(f"at work {self._at_work()}")
        else:
            ended = self.running.pop(update.slot, _Running(run_id, ""))
            trained = ended.trained if ended.share == 1.0 else None  # a run that was only scored anew says nothing
            self._ended(run_id, update.event, trained, update.slot not in self.warm)
            self.warm.add(update.slot)
        self._note()

    def retired(self, reason: str) -> None:
        """Take note of a slot that is given up."""
        self.n_slots -= 1
        self._say(f"fewer   workers, {self.n_slots} left: {reason}")
        self._note()

    def _ended(self, run_id: str, event: JobEnded, trained: float | None, first: bool) -> None:
        if event.outcome == "claimed":
            if run_id not in self.held:
                self._say(f"held    {self.labels[run_id]}: another command is at it; looking again later")
            self.held.add(run_id)
            return
        if event.outcome == "died":
            self._say(f"again   {self.labels[run_id]}: {event.in_words}")
            return
        if event.outcome == "out_of_memory":
            self._say(f"again   {self.labels[run_id]}: now with batches in more pieces; {event.in_words}")
            return
        if run_id in self.open:
            del self.open[run_id]
            left = self.left[self.works[run_id].inputs]
            left.guess -= self.guesses[run_id]
            left.runs -= 1
        if event.outcome == "success":
            self.outcome.succeeded += 1
            if trained is not None:
                # a worker's first run loads data and encoder, which later ones find loaded
                beside = None if first else max(event.seconds - trained, 0.0)
                self.estimator.add(self.works[run_id], trained, beside)
            self._say(f"done    {self.labels[run_id]} in {duration(event.seconds)}: {event.summary}")
            if event.reason:
                self.outcome.unscored.append((self.labels[run_id], event))
                self._say(f"FAILED  a view of {self.labels[run_id]} (the training is kept): {event.reason}")
        elif event.outcome == "already_done":
            self.outcome.already_done += 1
            self._say(f"done    {self.labels[run_id]}: by another command")
        else:
            self.outcome.failed.append((self.labels[run_id], event))
            self._say(f"FAILED  {self.labels[run_id]}: {event.in_words}")

    def _say(self, what: str) -> None:
        count = f"{len(self.works) - len(self.open)}/{len(self.works)}"
        failed = f", {len(self.outcome.failed)} failed" if self.outcome.failed else ""
        line = f"{datetime.now():%H:%M:%S}  {count:>7}{failed}  {what}  [{self._time_left()}]"
        self.console.print(Text(line), soft_wrap=True)
        self.last_line = time.monotonic()

    def _time_left(self) -> str:
        if not self.open:
            return "nothing left"
        return f"about {duration(self.seconds_left())} left"

    def seconds_left(self) -> float:
        """Estimated time until all jobs have ended."""
        running = {one.run_id: one for one in self.running.values() if one.run_id in self.open}
        work, longest = 0.0, 0.0
        for inputs, left in self.left.items():
            if not left.runs:
                continue
            here = [one for one in running.values() if self.works[one.run_id].inputs == inputs]
            factor, beside = self._factor(inputs, here), self.estimator.beside(inputs)
            begun = [self.guesses[one.run_id] * (1 - one.share) for one in here]
            done = sum(self.guesses[one.run_id] * one.share for one in here)
            work += factor * (left.guess - done) + beside * left.runs
            longest = max(longest, factor * max([self._longest_waiting(left, running), *begun]) + beside)
        return max(work / max(self.n_slots, 1), longest)

    def _factor(self, inputs: str, running: Sequence[_Running]) -> float:
        """How long trainings with these inputs take, against the first guess; where none has ended, those at work
        tell.
        """
        begun = [one for one in running if one.share > 0]
        if self.estimator.knows_now(inputs) or not begun:
            return self.estimator.factor(inputs)
        return fmean(one.trained / (one.share * self.guesses[one.run_id]) for one in begun)

    def _longest_waiting(self, left: _Left, running: Mapping[str, _Running]) -> float:
        while left.longest_last and left.longest_last[-1] not in self.open:
            left.longest_last.pop()
        waiting = (run_id for run_id in reversed(left.longest_last) if run_id in self.open and run_id not in running)
        return self.guesses.get(next(waiting, ""), 0.0)

    def _at_work(self) -> str:
        return "; ".join(f"{running.label} {running.share:.0%}" for running in self.running.values())

    def _note(self) -> None:
        """Hand the live display its words; it draws from a thread of its own, which must not look at what changes."""
        if not self.console.is_terminal:
            return
        failed = f"[red]{len(self.outcome.failed)} failed[/red]  " if self.outcome.failed else ""
        # what stands in brackets in a label is no markup
        rest = f"{failed}{len(self.running)} running  {self._time_left()}  {escape(self._at_work())}"
        self.progress.update(self.total, completed=len(self.works) - len(self.open), rest=rest)


def run_labels(runs: Iterable[tuple[RunSpec, tuple[str, ...], str]]) -> dict[str, str]:
    """A short name for each run, from its methods and the settings that tell it from another, where a search varies
    some: ``hs_rau on tnews, 5 % noise, albert_tiny, seed 0``.
    """
    labels = {}
    for run, methods, settings in runs:
        varied = f" ({settings})" if settings else ""
        noise = f", {run.data.corruption:.0%} noise" if run.data.corruption else ""
        labels[identity(run)] = (
            f"{'+'.join(methods)}{varied} on {run.data.dataset}{noise}, {run.encoder.encoder}, seed {run.seed}"
        )
    return labels

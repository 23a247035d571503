"""A worker process: takes jobs line by line, trains each, writes its result. Started by the scheduler, ends when it
does.
"""

import contextlib
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

import torch

from benchmark import own_code
from benchmark.claimed_jobs import claimed
from benchmark.environment import code_state, cpu_name, describe_environment
from benchmark.errors import UserError, first_line
from benchmark.jobs import EpochDone, EpochMeans, Job, JobEnded, Ready, WorkerSetup
from benchmark.specs import Declared, McDropout, identity
from benchmark.store import (
    SCHEMA_VERSION,
    EnvironmentRecord,
    EpochRecord,
    Failure,
    Logits,
    Result,
    ResultFolder,
    TrainingRecord,
    packed_size,
)
from benchmark.stored_scores import score_and_save
from benchmark.training.loop import Trained, TrainingData, train
from benchmark.training.memory import ran_out_of_memory
from benchmark.training.objective import Diverged, Epoch
from benchmark.workbench import Workbench, encoder_record

OUT_OF_MEMORY = "out of memory"
_DIVERGED, _INPUT = "diverged", "input"
MOST_PIECES = 16


class Worker:
    """One process on one device."""

    def __init__(self, setup: WorkerSetup, events: TextIO) -> None:
        self.setup = setup
        self.events = events
        code_state()  # of the code that was just imported: asked after a training it may be another commit's
        self.device = torch.device(setup.device)
        torch.zeros(1, device=self.device)  # a device that cannot be used ends the worker here, not a run
        self.device_name, self.device_uuid = _name(self.device)
        self.folder = ResultFolder(setup.results_root, setup.profile)
        self.bench = Workbench(setup, self.device)

    def handle(self, job: Job) -> JobEnded:
        """Train one job unless another command holds it or has done it; its result is on disk when this returns."""
        started = time.monotonic()
        log = self.folder.log_path(job.run)
        with claimed(self.folder, job) as found:
            if isinstance(found, JobEnded):
                return found
            try:
                with _output_to(log):
                    result, failures = self._train_and_score(job, found)
            except Exception as error:
                return self._failed(job, error, log, time.monotonic() - started)
        seconds, reason = time.monotonic() - started, "; ".join(failure.rstrip(".") for failure in failures)
        return JobEnded(
            outcome="success", seconds=seconds, summary=_summary(result, job.summary_of), reason=reason, log=str(log)
        )

    def send(self, event: Declared) -> None:
        """Tell the scheduler; where it is gone, end at once: the run has not failed, and nobody waits for it."""
        try:
            self.events.write(event.model_dump_json() + "\n")
            self.events.flush()
        except BrokenPipeError:
            os._exit(0)

    def _train_and_score(self, job: Job, done: Result | None) -> tuple[Result, list[str]]:
        """The stored result, and what could not be scored: that is left for later, when the logits are there. They are
        stored before anything is scored, and where scoring ended the process, the next attempt goes on from there
        (with ``redo`` it trains anew).
        """
        held = None
        if done is not None and not job.redo and len(done.scorable(job.views)) == len(job.views):
            held = self.folder.read_logits(done)
        if done is not None and held is not None:
            result, logits = done, held
        else:
            result, logits = self._train(job)
            result = self.folder.save(result, logits)
        return score_and_save(self.folder, result, result.unscored(job.views), logits)

    def _train(self, job: Job) -> tuple[Result, Logits]:
        """The result, nothing of it scored, and its logits."""
        data, data_record = self.bench.data(job)
        loaded = self.bench.encoder(job)
        _reset_peak_memory(self.device)
        n_epochs, mc_dropout = job.run.optimisation.epochs, _mc_dropout(job)
        held_out = len(data.validation.labels) + len(data.test.labels)
        self.folder.require_room(packed_size(held_out, len(data.test.labels), data.n_labels, len(mc_dropout)))
        trained = train(
            job.run,
            data,
            loaded.reset(),
            self.device,
            on_epoch=lambda done, seconds, epoch: self.send(
                EpochDone(done=done, of=n_epochs, seconds=seconds, means=_means(epoch))
            ),
            pieces=job.pieces,
            mc_dropout=mc_dropout,
        )
        result = Result(
            schema_version=SCHEMA_VERSION,
            run_id=identity(job.run),
            status="success",
            run=job.run,
            data=data_record,
            encoder=encoder_record(job, loaded),
            training=_training_record(trained, self.device, job.pieces),
            environment=self._environment(),
        )
        return result, _logits(trained, data)

    def _failed(self, job: Job, error: Exception, log: Path, seconds: float) -> JobEnded:
        kind, reason = _in_words(error)
        if kind == OUT_OF_MEMORY and job.pieces < MOST_PIECES:
            return JobEnded(outcome="out_of_memory", seconds=seconds, reason=f"{kind}: {reason}", log=str(log))
        failure = Failure(kind=kind, reason=reason, log=log.name)
        with contextlib.suppress(OSError):  # a full disk, say, which may be the failure itself
            self.folder.save_failure(Result.failed(job.run, failure, self._environment()))
        return JobEnded(
            outcome="failed",
            seconds=seconds,
            reason=f"{kind}: {reason}",
            log=str(log),
            worker_goes_on=kind in (_INPUT, _DIVERGED) and _still_computes(self.device),
        )

    def _environment(self) -> EnvironmentRecord:
        return describe_environment(self.device_name, self.device_uuid, torch.get_num_threads())


def _name(device: torch.device) -> tuple[str, str | None]:
    """A device's name and UUID, if it has one."""
    if device.type != "cuda":
        return cpu_name(), None
    properties = torch.cuda.get_device_properties(device)
    return properties.name, str(properties.uuid)


def _still_computes(device: torch.device) -> bool:
    """Whether a device can be used after a failure: an index out of range in a user's own function, which on a CPU is
    an error like others, leaves a GPU of no use to its process.
    """
    try:
        torch.zeros(1, device=device).item()
    except RuntimeError:
        return False
    return True


def _mc_dropout(job: Job) -> set[int]:
    """The numbers of passes with dropout that the job's views ask for."""
    return {view.calibrator.passes for view in job.views if isinstance(view.calibrator, McDropout)}


def _logits(trained: Trained, data: TrainingData) -> Logits:
    validation, test = data.validation.labels, data.test.labels
    return Logits(trained.validation_logits, validation, trained.test_logits, test, trained.mc_dropout)


def _means(epoch: Epoch) -> EpochMeans:
    return EpochMeans(loss=epoch.loss, terms=tuple(epoch.terms), entropy=epoch.entropy, accuracy=epoch.accuracy)


def _training_record(trained: Trained, device: torch.device, pieces: int) -> TrainingRecord:
    return TrainingRecord(
        seconds=trained.train_seconds,
        evaluation_seconds=trained.evaluation_seconds,
        steps=trained.steps,
        tokens=trained.train_tokens,
        tokens_per_second=trained.train_tokens / max(trained.train_seconds, 1e-9),
        precision=trained.precision,
        pieces=pieces,
        peak_host_bytes=_peak_host_bytes(),
        peak_device_bytes=torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
        epochs=[EpochRecord(**asdict(epoch)) for epoch in trained.epochs],
    )


def _summary(result: Result, split: str) -> str:
    plain = (view.scores for view in result.views if view.view.split == split and view.view.calibrator is None)
    scores = next(plain, None)
    if scores is None:
        return ""
    rows = "" if split == "test" else f"{split} rows: "
    return f"{rows}accuracy {100 * scores['accuracy']:.2f}, F1 {100 * scores['f1']:.2f}, ECE {100 * scores['ece']:.2f}"


def _in_words(error: Exception) -> tuple[str, str]:
    sentence = first_line(error)
    if ran_out_of_memory(error):
        return OUT_OF_MEMORY, sentence
    if isinstance(error, Diverged):
        return _DIVERGED, str(error)
    if isinstance(error, UserError):
        return _INPUT, str(error)
    return type(error).__name__, sentence


@contextlib.contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """While the block runs, all that the process prints goes to a log file, also from C code, and what ends the
    block.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    saved = [(stream, os.dup(stream)) for stream in (1, 2)]
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)
    try:
        yield
    except BaseException as error:
        traceback.print_exception(error)
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, kept in saved:
            os.dup2(kept, stream)
            os.close(kept)


def _reset_peak_memory(device: torch.device) -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the kernel's peak starts anew
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def _peak_host_bytes() -> int:
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _end_with(stdin: TextIO, jobs: list[str], arrived: threading.Condition) -> None:
    """Read jobs as they come. When the scheduler is gone its end of the pipe closes, and this process ends at once."""
    for line in stdin:
        with arrived:
            jobs.append(line)
            arrived.notify()
    os._exit(0)


def main() -> None:
    """Serve jobs from standard input until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the scheduler's, which then ends its workers
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    setup = WorkerSetup.model_validate_json(sys.stdin.readline())
    torch.set_num_threads(setup.threads)
    own_code.look_in(setup.own_folder)
    worker = Worker(setup, events)
    jobs: list[str] = []
    arrived = threading.Condition()
    threading.Thread(target=_end_with, args=(sys.stdin, jobs, arrived), daemon=True).start()
    worker.send(Ready())
    while True:
        with arrived:
            arrived.wait_for(lambda: bool(jobs))
            line = jobs.pop(0)
        ended = worker.handle(Job.model_validate_json(line))
        worker.send(ended)
        if ended.was_the_last:
            sys.exit(1)  # whatever broke, the next run starts in a fresh process


if __name__ == "__main__":
    main()

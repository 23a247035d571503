"""A job that is to be done: claimed, and not done already."""

from collections.abc import Iterator
from contextlib import contextmanager

from benchmark.jobs import Job, JobEnded
from benchmark.store import CannotClaim, Result, ResultFolder, claim


@contextmanager
def claimed(folder: ResultFolder, job: Job) -> Iterator[JobEnded | Result | None]:
    """Hold the claim of a job while the block runs. Yields how the job ended where there is nothing to do (another
    command holds it, it is done, its claim cannot be tried for), else what there is of it, if anything.
    """
    try:
        with claim(folder.claims, job.run) as ours:
            yield _found(folder, job) if ours else JobEnded(outcome="claimed", seconds=0.0)
    except CannotClaim as error:  # so nothing of the run is to be written
        yield JobEnded(outcome="failed", seconds=0.0, reason=f"input: {error}", worker_goes_on=True)


def _found(folder: ResultFolder, job: Job) -> JobEnded | Result | None:
    before = folder.read(job.run)
    if before is not None and not job.redo and before.has_all(job.views):
        return JobEnded(outcome="already_done", seconds=0.0)
    return before

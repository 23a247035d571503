"""What the scheduler itself costs: the real pool, claims and storing of results, with workers that train nothing.

python benchmarks/scheduling.py --jobs 10000 --slots 64       # in this process; needs 2 GB in the temporary folder
python benchmarks/scheduling.py --jobs 200 --slots 2 --ray    # the same through a Ray cluster of this machine
"""

import argparse
import asyncio
import contextlib
import hashlib
import io
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from tabulate import tabulate

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmark.estimates import Estimator, Work  # noqa: E402
from benchmark.jobs import EpochDone, Job, JobEnded  # noqa: E402
from benchmark.registry import EXPERIMENTS, Registry, load_registry  # noqa: E402
from benchmark.schedule import Display, Pool, PoolWorker  # noqa: E402
from benchmark.specs import identity  # noqa: E402
from benchmark.store import LogitsRecord, Parcel, Result, ResultFolder, claim  # noqa: E402


def main() -> None:
    """Print seconds, milliseconds a job, and what lies on the disk, for the pool alone and with storing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--logits-kb", type=int, default=100, help="size of a run's logits (default: 100)")
    parser.add_argument("--ray", action="store_true", help="also an actor a slot that sends the files through Ray")
    arguments = parser.parse_args()
    template = next(iter(ResultFolder(PROJECT / "results", "small").read_all()[0]))
    registry = load_registry(EXPERIMENTS)
    started = time.perf_counter()
    jobs = _jobs(registry, template, arguments.jobs)
    rows: list[tuple[object, ...]] = [("making the jobs", *_cost(started, len(jobs)), "")]
    rows.append(_measured("pool and display", jobs, arguments.slots, lambda index: Idle()))
    with tempfile.TemporaryDirectory() as place:
        folder = ResultFolder(Path(place), "small")
        content = os.urandom(1000 * arguments.logits_kb)
        hire = _hire(arguments.slots, template, content, folder, through_ray=False)
        rows.append(_measured("and claim, check, store", jobs, arguments.slots, hire))
        files = [path for path in folder.folder.rglob("*") if path.is_file()]
        rows[-1] = (*rows[-1][:-1], f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e9:.2f} GB")
        started = time.perf_counter()
        rows.append(("reading all results", *_cost(started, len(folder.read_all()[0])), ""))
    if arguments.ray:
        with tempfile.TemporaryDirectory() as place, _cluster(arguments.slots):
            hire = _hire(arguments.slots, template, content, ResultFolder(Path(place), "small"), through_ray=True)
            rows.append(_measured("the same through Ray", jobs, arguments.slots, hire))
    print(tabulate(rows, ("", "seconds", "ms a job", "peak GiB", "left on the disk"), tablefmt="pipe", floatfmt=".2f"))


def _jobs(registry: Registry, template: Result, count: int) -> list[Job]:
    dataset = registry.datasets[template.run.data.dataset]
    encoder = registry.encoders[template.run.encoder.encoder]
    runs = (template.run.model_copy(update={"seed": seed}) for seed in range(count))
    return [Job(run=run, views=(), dataset=dataset, encoder=encoder, redo=False) for run in runs]


def _measured(name: str, jobs: list[Job], slots: int, hire: Callable[[int], PoolWorker]) -> tuple[object, ...]:
    works = {identity(job.run): Work(1e12, 100) for job in jobs}
    labels = {identity(job.run): f"seed {job.run.seed}" for job in jobs}
    started = time.perf_counter()
    with Display(Console(file=io.StringIO()), works, labels, Estimator("cpu", "none"), slots) as display:
        asyncio.run(Pool(slots, hire, display.update, display.retired).run(jobs))
    assert display.outcome.succeeded == len(jobs), display.outcome.failed[:1]
    row = (name, *_cost(started, len(jobs)), "")
    print(*row, file=sys.stderr)  # the whole takes minutes
    return row


def _cost(started: float, count: int) -> tuple[float, float, float]:
    """Seconds, milliseconds for each, peak GiB of this process so far."""
    seconds = time.perf_counter() - started
    return seconds, 1000 * seconds / count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Idle:
    """A worker that ends each job at once, having said an epoch."""

    async def start(self) -> None:
        """Nothing is to be waited for."""

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        """The job's end."""
        await asyncio.sleep(0)
        on_epoch(EpochDone(done=1, of=2, seconds=0.1))
        return JobEnded(outcome="success", seconds=0.1, summary="accuracy 90.00, F1 90.00, ECE 15.00")

    async def end(self) -> None:
        """Nothing is to be ended."""


class Storing(Idle):
    """One that has a made-up result's files claimed, checked and stored as those of a node are."""

    def __init__(self, template: Result, content: bytes, folder: ResultFolder) -> None:
        self.template = template
        self.folder = folder
        self.content = content

    async def do(self, job: Job, on_epoch: Callable[[EpochDone], None]) -> JobEnded:
        """The job's end, its files stored."""
        with claim(self.folder.claims, job.run):
            assert self.folder.read(job.run) is None
            parcel = await self.parcel(job)
            result = parcel.opened(job.run)
            assert result is not None
            self.folder.put(result, parcel.logits)
            self.folder.put_log(job.run, parcel.log or b"")
        return await super().do(job, on_epoch)

    async def parcel(self, job: Job) -> Parcel:
        """What a node would send."""
        return make_parcel(self.template, self.content, job)


class ThroughRay(Storing):
    """One whose files come from an actor of its own."""

    async def start(self) -> None:
        """Start the actor."""
        import ray

        self.actor = ray.remote(Sender).options(num_cpus=1).remote(self.template, self.content)
        await self.actor.parcel.remote(None)

    async def parcel(self, job: Job) -> Parcel:
        """What the actor sends."""
        parcel: Parcel = await self.actor.parcel.remote(job)
        return parcel


class Sender:
    """The actor."""

    def __init__(self, template: Result, content: bytes) -> None:
        self.template = template
        self.content = content

    def parcel(self, job: Job | None) -> Parcel:
        """The files of a job."""
        return Parcel(None, None, None) if job is None else make_parcel(self.template, self.content, job)


def make_parcel(template: Result, content: bytes, job: Job) -> Parcel:
    """The files of a run as a node sends them; other logits for each, so that no cache helps."""
    logits = content[8:] + np.int64(job.run.seed).tobytes()
    digest = hashlib.sha256(logits).hexdigest()
    name = ResultFolder(Path(), "").path(job.run).stem
    record = LogitsRecord(file=f"{name}.{digest[:12]}.npz", sha256=digest)
    update = {"run": job.run, "run_id": identity(job.run), "logits": record}
    return Parcel(template.model_copy(update=update).model_dump_json().encode(), logits, b"log\n" * 50)


def _hire(
    slots: int, template: Result, content: bytes, folder: ResultFolder, through_ray: bool
) -> Callable[[int], PoolWorker]:
    kind = ThroughRay if through_ray else Storing
    workers = [kind(template, content, folder) for _ in range(slots)]
    return lambda index: workers[index]


@contextlib.contextmanager
def _cluster(cpus: int):  # type: ignore[no-untyped-def]
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    path = os.pathsep.join([str(PROJECT), str(PROJECT / "benchmarks")])
    environment = {"env_vars": {"PYTHONPATH": path}}
    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    try:
        yield
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()

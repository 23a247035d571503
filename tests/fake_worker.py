"""A worker that trains nothing: it does with each job what the job's seed says. For tests of the pool."""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmark.jobs import EpochDone, Job, JobEnded, Ready, WorkerSetup
from benchmark.specs import Declared

SUCCEEDS, NEEDS_PIECES, DIES_TWICE, ALWAYS_DIES, TOO_LARGE, HELD_ONCE, SLEEPS, SHORT, MISTAKEN, ENDLESS = range(10)


def say(event: Declared) -> None:
    print(event.model_dump_json(), flush=True)


def main() -> None:
    setup = WorkerSetup.model_validate_json(sys.stdin.readline())
    folder = setup.results_root
    log = {"pid": os.getpid(), "visible": os.environ["CUDA_VISIBLE_DEVICES"], "threads": os.environ["OMP_NUM_THREADS"]}
    (folder / f"worker-{os.getpid()}.json").write_text(json.dumps(log | {"offline": os.environ["HF_HUB_OFFLINE"]}))
    say(Ready())
    for line in sys.stdin:
        job = Job.model_validate_json(line)
        say(EpochDone(done=1, of=2, seconds=0.1))
        say(act(job, folder))


def act(job: Job, folder: Path) -> JobEnded:
    seed = job.run.seed
    attempts = folder / f"attempts-{seed}"
    number = int(attempts.read_text()) + 1 if attempts.exists() else 1
    attempts.write_text(str(number))
    if (seed == DIES_TWICE and number <= 2) or seed == ALWAYS_DIES:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == SLEEPS:
        time.sleep(60)
    if seed == ENDLESS:
        print("x" * 5_000_000, flush=True)
    if seed == SHORT:
        time.sleep(2)
    if (seed == NEEDS_PIECES and job.pieces < 4) or (seed == TOO_LARGE and job.pieces < 16):
        return JobEnded(
            outcome="out_of_memory", seconds=0.1, reason="out of memory: tried to allocate 9 GiB", log="x.log"
        )
    if seed == TOO_LARGE:
        return JobEnded(outcome="failed", seconds=0.1, reason="out of memory: tried to allocate 9 GiB", log="x.log")
    if seed == MISTAKEN:
        return JobEnded(outcome="failed", seconds=0.1, reason="input: a mistake", worker_goes_on=True)
    if seed == HELD_ONCE:
        return JobEnded(outcome="claimed" if number == 1 else "already_done", seconds=0.0)
    return JobEnded(outcome="success", seconds=0.1, summary=f"{job.pieces} pieces")


if __name__ == "__main__":
    main()

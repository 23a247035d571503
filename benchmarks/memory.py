"""Memory of a worker over many runs: does anything grow?

python benchmarks/memory.py --runs 50        # the demo's runs, one after another in one process
"""

import argparse
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Literal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from tabulate import tabulate

from benchmark.inputs import find_table_inputs, places
from benchmark.jobs import Job, WorkerSetup
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import load_registry, select_tables
from benchmark.store import KnownResults
from benchmark.worker import Worker


def main() -> None:
    """Print the memory after one run of each data set and encoder, and after every tenth run from then on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--data-dir")
    parser.add_argument("--encoder-dir")
    arguments = parser.parse_args()
    device: Literal["cuda", "cpu"] = "cuda" if torch.cuda.is_available() else "cpu"
    where = places(arguments.data_dir, arguments.encoder_dir)
    resident, on_device = [], []
    with tempfile.TemporaryDirectory() as folder:
        setup = WorkerSetup(
            results_root=Path(folder),
            profile=arguments.profile,
            data_folders=where.all_data_folders,
            encoder_folders=where.encoder_folders,
            built_encoders=where.built_encoders,
            file_hashes=where.file_hashes,
            own_folder=Path(folder),
            device=device,
            threads=torch.get_num_threads(),
        )
        worker = Worker(setup, io.StringIO())
        first, others = _inputs_first(_plan(arguments))
        for planned in [*first, *others[: arguments.runs]]:
            job = Job(
                run=planned.run, views=planned.views, dataset=planned.dataset, encoder=planned.encoder, redo=False
            )
            ended = worker.handle(job)
            if ended.outcome != "success":
                sys.exit(f"{planned.run_id}: {ended.reason}")
            resident.append(_resident_mib())
            on_device.append(torch.cuda.memory_allocated() / 2**20 if device == "cuda" else 0.0)
            worker.events.seek(0)
            worker.events.truncate()
    warm = len(first) - 1
    rows = [(run, resident[warm + run], on_device[warm + run]) for run in range(0, arguments.runs + 1, 10)]
    heads = [f"runs after {len(first)}", "resident MiB", "on the device MiB"]
    print(tabulate(rows, heads, tablefmt="pipe", floatfmt=".0f"))


def _inputs_first(plan: list[PlannedRun]) -> tuple[list[PlannedRun], list[PlannedRun]]:
    """One run of each data set and encoder, which loads them, and all others."""
    seen = set()
    first: list[PlannedRun] = []
    others: list[PlannedRun] = []
    for planned in plan:
        inputs = (planned.run.data.dataset, planned.run.encoder.encoder)
        (others if inputs in seen else first).append(planned)
        seen.add(inputs)
    return first, others


def _plan(arguments: argparse.Namespace) -> list[PlannedRun]:
    """As many seeds of the profile as it takes."""
    registry = load_registry()
    tables = select_tables(registry, arguments.profile, ["all"])
    where = places(arguments.data_dir, arguments.encoder_dir)
    found = find_table_inputs(registry, arguments.profile, tables.values(), where)
    if found.missing:
        sys.exit("\n".join(found.missing.values()))
    return make_plan(registry, arguments.profile, tables, range(arguments.runs), found.inputs, KnownResults.of([]))


def _resident_mib() -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    main()

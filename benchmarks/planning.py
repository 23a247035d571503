"""Planning and reporting as results grow: the demo's results copied to many seeds.

python benchmarks/planning.py --runs 510 10200       # needs results/demo with one seed: ./run_all.sh --profile demo
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))


def main() -> None:
    """Print, for each size, the seconds and peak memory of a dry run and of the reports."""
    from tabulate import tabulate

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, nargs="+", default=[510, 10_200], help="rounded down to whole seeds")
    arguments = parser.parse_args()
    rows = []
    for wanted in arguments.runs:
        with tempfile.TemporaryDirectory() as folder:
            made, seeds = _copies(Path(folder) / "demo", wanted)
            plan = _timed(["run", "--profile", "demo", "--seeds", f"0-{seeds - 1}", "--dry-run"], Path(folder))
            report = _timed(["report", "--profile", "demo", "--tables-dir", folder], Path(folder))
        rows.append((made, *plan, *report))
    heads = ["runs", "plan s", "plan GiB", "report s", "report GiB"]
    print(tabulate(rows, heads, tablefmt="pipe", floatfmt=".2f"))


def _copies(folder: Path, wanted: int) -> tuple[int, int]:
    """Results of seed 0 under other seeds, each with the identity it would have; how many, of how many seeds."""
    from benchmark.specs import RunSpec, identity, readable_name

    sources = sorted((PROJECT / "results" / "demo").glob("*.seed0.*.json"))
    if not sources:
        sys.exit("There is no result in results/demo; run ./run_all.sh --profile demo first.")
    folder.mkdir(parents=True)
    seeds = max(wanted // len(sources), 1)
    for source in sources:
        content = json.loads(source.read_text(encoding="ascii"))
        run = RunSpec.model_validate(content["run"])
        for seed in range(seeds):
            other = run.model_copy(update={"seed": seed})
            content |= {"run": other.model_dump(mode="json"), "run_id": identity(other)}
            (folder / f"{readable_name(other)}.json").write_text(json.dumps(content), encoding="ascii")
    return len(sources) * seeds, seeds


def _timed(arguments: list[str], results: Path) -> tuple[float, float]:
    """Wall seconds and peak GiB of a command."""
    command = [sys.executable, "-m", f"benchmark.{arguments[0]}", *arguments[1:], "--results-dir", str(results)]
    measured = ["/usr/bin/time", "-f", "%M", *command] if shutil.which("/usr/bin/time") else command
    started = time.perf_counter()
    call = subprocess.run(measured, cwd=PROJECT, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    last = call.stderr.strip().splitlines()[-1] if measured is not command else ""
    return seconds, int(last) / 2**20 if last.isdecimal() else float("nan")


if __name__ == "__main__":
    main()

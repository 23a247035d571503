"""The scripts of ``benchmarks/``; that they call the package as it is, mypy checks."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_says_what_it_measures(script: Path) -> None:
    call = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=False)
    assert call.returncode == 0, call.stderr
    assert call.stdout.startswith(f"usage: {script.name}")


@pytest.mark.skipif(not importlib.util.find_spec("accelerate"), reason="needs accelerate, which the Trainer asks for")
def test_both_sides_of_the_comparison_with_the_trainer_run(tmp_path: Path) -> None:
    names = ["ours", "trainer", "trainer grouped"]
    options = ["--profile", "demo", "--steps", "2", "--repeats", "1", "--variants", *names]
    call = subprocess.run(
        [sys.executable, SCRIPTS[0].with_name("against_trainer.py"), *options],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"BENCHMARK_CACHE_DIR": str(tmp_path)},
    )
    assert call.returncode == 0, call.stderr
    rows = re.findall(r"^\| ([a-z ]+?) +\| ([\d.]+) ", call.stdout, flags=re.MULTILINE)
    assert [name for name, _ in rows] == names
    assert all(float(seconds) > 0 for _, seconds in rows)

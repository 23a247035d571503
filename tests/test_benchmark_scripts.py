"""The scripts of ``benchmarks/``; that they call the package as it is, mypy checks."""

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

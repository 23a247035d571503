"""Shared parts: a tiny registry that trains in seconds, the real data where they are, the commands as a user calls
them.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
import yaml

from benchmark.registry import OWN, Registry, load_registry

torch.set_num_threads(1)  # the tests' matrices are tiny, and other processes are at work beside them

PROJECT = Path(__file__).resolve().parents[1]

# The registry as it ships: what somebody has added in experiments/own is theirs, and no matter of these tests.
_SHIPPED = TemporaryDirectory(prefix="experiments-")
EXPERIMENTS = Path(_SHIPPED.name) / "experiments"
shutil.copytree(PROJECT / "experiments", EXPERIMENTS, ignore=shutil.ignore_patterns(OWN))

DATA_DIR = os.environ.get("BENCHMARK_DATA_DIR")
ENCODER_DIR = os.environ.get("BENCHMARK_ENCODER_DIR")
needs_real_data = pytest.mark.skipif(
    not DATA_DIR, reason="needs the three published data sets: set BENCHMARK_DATA_DIR to their folder"
)
needs_real_encoder = pytest.mark.skipif(
    not ENCODER_DIR,
    reason="needs a pretrained encoder (me5-small-zh-en): set BENCHMARK_ENCODER_DIR to its parent folder",
)


def tiny_profile(base: Path) -> None:
    """Turn a copy of the registry into one whose profile ``tiny`` trains all 51 runs in well under a minute."""
    datasets = yaml.safe_load((base / "datasets.yaml").read_text(encoding="utf-8"))
    encoders = yaml.safe_load((base / "encoders.yaml").read_text(encoding="utf-8"))
    profiles = yaml.safe_load((base / "profiles.yaml").read_text(encoding="utf-8"))
    for name, labels in (("tnews", 6), ("hwu64", 4), ("banking77", 3)):
        datasets["datasets"][f"tiny_{name}"] = {
            "label": f"tiny {name}",
            "source": {
                "kind": "generated",
                "labels": labels,
                "rows": {"train": 96, "validation": 40, "test": 80},
                "label_shares": [float(share) for share in range(1, labels + 1)],
                "words_per_text": [3, 6],
                "vocabulary": 60,
                "keywords_per_label": 6,
                "keyword_share": 0.7,
                "neighbour_share": 0.1,
                "confusion": 0.1,
                "seed": 1,
            },
            "tokens_per_text": 6.5,
        }
    for name, architecture in (("base", "bert"), ("albert", "albert"), ("xlnet", "xlnet"), ("large", "electra")):
        encoders["encoders"][f"tiny_{name}"] = {
            "label": f"tiny {name}",
            "source": {
                "kind": "built",
                "architecture": architecture,
                "hidden": 16,
                "intermediate": 32,
                "heads": 2,
                "vocabulary": 60,
                "seed": 0,
            },
            "size": {"layers": 1, "hidden": 16, "intermediate": 32},
        }
    profiles["profiles"]["tiny"] = {
        "description": "for tests",
        "note": "For tests only.",
        "seeds": [0],
        "datasets": {"tnews": "tiny_tnews", "hwu64": "tiny_hwu64", "banking77": "tiny_banking77"},
        "encoders": {
            "base": "tiny_base",
            "albert_tiny": "tiny_albert",
            "xlnet": "tiny_xlnet",
            "bert_large": "tiny_large",
        },
        "training": [
            {
                "batch_size": 16,
                "betas": [0.9, 0.999],
                "epsilon": 1.0e-8,
                "warmup_share": 0.1,
                "decay": "linear",
                "max_gradient_norm": 1.0,
                "weight_decay": 0.01,
                "max_length": 16,
                "precision": "float32",
                "learning_rate": 3.0e-3,
                "epochs": 4,
            }
        ],
    }
    for name, content in (("datasets", datasets), ("encoders", encoders), ("profiles", profiles)):
        (base / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


@pytest.fixture(scope="session")
def tiny_experiments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry folder with the profile ``tiny``; shared, so never write to it."""
    folder = tmp_path_factory.mktemp("registry") / "experiments"
    shutil.copytree(EXPERIMENTS, folder)
    tiny_profile(folder)
    return folder


@pytest.fixture(scope="session")
def registry(tiny_experiments: Path) -> Registry:
    """The registry with the profile ``tiny``; test modules that need another one define their own."""
    return load_registry(tiny_experiments)


@pytest.fixture
def experiments(tiny_experiments: Path, tmp_path: Path) -> Path:
    """A registry folder of the test's own, with the profile ``tiny``."""
    return Path(shutil.copytree(tiny_experiments, tmp_path / "experiments"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that where files go side by side none of them is alone at the end."""
    longest = ("test_survival.py", "test_commands.py")
    items.sort(key=lambda item: longest.index(item.path.name) if item.path.name in longest else len(longest))


Command = Callable[..., "subprocess.CompletedProcess[str]"]


def run_module(
    module: str, *arguments: object, env: dict[str, str] | None = None, cwd: Path = PROJECT
) -> "subprocess.CompletedProcess[str]":
    """``python -m benchmark.<module>`` as a user calls it, on the CPU, without a terminal; on the registry as it ships
    if the arguments say no other.
    """
    if "--experiments" not in arguments:
        arguments = (*arguments, "--experiments", EXPERIMENTS)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **(env or {})}
    environment.pop("HF_HUB_CACHE", None)  # tests that need a place of their own say HF_HOME
    command = [sys.executable, "-m", f"benchmark.{module}", *(str(argument) for argument in arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        env=environment,
        cwd=cwd,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the tests' own, so that nothing made before helps or hinders them."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def benchmark_command(tiny_experiments: Path, cache_dir: Path, tmp_path: Path) -> Command:
    """Calls a command on the tiny registry with results and tables below ``tmp_path``."""

    def call(module: str, *arguments: object, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        options: list[object] = ["--experiments", tiny_experiments, "--results-dir", tmp_path / "results"]
        if "--profile" not in arguments:
            options += ["--profile", "tiny"]
        if module == "report":
            options += ["--tables-dir", tmp_path / "tables"]
        return run_module(module, *arguments, *options, env={"BENCHMARK_CACHE_DIR": str(cache_dir)} | (env or {}))

    return call

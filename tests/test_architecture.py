"""The layout of the house: imports run one way, reports come up without torch, nothing speaks of where it was made."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

PACKAGE = PROJECT / "benchmark"
FLOORS = {
    "durations": 0,
    "errors": 0,
    "metrics": 0,
    "losses": 0,
    "own_code": 1,
    "pseudo_words": 0,
    "significance": 0,
    "specs": 1,
    "splits": 0,
    "whole_files": 0,
    "calibrators": 2,
    "resampling": 1,
    "declarations": 2,
    "data": 3,
    "encoders": 3,
    "jobs": 3,
    "models": 3,
    "registry": 3,
    "store": 3,
    "claimed_jobs": 4,
    "environment": 4,
    "ensembles": 5,
    "estimates": 4,
    "inputs": 4,
    "plan": 4,
    "scoring": 4,
    "training": 4,
    "stored_scores": 5,
    "tables": 5,
    "workbench": 5,
    "backend_options": 8,
    "claims": 6,
    "cluster": 7,
    "figures": 6,
    "ranking": 6,
    "search": 6,
    "shown_inputs": 6,
    "render": 7,
    "schedule": 6,
    "worker": 6,
    "commandline": 6,
    "execution": 7,
    "rescoring": 7,
    "tracking": 7,
    "listing": 7,
    "own_data": 4,
    "own_options": 7,
    "recommendation": 9,
    "page": 10,
    "reporting": 11,
    "prepare": 12,
    "report": 12,
    "own_report": 12,
    "run": 13,
}
WITHOUT_TORCH = [
    "run",
    "report",
    "prepare",
    "plan",
    "tables",
    "figures",
    "render",
    "schedule",
    "inputs",
    "scoring",
    "metrics",
    "page",
    "tracking",
]


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The parts of the package that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "benchmark":
                names = [f"benchmark.{alias.name}" for alias in node.names if (PACKAGE / alias.name).exists()
                         or (PACKAGE / f"{alias.name}.py").exists()]  # fmt: skip
        found |= {name.split(".")[1] for name in names if name.startswith("benchmark.")}
    return found


def test_every_part_has_a_floor() -> None:
    assert {part(path) for path in modules()} - {"__init__"} == set(FLOORS)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_downwards_only(path: Path) -> None:
    here = part(path)
    if here == "__init__":
        assert not imported(path)
        return
    upwards = {other for other in imported(path) - {here} if FLOORS[other] >= FLOORS[here]}
    assert not upwards, f"{here} (floor {FLOORS[here]}) imports {upwards}"


def test_planning_and_reporting_do_not_import_what_is_slow_to_import() -> None:
    script = (
        "import importlib, sys\n"
        "heavy = {'torch', 'transformers', 'datasets', 'pandas', 'scipy', 'sklearn', 'matplotlib', 'bokeh', 'jinja2'}\n"
        "for module in sys.argv[1:]:\n"
        "    importlib.import_module(f'benchmark.{module}')\n"
        "    if heavy & set(sys.modules):\n"
        "        sys.exit(f'benchmark.{module} imports {sorted(heavy & set(sys.modules))}')"
    )
    command = [sys.executable, "-c", script, *WITHOUT_TORCH]
    call = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
    assert call.returncode == 0, call.stderr


def project_files() -> list[Path]:
    call = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        check=False,
    )
    if call.returncode:
        pytest.skip("needs a git checkout")
    return [PROJECT / name for name in call.stdout.split("\0") if name and (PROJECT / name).is_file()]


def test_no_file_names_a_place_on_the_machine_it_was_made_on() -> None:
    home = re.compile(r"(?<![\w.])/(work|root|home)/\w+|pypi\.org|files\.pythonhosted")
    for path in project_files():
        if path.suffix in {".py", ".yaml", ".md", ".sh", ".toml", ".txt", ".json", ".tex"} and path != Path(__file__):
            found = home.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path}: {found.group()}"


def test_nothing_dangerous_is_called() -> None:
    """YAML is loaded safely, nothing is unpickled or evaluated, no code of a model is trusted."""
    forbidden = {"eval", "exec", "compile", "__import__"}
    for path in modules():
        text = path.read_text(encoding="utf-8")
        assert "pickle.load" not in text
        assert "yaml.load(" not in text
        assert "torch.load(" not in text
        assert "trust_remote_code=True" not in text
        assert "shell=True" not in text
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, path


def test_files_and_functions_stay_small() -> None:
    for path in modules():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 320, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"


def test_the_public_names_keep_their_signatures() -> None:
    import inspect

    from benchmark import calibrators, data, losses, metrics, models

    signatures = {
        metrics.classwise_ece: ["probabilities", "labels", "n_bins"],
        metrics.top_label_ece: ["probabilities", "labels", "n_bins"],
        metrics.adaptive_ece: ["probabilities", "labels", "n_bins"],
        metrics.classification_scores: ["labels", "predictions", "n_labels"],
        models.hyperspherical_label_vectors: ["n_labels", "dim", "seed"],
        losses.rau_loss: ["logits", "labels", "threshold"],
        losses.avuc_loss: ["logits", "labels", "threshold"],
        losses.poscal_loss: ["logits", "posterior_table"],
        losses.poscal_reverse_loss: ["logits", "posterior_table"],
        calibrators.fit_temperature: ["logits", "labels"],
        data.corrupt_labels: ["labels", "rate", "n_labels", "seed"],
    }
    for function, names in signatures.items():
        assert list(inspect.signature(function).parameters)[: len(names)] == names

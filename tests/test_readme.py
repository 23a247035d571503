"""What the README says is true: its example of own data, encoder, table and profile runs as written."""

import re
from pathlib import Path

import yaml

from benchmark.models import build_encoder
from benchmark.pseudo_words import pseudo_words
from benchmark.registry import load_registry
from tests.conftest import PROJECT, run_module

README = (PROJECT / "README.md").read_text(encoding="utf-8")


def test_the_example_of_own_intents_runs_as_written(experiments: Path, tmp_path: Path) -> None:
    for file, name in (
        ("datasets", "my_intents"),
        ("encoders", "my_encoder"),
        ("tables", "my_table"),
        ("profiles", "mine"),
    ):
        block = re.search(rf"```yaml\n(  {name}:\n.*?)```", README, flags=re.DOTALL).group(1)
        path = experiments / f"{file}.yaml"
        top = yaml.safe_load(path.read_text(encoding="utf-8"))
        top[file] |= yaml.safe_load(block)
        path.write_text(yaml.safe_dump(top, sort_keys=False, allow_unicode=True), encoding="utf-8")
    # a small encoder under the name of the example's stands for it, and two hundred rows for the user's
    declared = load_registry(experiments).encoders["tiny_base"]
    build_encoder(declared, tmp_path / "encoders" / "MiniLM-L6-H384-uncased")
    words = pseudo_words(60)
    for file, rows in (("train", 150), ("test", 50)):
        path = tmp_path / "data" / "my_intents" / f"{file}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{words[row % 4]} {words[10 + row % 7]},{'abcd'[row % 4]}" for row in range(rows)]
        path.write_text("utterance,intent\n" + "\n".join(lines) + "\n")
    options = ["--profile", "mine", "--experiments", experiments, "--results-dir", tmp_path / "results"]
    inputs = ["--data-dir", tmp_path / "data", "--encoder-dir", tmp_path / "encoders"]
    environment = {"BENCHMARK_CACHE_DIR": str(tmp_path / "cache")}
    prepare = run_module("prepare", *options, *inputs, env=environment)
    assert prepare.returncode == 0, prepare.stderr
    run = run_module("run", *options, *inputs, "--seeds", "0", env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "5 trained, 0 failed" in run.stdout
    report = run_module("report", *options, "--tables-dir", tmp_path / "tables", env=environment)
    assert "### Table 6 (my\\_table)" in report.stdout
    assert "missing" not in report.stdout


def test_the_published_tables_come_from_the_published_results(tmp_path: Path) -> None:
    for options in ([], ["--compare"], ["--claims"], ["--recommend"], ["--format", "latex"]):
        made = run_module("report", "--profile", "small", "--tables-dir", tmp_path, *options)
        assert made.returncode == 0, made.stderr
    published = PROJECT / "tables" / "small"
    texts = [path for path in published.iterdir() if path.suffix in {".md", ".tex"}]
    assert {path.name for path in texts} == {path.name for path in (tmp_path / "small").iterdir()}
    for path in texts:
        assert (tmp_path / "small" / path.name).read_bytes() == path.read_bytes(), path.name
    assert (published / "main.md").read_text(encoding="utf-8").split("\n\n")[2].strip() in README


def test_every_file_and_option_that_the_readme_names_is_there() -> None:
    for name in re.findall(r"`((?:experiments/)?\w+\.yaml)`", README):
        assert (PROJECT / name).is_file() or (PROJECT / "experiments" / name).is_file(), name
    for module in ("run", "report", "prepare"):
        help_text = run_module(module, "--help").stdout
        for line in README.splitlines():
            if f"benchmark.{module} " in line:
                for option in re.findall(r"--[\w-]+", line.partition(f"benchmark.{module}")[2].partition("#")[0]):
                    assert option in help_text, f"{module} {option}"
    for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", README):
        assert (PROJECT / picture).is_file(), picture
    for path in re.findall(r"`benchmark\.(\w+)\.(\w+)[`(]", README):
        module = __import__(f"benchmark.{path[0]}", fromlist=[path[1]])
        assert hasattr(module, path[1]), path

"""What the README and the pages beside it say is true: the tutorial of own data and own parts runs as written."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmark.data import load_corpus
from benchmark.models import build_encoder, build_head, hyperspherical_label_vectors
from benchmark.own_data import OwnFiles, write_own_entries
from benchmark.plan import make_plan
from benchmark.pseudo_words import pseudo_words
from benchmark.registry import Inputs, candidates, load_registry, select_tables
from benchmark.store import KnownResults
from tests.conftest import EXPERIMENTS, PROJECT, run_module

README = (PROJECT / "README.md").read_text(encoding="utf-8")
DOCS = {path.name: path.read_text(encoding="utf-8") for path in sorted((PROJECT / "docs").glob("*.md"))}


def blocks(language: str) -> list[str]:
    """The code blocks of "Your own", in order."""
    return re.findall(rf"```{language}\n(.*?)```", README.partition("## Your own")[2], flags=re.DOTALL)


def test_the_tutorial_of_own_data_and_own_parts_runs_as_written(experiments: Path, tmp_path: Path) -> None:
    (parts, scaling), entries = blocks("python"), blocks("yaml")[0]
    assert sum(bool(line.strip()) for line in (parts + scaling + entries).splitlines()) < 30
    (experiments / "own").mkdir()
    (experiments / "own" / "mine.py").write_text(parts, encoding="utf-8")
    (experiments / "own" / "scaling.py").write_text(scaling, encoding="utf-8")
    (experiments / "own" / "mine.yaml").write_text(entries, encoding="utf-8")
    # a small encoder under the name of the tutorial's stands for it
    build_encoder(load_registry(experiments).encoders["tiny_base"], tmp_path / "encoders" / "MiniLM-L6-H384-uncased")
    words = pseudo_words(60)
    lines = [f"{words[row % 4]} {words[10 + row % 7]},{'abcd'[row % 4]}" for row in range(150)]
    (tmp_path / "my.csv").write_text("utterance,intent\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (line,) = (line for line in blocks("sh")[1].splitlines() if "--encoder minilm" in line)
    written = line.partition("benchmark.run ")[2].split()
    folders = ["--experiments", experiments, "--results-dir", tmp_path / "results", "--tables-dir", tmp_path / "tables"]
    call = run_module(
        "run",
        *(str(tmp_path / "my.csv") if word == "my.csv" else word for word in written),
        *folders,
        "--encoder-dir",
        tmp_path / "encoders",
        env={"BENCHMARK_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert call.returncode == 0, call.stdout + call.stderr
    assert "6 trained, 0 failed" in call.stdout
    assert "| Mine halved " in call.stdout
    assert "### Recommendation" in call.stdout
    assert "missing" not in call.stdout
    mistakes = re.findall(r"```python\n(.*?)```", DOCS["using_results.md"], flags=re.DOTALL)[0]
    for as_written, here in (
        ('"my"', '"with_mine"'),
        ("load_registry()", f"load_registry(Path({str(experiments)!r}))"),
        ('Path("results")', f"Path({str(tmp_path / 'results')!r})"),
    ):
        assert as_written in mistakes
        mistakes = mistakes.replace(as_written, here)
    told = subprocess.run([sys.executable, "-c", mistakes], capture_output=True, text=True, cwd=PROJECT, check=False)
    assert told.returncode == 0, told.stderr
    line = r"^(bert|mine), seed [012]: [01]\.\d\d [abcd], not [abcd]: \w+ \w+$"
    assert re.search(line, told.stdout, flags=re.MULTILINE)


# The KL term, then RAU.
WITHOUT_AND_WITH = [("hs_alone", "without_rau"), ("without_both", "without_hs")]


def test_the_advised_method_in_ones_own_training_as_written() -> None:
    given: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", DOCS["using_results.md"], flags=re.DOTALL)[1], given)
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(320).reshape(4, 80) % 20
    inputs = torch.eye(20)[labels] + 0.3 * torch.randn(4, 80, 20, generator=generator)
    batches = list(zip(inputs, labels, strict=True))

    def trained(method: str, loop: Callable[..., None]) -> torch.Tensor:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(20, 32), given["head"](method, 32, 20))
        loop(model, torch.optim.SGD(model.parameters(), lr=1.0))
        return model.eval()(inputs[0]).detach()

    def as_written(method: str) -> Callable[..., None]:
        return lambda model, optimiser: given["train"](method, model, batches, 20, 12, optimiser, torch.device("cpu"))

    def by_hand(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> None:
        for _ in range(12):
            for texts, answers in batches:
                torch.nn.functional.cross_entropy(model(texts), answers).backward()
                optimiser.step()
                optimiser.zero_grad()

    for method in ("bert", "hs_alone"):
        torch.testing.assert_close(trained(method, as_written(method)), trained(method, by_hand))
    logits = {method: trained(method, as_written(method)) for pair in WITHOUT_AND_WITH for method in pair}
    for without, having in WITHOUT_AND_WITH:
        assert not torch.allclose(logits[without], logits[having], atol=1e-3)
    numbers, answers = logits["hs_alone"].numpy(), labels[0].numpy()
    probabilities = given["calibrated"](numbers, numbers, answers)
    assert (probabilities.argmax(axis=1) == numbers.argmax(axis=1)).all()
    for calibrator in given["METHODS"].calibrators.keys() - {"mc_dropout", "deep_ensemble"}:
        found = given["calibrated"](numbers, numbers, answers, calibrator)
        np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize(("n_labels", "highest"), [(11, 0.79), (15, 0.82), (77, 0.99)])
def test_the_confidence_of_the_hyperspherical_head_has_the_bound_that_is_said(n_labels: int, highest: float) -> None:
    declared = load_registry(EXPERIMENTS).methods.heads["hyperspherical"]
    head = build_head(declared, 384, n_labels, torch.Generator()).eval()
    surest = head(hyperspherical_label_vectors(n_labels, 384, seed=declared.label_vector_seed)).softmax(dim=1).max()
    assert float(surest) == pytest.approx(highest, abs=0.005)
    assert f"{highest:.2f} for {n_labels}" in DOCS["using_results.md"]


def test_fewer_rows_of_own_data_beside_all_of_them_as_written(tmp_path: Path) -> None:
    experiments = tmp_path / "experiments"
    shutil.copytree(EXPERIMENTS, experiments, ignore=shutil.ignore_patterns("own"))
    words = pseudo_words(60)
    lines = [f"{words[row % 12]} {words[12 + row % 31]} {row},{'abcdefghijkl'[row % 12]}" for row in range(606)]
    (tmp_path / "my.csv").write_text("utterance,intent\n" + "\n".join(lines) + "\n", encoding="utf-8")
    given = OwnFiles("my", tmp_path / "my.csv", None, None, "utterance", "intent")
    write_own_entries(experiments, given, "my", "multilingual_e5_small_3_layers")
    entries, more = re.findall(r"```yaml\n(.*?)```", DOCS["more_data.md"], flags=re.DOTALL)
    (experiments / "own" / "my_more.yaml").write_text(more, encoding="utf-8")
    curve = experiments / "own" / "my_curve.yaml"
    curve.write_text(entries.replace("/where/it/is", str(tmp_path)), encoding="utf-8")
    registry = load_registry(experiments)
    assert registry.left_out == {}
    tables = select_tables(registry, "my_curve", ["my_curve"])
    plan = make_plan(registry, "my_curve", tables, [0], Inputs(), KnownResults.of([]))
    few, whole = (load_corpus(name, registry.datasets[name], ()) for name in ("my_100", "my"))
    assert (len(few.train), len(whole.train)) == (100, 424)
    epochs = {run.run.data.dataset: run.run.optimisation.epochs for run in plan}
    as_written = make_plan(registry, "my", select_tables(registry, "my", ["my"]), [0], Inputs(), KnownResults.of([]))
    assert {run.run for run in plan if run.run.data.dataset == "my"} <= {run.run for run in as_written}  # trained once
    assert epochs["my_100"] * -(-100 // 32) == pytest.approx(epochs["my"] * -(-424 // 32), rel=0.01)
    assert (few.validation.texts, few.test.texts) == (whole.validation.texts, whole.test.texts)
    assert set(few.train.texts) < set(whole.train.texts)
    tables = select_tables(registry, "my", ["my_noise", "my_rare"])
    plan = make_plan(registry, "my", tables, [0], Inputs(), KnownResults.of([]))
    assert sorted(run.run.data.corruption for run in plan) == [0.0, 0.0, 0.2, 0.2]


def test_the_advice_is_the_published_one() -> None:
    quoted = []
    for profile in PUBLISHED:
        published = (PROJECT / "tables" / profile / "recommendation.md").read_text(encoding="utf-8")
        advice = re.findall(r"^\*\*.*?(?=\n\n\*\*|\n\nThe rule)", published, flags=re.DOTALL | re.MULTILINE)
        quoted += ["\n".join(f"> {line}".rstrip() for line in part.splitlines()) for part in advice]
    assert len(quoted) == 3
    assert f"{quoted[1]}\n\n" in README
    for part in quoted:
        assert f"{part}\n\n" in DOCS["findings.md"]


def test_the_readme_counts_claims_and_trainings_as_they_are() -> None:
    registry = load_registry(EXPERIMENTS)
    assert set(re.findall(r"(\d+) claims", README + DOCS["findings.md"])) == {str(len(registry.claims))}
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\| (\d+)", README, flags=re.MULTILINE)
    assert [name for name, _ in rows] == list(registry.profiles)
    for name, count in rows:
        plan = make_plan(registry, name, select_tables(registry, name, ["all"]), [0], Inputs(), KnownResults.of([]))
        assert len(plan) == int(count), name


def test_the_search_of_ones_own_is_one(experiments: Path) -> None:
    (entry,) = re.findall(r"```yaml\n(searches:.*?)```", DOCS["settings.md"], flags=re.DOTALL)
    (experiments / "own").mkdir()
    (experiments / "own" / "mine.yaml").write_text(entry, encoding="utf-8")
    registry = load_registry(experiments)
    assert registry.left_out == {}
    assert len(candidates(registry, "tiny", registry.searches["mine"])) == 6


WHOLE = [[], ["--compare"], ["--claims"], ["--recommend"], ["--format", "latex"]]
MORE = ["more_methods", "with_temperature", "noise_with_temperature", "without_kl"]
PUBLISHED = {
    "small": [
        *WHOLE,
        ["--table", "more_methods", "without_kl"],
        ["--table", "main", "ablation_full", "more_methods", "without_kl", "--differences"],
        ["--table", "main", "--differences", "--compare"],
        ["--table", "main", "more_methods", "--ranking"],
        ["--search", "rates", "start", "poscal_updates", "poscal_divergence", "poscal_table"],
    ],
    "small_tnews": [
        *WHOLE,
        *(["--recommend", "--by", measure] for measure in ("top_label_ece", "nll")),
        ["--table", *MORE],
        ["--table", "main", "ablation", "noise", "low_frequency", *MORE, "--differences"],
        ["--table", "main", "noise", "--differences", "--compare"],
        ["--search", "rates", "start", "threshold"],
    ],
}


def unpublished(profile: str) -> list[str]:
    """What git finds in the profile's results and tables beside what is published, which is what is committed or about
    to be; nothing where there is no git to ask.
    """
    command = ["git", "status", "--porcelain", "--", f"results/{profile}", f"tables/{profile}"]
    call = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
    return [line for line in call.stdout.splitlines() if line[1] != " "]


@pytest.mark.parametrize("profile", PUBLISHED)
def test_the_published_tables_come_from_the_published_results(profile: str, tmp_path: Path) -> None:
    if unpublished(profile):
        pytest.skip(f"results/{profile} or tables/{profile} is not as published")
    for options in PUBLISHED[profile]:
        made = run_module("report", "--profile", profile, "--tables-dir", tmp_path, *options)
        assert made.returncode == 0, made.stderr
    published = PROJECT / "tables" / profile
    texts = [path for path in published.iterdir() if path.suffix in {".md", ".tex"}]
    assert {path.name for path in texts} == {path.name for path in (tmp_path / profile).iterdir()}
    for path in texts:
        assert (tmp_path / profile / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_tables_in_the_pages_are_the_published_ones() -> None:
    for profile in PUBLISHED:
        published = (PROJECT / "tables" / profile / "main.md").read_text(encoding="utf-8")
        assert published.split("\n\n")[2].strip() in README
    for profile, name in (
        ("small", "main.differences.compare"),
        ("small_tnews", "main.differences.compare"),
        ("small_tnews", "with_temperature.differences"),
        ("small_tnews", "without_kl.differences"),
    ):
        less = (PROJECT / "tables" / profile / f"{name}.md").read_text(encoding="utf-8")
        assert less.split("\n\n")[-1].strip() in DOCS["findings.md"], name
    ranking = (PROJECT / "tables" / "small" / "ranking.main+more_methods.md").read_text(encoding="utf-8")
    assert ranking.split("\n\n")[-1].strip() in DOCS["more_methods.md"]


def test_the_settings_quote_the_searches() -> None:
    searched: dict[str, set[tuple[str, ...]]] = {}
    for path in (PROJECT / "tables" / "small").glob("search_*.md"):
        sections = re.split(r"^\*\*(.*?)\.\*\* ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for of_what, section in zip(sections[::2], sections[1::2], strict=True):
            table = re.findall(r"^\| (.*) \|$", section.replace("**", ""), flags=re.MULTILINE)
            columns, *rows = [[cell.strip() for cell in line.split("|")] for line in table] or [[]]
            for row in rows:
                cells = dict(zip(columns, row, strict=True))
                searched.setdefault(of_what, set()).add((cells["F1"], cells["NLL"], cells["top-label ECE"]))
    settings = DOCS["findings.md"].partition("## Settings")[2]
    quoted = re.findall(r"^  \| (\w[\w-]*, \w+)[^|]*\| (\d.*) \|$", settings, flags=re.MULTILINE)
    assert len(quoted) == 12
    for of_what, cells in quoted:
        for cell in cells.split(" | "):
            assert tuple(cell.split(", ")) in searched[of_what], (of_what, cell)


def test_every_file_and_option_that_they_name_is_there() -> None:
    text = "\n".join([README, *DOCS.values()])
    for name in re.findall(r"`((?:experiments/)?\w+\.yaml)`", text):
        assert (PROJECT / name).is_file() or (PROJECT / "experiments" / name).is_file(), name
    for module in ("run", "report", "prepare"):
        help_text = run_module(module, "--help").stdout
        for line in text.splitlines():
            if f"benchmark.{module} " in line:
                for option in re.findall(r"--[\w-]+", line.partition(f"benchmark.{module}")[2].partition("#")[0]):
                    assert option in help_text, f"{module} {option}"
    for path in re.findall(r"`benchmark\.(\w+)\.(\w+)[`(]", text):
        module = __import__(f"benchmark.{path[0]}", fromlist=[path[1]])
        assert hasattr(module, path[1]), path


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    pages = {PROJECT / "README.md": README, **{PROJECT / "docs" / name: text for name, text in DOCS.items()}}
    for page, text in pages.items():
        for link in re.findall(r"\]\(((?!https?:)[^)]+)\)", text):
            name, _, heading = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), f"{page.name}: {link}"
            if heading:
                headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
                assert heading in {found.lower().replace(" ", "-").replace(",", "") for found in headings}, link


def test_every_search_is_listed() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", DOCS["settings.md"], flags=re.MULTILINE)
    assert listed == list(load_registry(EXPERIMENTS).searches)

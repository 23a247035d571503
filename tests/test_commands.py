"""The command lines as a user calls them, on tiny data, from nothing to tables."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from benchmark.calibrators import fit_temperature
from benchmark.commandline import add_output_option, new_parser
from benchmark.data import load_corpus
from benchmark.inputs import find_inputs, places
from benchmark.registry import Registry, Subject, load_registry, resolve_run
from benchmark.specs import TemperatureScaling, identity
from benchmark.store import ResultFolder
from tests.conftest import EXPERIMENTS, PROJECT, Command, run_module
from tests.results import made_logits, made_result, tiny_inputs
from tests.test_registry import TABLES


def results_in(folder: Path) -> dict[str, dict]:
    return {path.name: json.loads(path.read_text()) for path in sorted((folder / "results" / "tiny").glob("*.json"))}


@pytest.fixture(scope="module")
def everything(tiny_experiments: Path, cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All 51 runs of the profile ``tiny``, made once by the command; copy it to change it."""
    folder = tmp_path_factory.mktemp("everything")
    call = run_module(
        "run", "--profile", "tiny", "--experiments", tiny_experiments, "--results-dir", folder / "results",
        "--jobs-per-device", 2,
        env={"BENCHMARK_CACHE_DIR": str(cache_dir)},
    )  # fmt: skip
    assert call.returncode == 0, call.stdout + call.stderr
    (folder / "output.txt").write_text(call.stdout)
    return folder


@pytest.fixture
def finished(everything: Path, tmp_path: Path) -> Path:
    """A copy of all runs where ``benchmark_command`` looks for them."""
    shutil.copytree(everything / "results", tmp_path / "results")
    return tmp_path


def test_all_runs_are_made_once_and_told_line_by_line(everything: Path) -> None:
    output = (everything / "output.txt").read_text().splitlines()
    assert output[0].startswith("Profile tiny (as asked): 51 trainings, about ")
    assert "Choose another with --profile: paper, compact" in output[0]
    assert sum(" done    " in line for line in output) == 51
    assert output[-1].startswith("51 trained, 0 failed, 0 done before.")
    results = results_in(everything)
    assert len(results) == 51
    assert {result["status"] for result in results.values()} == {"success"}
    assert {result["encoder"]["architecture"] for result in results.values()} == {"bert", "albert", "xlnet", "electra"}


def test_a_result_says_how_it_was_made(everything: Path) -> None:
    result = next(iter(results_in(everything).values()))
    assert result["environment"]["packages"]["torch"]
    assert result["environment"]["device"]
    assert result["data"]["fingerprint"] == result["run"]["data"]["fingerprint"]
    assert result["encoder"]["fingerprint"] == result["run"]["encoder"]["fingerprint"]
    assert result["run"]["optimisation"]["learning_rate"] == 0.003
    assert len(result["training"]["epochs"]) == 4
    assert result["training"]["tokens"] > 0
    assert result["training"]["peak_host_bytes"] > 10**7
    for view in result["views"]:
        assert set(view["scores"]) >= {"ece", "top_label_ece", "adaptive_ece", "brier", "nll", "confidence"}
        assert sum(view["per_label"]["ece"]) == pytest.approx(view["scores"]["ece"])


def test_methods_see_the_same_changed_labels_and_levels_are_as_asked(everything: Path) -> None:
    changed: dict[float, set] = {}
    for result in results_in(everything).values():
        corruption = result["data"]["corruption"]
        changed.setdefault(corruption["requested"], set()).add(
            (corruption["train_changed"], corruption["validation_changed"])
        )
    assert changed == {0.0: {(0, 0)}, 0.05: {(5, 2)}, 0.1: {(10, 4)}, 0.3: {(29, 12)}, 0.5: {(48, 20)}}


def test_nine_tables_in_markdown_and_latex_without_a_missing_cell(finished: Path, benchmark_command: Command) -> None:
    for markup, ending in (("markdown", "md"), ("latex", "tex")):
        call = benchmark_command("report", "--format", markup)
        assert call.returncode == 0, call.stderr
        for name in TABLES:
            text = (finished / "tables" / "tiny" / f"{name}.{ending}").read_text()
            assert text.strip() in call.stdout
            assert "missing" not in text
            assert "For tests only." in text
    assert (finished / "tables" / "tiny" / "tables.tex").is_file()


def test_tables_hold_what_results_hold(finished: Path, benchmark_command: Command) -> None:
    call = benchmark_command("report", "--table", "ablation")
    line = next(line for line in call.stdout.splitlines() if line.startswith("| w/o Both"))
    shown = [float(value.strip(" *")) for value in line.split("|")[2:-1]]
    run = next(
        result
        for name, result in results_in(finished).items()
        if name.startswith("tiny_tnews.clean.tiny_base.linear.cross_entropy+poscal")
        and result["run"]["loss"][1]["start"] != {"after_epochs": 0}
    )
    scores = run["views"][0]["scores"]
    names = ("accuracy", "precision", "recall", "f1", "ece")
    assert shown == pytest.approx([100 * scores[name] for name in names], abs=0.0051)


def test_comparison_with_the_paper_has_a_file_of_its_own(finished: Path, benchmark_command: Command) -> None:
    document = finished / "tables" / "tiny" / "tables.noise.tex"  # beside that of all tables
    assert benchmark_command("report", "--table", "noise", "--format", "latex").returncode == 0
    assert document.read_text().count(r"\begin{table") == 1
    call = benchmark_command("report", "--table", "noise", "--compare")
    assert call.returncode == 0
    assert "| paper" in call.stdout
    assert "72.19" in (finished / "tables" / "tiny" / "noise.compare.md").read_text()


def test_all_scores_come_as_one_long_table(finished: Path, benchmark_command: Command) -> None:
    import io

    import pandas as pd

    call = benchmark_command("report", "--format", "csv")
    frame = pd.read_csv(io.StringIO(call.stdout))
    assert set(frame.methods) >= {"bert", "ts", "ls", "hs_rau", "rau_to_avuc"}
    assert set(frame[frame.calibrator == "temperature"].methods) == {"ts"}
    assert frame["run_id"].nunique() == 51
    assert json.loads(frame[frame.methods == "hs_rau"].iloc[0]["head_settings"])["kind"] == "hyperspherical"
    assert json.loads(frame[frame.methods == "ts"].iloc[0]["calibrator_settings"])["kind"] == "temperature"
    assert set(frame.batch_size) == {16}
    smoothed = json.loads(frame[frame.methods == "ls"].iloc[0]["loss_settings"])
    assert [(term["term"], term["smoothing"]) for term in smoothed] == [("cross_entropy", 0.1)]
    results = {result["run_id"]: result for result in results_in(finished).values()}
    row = frame[(frame["score"] == "ece") & (frame["split"] == "test") & (frame["calibrator"] == "temperature")].iloc[0]
    view = next(view for view in results[row["run_id"]]["views"] if view["temperature"])
    assert row["value"] == view["scores"]["ece"]
    assert row["temperature"] == view["temperature"]
    assert (finished / "tables" / "tiny" / "scores.csv").is_file()
    by_label = pd.read_csv(finished / "tables" / "tiny" / "scores_by_label.csv")
    labels = by_label[
        (by_label.run_id == row.run_id) & (by_label.split == "test") & (by_label.calibrator == "temperature")
    ]
    assert labels.ece.sum() == pytest.approx(row["value"])
    assert set(labels.columns) >= {"label", "training_rows", "rows", "precision", "recall", "f1"}
    assert labels.label.is_unique
    assert labels.rows.sum() > 0


def test_finished_runs_are_skipped(finished: Path, benchmark_command: Command) -> None:
    before = results_in(finished)
    call = benchmark_command("run")
    assert call.returncode == 0
    assert "nothing to train" in call.stdout.splitlines()[0]
    assert "0 trained, 0 failed, 51 done before." in call.stdout
    assert results_in(finished) == before


def test_runs_are_the_same_bit_by_bit_whatever_ran_before(finished: Path, benchmark_command: Command) -> None:
    before = results_in(finished)
    chosen = ["--table", "main", "--datasets", "tnews", "--methods", "hs_rau", "avuc", "bert"]
    call = benchmark_command("run", *chosen, "--redo", "--jobs-per-device", "2")
    assert "3 trained" in call.stdout, call.stdout + call.stderr
    after = results_in(finished)
    assert sum(after[name]["training"]["seconds"] != before[name]["training"]["seconds"] for name in before) == 3
    for name in before:
        assert after[name]["views"] == before[name]["views"]
        assert after[name]["training"]["epochs"] == before[name]["training"]["epochs"]


def test_dry_run_says_what_why_and_how_many(finished: Path, benchmark_command: Command) -> None:
    removed = [name for name in results_in(finished) if ".noise0.3." in name]
    for name in removed:
        (finished / "results" / "tiny" / name).unlink()
    call = benchmark_command("run", "--table", "noise", "--dry-run")
    assert call.returncode == 0
    assert call.stdout.splitlines()[-1].startswith("5 trainings planned, 15 already done; about ")
    assert sum("no result yet" in line for line in call.stdout.splitlines()) == 5
    assert len(results_in(finished)) == 46


def test_the_papers_plan_needs_no_data_at_hand(tmp_path: Path) -> None:
    arguments = [
        "run",
        "--profile",
        "paper",
        "--table",
        "all",
        "--seeds",
        "0",
        "--dry-run",
        "--results-dir",
        str(tmp_path / "results"),
    ]
    environment = {"BENCHMARK_DATA_DIR": "", "BENCHMARK_ENCODER_DIR": ""}
    call = run_module(*arguments, env=environment)
    assert call.stdout.splitlines()[-1].startswith("51 trainings planned, 0 already done; about "), call.stderr
    arguments[arguments.index("all")] = "noise"
    assert (
        run_module(*arguments, env=environment)
        .stdout.splitlines()[-1]
        .startswith("20 trainings planned, 0 already done; about ")
    )


def test_another_bin_count_scores_again_without_training(finished: Path, experiments: Path, cache_dir: Path) -> None:
    path = experiments / "metrics.yaml"
    path.write_text(path.read_text().replace("ece_bins: 10", "ece_bins: 20"))
    options = ["--experiments", experiments, "--profile", "tiny", "--results-dir", finished / "results"]
    environment = {"BENCHMARK_CACHE_DIR": str(cache_dir)}
    report = run_module("report", *options, "--tables-dir", finished / "tables", "--table", "ablation", env=environment)
    assert "not scored yet" in report.stdout
    before = results_in(finished)
    call = run_module("run", *options, env=environment)
    assert "51 finished runs scored again from their logits" in call.stdout, call.stderr
    assert "0 trained, 0 failed, 51 done before." in call.stdout
    for name, result in results_in(finished).items():
        assert result["training"] == before[name]["training"]
        assert {view["view"]["ece_bins"] for view in result["views"]} == {10, 20}


def test_a_temperature_on_clean_validation_labels_is_another_score_of_noisy_trainings(
    finished: Path, benchmark_command: Command, registry: Registry
) -> None:
    """What the labels were is worked out from the stored ones; it is what stands in the data."""
    call = benchmark_command("run", "--table", "noise_with_temperature")
    assert call.returncode == 0, call.stderr
    assert "0 trained, 0 failed" in call.stdout
    spec = registry.methods.calibrators["temperature_on_clean_labels"]
    assert isinstance(spec, TemperatureScaling)
    folder, noise = ResultFolder(finished / "results", "tiny"), []
    for result in folder.read_all()[0]:
        found = [view.temperature for view in result.views if view.view.calibrator == spec]
        if found:
            clean = load_corpus("tiny_tnews", registry.datasets["tiny_tnews"], []).validation.labels
            logits = folder.read_logits(result)
            assert (logits.validation_labels != clean).sum() == result.data.corruption.validation_changed > 0
            assert found == [fit_temperature(logits.validation_logits, clean, spec.lowest, spec.highest)]
            noise.append((result.run.head.kind, result.run.data.corruption))
    assert sorted(noise) == [(kind, rate) for kind in ("hyperspherical", "linear") for rate in (0.05, 0.1, 0.3, 0.5)]


def test_damaged_results_are_named_moved_aside_and_made_again(finished: Path, benchmark_command: Command) -> None:
    folder = finished / "results" / "tiny"
    names = [name for name in results_in(finished) if ".hyperspherical." in name and "banking77" in name]
    for name, content in zip(names, ("", "{}"), strict=False):
        (folder / name).write_text(content)
    call = benchmark_command("run", "--table", "ablation_full")
    assert call.returncode == 0, call.stderr
    assert "2 trained, 0 failed" in call.stdout
    for name in names[:2]:
        assert f"{name}: not counted, because it" in call.stdout
        assert (folder / "set_aside" / name).is_file()
        assert json.loads((folder / name).read_text())["status"] == "success"


def test_a_run_that_fails_does_not_stop_the_others(experiments: Path, cache_dir: Path, tmp_path: Path) -> None:
    profiles = yaml.safe_load((experiments / "profiles.yaml").read_text())
    rule = {"method": "ls", "learning_rate": 1.0e30, "max_gradient_norm": "none"}
    profiles["profiles"]["tiny"]["training"].append(rule)
    (experiments / "profiles.yaml").write_text(yaml.safe_dump(profiles, sort_keys=False))
    options = ["--experiments", experiments, "--profile", "tiny", "--results-dir", tmp_path / "results"]
    environment = {"BENCHMARK_CACHE_DIR": str(cache_dir)}
    arguments = ["--table", "main", "--datasets", "hwu64", "--methods", "bert", "ls"]
    call = run_module("run", *options, *arguments, env=environment)
    assert call.returncode == 1
    assert "1 trained, 1 failed" in call.stdout
    assert "diverged: the loss was not finite in epoch 1" in call.stdout
    assert "Traceback" not in call.stdout + call.stderr
    (failed,) = [result for result in results_in(tmp_path).values() if result["status"] == "failed"]
    assert failed["failure"]["kind"] == "diverged"
    log = re.search(r"log: (\S+\.log)", call.stdout).group(1)
    assert "Diverged" in Path(log).read_text()
    report = run_module("report", *options, "--tables-dir", tmp_path / "tables", "--table", "main", env=environment)
    assert "the run failed (diverged)" in report.stdout
    again = run_module("run", *options, *arguments, env=environment)
    assert again.returncode == 1
    assert "0 trained, 1 failed, 1 done before." in again.stdout


# Python looks for a module of this name in each of its starts: here the second of a worker's is its end, and in the
# first the second run fails.
BREAKS = """
import os, sys
from pathlib import Path
if "benchmark.worker" in sys.orig_argv:
    try:
        Path(__file__).with_name("begun").mkdir()
    except FileExistsError:
        os._exit(3)
    logs = []

    def fail(event, arguments):
        if event == "open" and str(arguments[0]).endswith(".log"):
            logs.append(arguments[0])
            if len(logs) == 2:
                raise OSError(5, "a broken disk")

    sys.addaudithook(fail)
"""


def test_where_no_fresh_worker_can_start_what_was_done_and_what_failed_is_still_told(
    experiments: Path, cache_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "breaks").mkdir()
    (tmp_path / "breaks" / "sitecustomize.py").write_text(BREAKS)
    call = run_module(
        "run", "--experiments", experiments, "--profile", "tiny", "--results-dir", tmp_path / "results",
        "--table", "main", "--datasets", "hwu64", "--methods", "bert", "ls", "avuc", "--jobs-per-device", 1,
        env={"BENCHMARK_CACHE_DIR": str(cache_dir), "PYTHONPATH": str(tmp_path / "breaks")},
    )  # fmt: skip
    assert call.returncode == 1, call.stdout + call.stderr
    failed, stopped, count = call.stdout.splitlines()[-3:]
    assert re.fullmatch(r"failed: ls on .*: OSError: .*a broken disk \(log: \S+\.log\)", failed)
    assert stopped.startswith("No worker is left; runs not done: 1. A worker could not start: ")
    assert count.startswith("1 trained, 1 failed, 0 done before.")
    assert "Traceback" not in call.stdout + call.stderr


WRONG = [
    (["run", "--profile", "compct"], 'there is no profile "compct"; did you mean "compact"?'),
    (["run", "--table", "nosie"], 'there is no table "nosie"; did you mean "noise"?'),
    (["report", "--table", "nosie"], 'there is no table "nosie"; did you mean "noise"?'),
    (["run", "--methods", "hsrau"], 'did you mean "hs_rau"?'),
    (["run", "--datasets", "tnew"], 'did you mean "tnews"?'),
    (["run", "--seeds", "a"], '--seeds: "a" is no seed'),
    (["run", "--seeds", "3-1"], '--seeds: "3-1" is no seed'),
    (["run", "--data-dir", "not/there"], "--data-dir: not/there is not a folder."),
    (["run", "--data-dir", "~nobody/there"], "--data-dir: ~nobody/there is not a folder."),
    (["run", "--data-dir", ""], "--data-dir: nothing was given; a folder is needed."),
    (["run", "--encoder-dir", ""], "--encoder-dir: nothing was given; a folder is needed."),
    (["report", "--tables-dir", ""], "argument --tables-dir: nothing was given; a folder is needed"),
    (["run", "--dry-run", "--results-dir", "README.md"], "argument --results-dir: README.md is a file, not a folder"),
    (["run", "--data-dir", "a\udcff"], r"--data-dir: 'a\udcff' is not Unicode; rename that folder."),
    (["run", "--results-dir", "a\udcff"], r"argument --results-dir: 'a\udcff' is not Unicode; rename that folder"),
    (
        ["run", "--list", "--redo", "--seeds", "0"],
        "--list says all that there is in a profile; leave out --seeds, --redo.",
    ),
    (["run", "--list", "--table", "noise"], "leave out --table."),
    (["run", "--list", "--profile", "compct"], 'there is no profile "compct"; did you mean "compact"?'),
    (["prepare", "--encoder-dir", "not/there"], "--encoder-dir: not/there is not a folder."),
    (["run", "--jobs-per-device", "0"], "0 is not a whole number from 1 to 9999"),
]


def test_a_folders_name_that_is_too_long_is_no_traceback() -> None:
    """The system refuses to look for it; whoever writes there says so."""
    parser = new_parser("report", "")
    add_output_option(parser)
    assert parser.parse_args(["--tables-dir", "a" * 300]).tables_dir == Path("a" * 300)


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_wrong_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, benchmark_command: Command
) -> None:
    call = benchmark_command(*arguments)
    assert call.returncode == 2
    assert sentence in call.stderr
    assert "Traceback" not in call.stderr


def test_what_is_missing_is_named_before_any_training(tmp_path: Path) -> None:
    environment = {
        "BENCHMARK_DATA_DIR": "", "BENCHMARK_ENCODER_DIR": "", "HF_HOME": str(tmp_path / "hf"),
        "BENCHMARK_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip
    call = run_module("run", "--profile", "small", "--results-dir", tmp_path / "results", env=environment)
    assert call.returncode == 2
    assert 'The data set "banking77" is not on this machine' in call.stderr
    assert "python -m benchmark.prepare" in call.stderr
    assert 'The encoder "multilingual_e5_small_3_layers"' in call.stderr
    assert not (tmp_path / "results").exists()


def test_a_results_folder_that_cannot_be_made_is_one_sentence(
    tiny_experiments: Path, cache_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    options = ["--experiments", tiny_experiments, "--profile", "tiny", "--results-dir", tmp_path / "file" / "results"]
    call = run_module("run", *options, env={"BENCHMARK_CACHE_DIR": str(cache_dir)})
    assert (call.returncode, "Traceback" in call.stderr) == (2, False)
    assert "file/results/tiny cannot hold results: Not a directory." in call.stderr


def test_a_profile_that_cannot_be_planned_keeps_nobody_from_the_others(experiments: Path, tmp_path: Path) -> None:
    (experiments / "own").mkdir()
    (experiments / "own" / "half.yaml").write_text(
        "profiles:\n  half: {description: Half., seeds: [0], datasets: {tnews: tiny_tnews}, "
        "encoders: {base: tiny_base}, training: [{batch_size: 8}]}\n"
    )
    options = ["--experiments", experiments, "--results-dir", tmp_path]
    others = run_module("run", "--list", "--profile", "tiny", *options)
    assert others.returncode == 0, others.stderr
    assert "(Not all of it can be trained: profiles.half.training gives no betas" in others.stdout
    own = run_module("run", "--list", "--profile", "half", *options)
    assert (own.returncode, "profiles.half.training gives no betas" in own.stdout) == (0, True)
    for command in ("run", "prepare"):
        call = run_module(command, "--profile", "half", *options[: 4 if command == "run" else 2])
        assert (call.returncode, "profiles.half.training gives no betas" in call.stderr) == (2, True)


def test_a_profile_of_optional_tables_alone_can_be_listed_and_prepared(
    experiments: Path, tmp_path: Path, cache_dir: Path
) -> None:
    profiles = yaml.safe_load((experiments / "profiles.yaml").read_text())["profiles"]
    alone = profiles["tiny"] | {"datasets": {"mine": "tiny_tnews"}}
    table = {"number": "X", "caption": "X.", "optional": True, "rows": [[{"method": "bert"}]]}
    table["columns"] = [{"label": "Mine", "dataset": "mine", "metrics": ["f1"]}]
    (experiments / "own").mkdir()
    (experiments / "own" / "alone.yaml").write_text(
        yaml.safe_dump({"profiles": {"alone": alone}, "tables": {"x": table}})
    )
    options = ["--experiments", experiments, "--results-dir", tmp_path, "--profile", "alone"]
    for call in (
        run_module("run", "--list", *options),
        run_module("prepare", *options, env={"BENCHMARK_CACHE_DIR": str(cache_dir)}),
        run_module("report", "--format", "csv", *options),  # which is of no table
    ):
        assert call.returncode == 0, call.stderr
    call = run_module("report", *options)
    assert (call.returncode, "optional tables alone" in call.stderr, "--table x." in call.stderr) == (2, True, True)


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        (
            "--profile tiny --table noise main --seeds 0 --tables-dir out --data-dir=in",
            [
                "run --profile tiny --table noise main --seeds 0 --tables-dir out --data-dir=in --dry-run",
                "prepare --profile tiny --data-dir in",
                "run --profile tiny --table noise main --seeds 0 --tables-dir out --data-dir=in",
                "report --format latex --table noise main --profile tiny --tables-dir out --data-dir in",
                "report --differences --table noise main --profile tiny --tables-dir out --data-dir in",
                "report --claims --profile tiny --tables-dir out --data-dir in",
                "report --figures --table noise main --profile tiny --tables-dir out --data-dir in",
                "report --format html --table noise main --profile tiny --tables-dir out --data-dir in",
            ],
        ),
        ("--seeds 0 --redo", None),
        ("--data my.csv --seeds 0", ["run --data my.csv --seeds 0"]),
        ("--profile small --search=rates", ["run --profile small --search=rates"]),
        ("--list", ["run --list"]),
        ("--dry-run --profile tiny", ["run --dry-run --profile tiny"]),
    ],
)
def test_everything_in_one_command_passes_options_on(options: str, calls: list[str] | None, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\ntest "$PYTHONSAFEPATH" = 1\n')
    python.chmod(0o755)
    environment = os.environ | {"BENCHMARK_PYTHON": str(python)}
    subprocess.run([PROJECT / "run_all.sh", *options.split()], env=environment, check=True)
    made = (tmp_path / "calls").read_text().replace("-m benchmark.", "").splitlines()
    if calls is None:
        calls = [f"run {options} --dry-run", "prepare", f"run {options}"] + [
            f"report {what}" for what in ("--format latex", "--differences", "--claims", "--figures", "--format html")
        ]
    assert made == calls


@pytest.mark.parametrize(("code", "reports"), [(0, 5), (1, 5), (2, 0), (130, 0)])
def test_everything_in_one_command_ends_as_its_runs_did(code: int, reports: int, tmp_path: Path) -> None:
    """Some runs failed: the others are reported, and the code says so. Wrong input or Ctrl-C: nothing is reported."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\n'
        f'case "$*" in *--dry-run) ;; *benchmark.run*) exit {code} ;; esac\n'
    )
    python.chmod(0o755)
    call = subprocess.run([PROJECT / "run_all.sh"], env=os.environ | {"BENCHMARK_PYTHON": str(python)}, check=False)
    assert call.returncode == code
    assert (tmp_path / "calls").read_text().count("benchmark.report") == reports


def test_paths_of_the_one_command_are_those_of_the_folder_it_is_called_in(tmp_path: Path) -> None:
    (tmp_path / "benchmark").mkdir()  # another package of that name, which is not meant
    (tmp_path / "benchmark" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    environment = os.environ | {"BENCHMARK_PYTHON": sys.executable}
    command = [PROJECT / "run_all.sh", "--data", "my.csv", "--dry-run"]
    call = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (call.returncode, call.stderr) == (2, f"error: {tmp_path}/my.csv is not a file.\n")
    shutil.copytree(PROJECT / "experiments", tmp_path / "mine")
    command = [PROJECT / "run_all.sh", "--experiments", "mine", "--results-dir", "made", "--list"]
    environment |= {"CDPATH": str(PROJECT.parent)}
    call = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (call.returncode, call.stderr) == (0, "")


def test_prepare_checks_and_reports(benchmark_command: Command) -> None:
    call = benchmark_command("prepare")
    assert call.returncode == 0, call.stderr
    assert "rows: 96 / 40 / 80 (training / validation / test), 6 labels" in call.stdout
    assert "tokens a text, 0 of 96 training texts cut at 16" in call.stdout
    assert call.stdout.rstrip().endswith("All inputs are here and in order.")


def test_the_profile_is_chosen_by_what_is_visible(tiny_experiments: Path, tmp_path: Path) -> None:
    call = run_module("run", "--dry-run", "--results-dir", tmp_path)
    assert call.stdout.startswith("Profile demo (no GPU is visible): 51 trainings")
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA Test (UUID: GPU-1)'\n")
    tool.chmod(0o755)
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    call = run_module("run", "--dry-run", "--results-dir", tmp_path, env={"PATH": path, "CUDA_VISIBLE_DEVICES": "0"})
    assert call.stdout.startswith("Profile paper (a GPU is visible): 255 trainings"), call.stderr


def children_of(pid: int) -> list[int]:
    call = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in call.stdout.split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_where_nobody_reads_a_run_it_ends_as_other_commands_do_and_not_as_done(
    tiny_experiments: Path, cache_dir: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "benchmark.run", "--profile", "tiny", "--experiments", tiny_experiments,
               "--results-dir", tmp_path / "results", "--table", "main", "--datasets", "hwu64"]  # fmt: skip
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "BENCHMARK_CACHE_DIR": str(cache_dir)}
    process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) == 128 + signal.SIGPIPE
    assert not process.stderr.read()
    assert len(results_in(tmp_path)) < 5


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_end_from_outside_keeps_what_is_finished_and_leaves_no_child(
    number: signal.Signals, tiny_experiments: Path, cache_dir: Path, tmp_path: Path, benchmark_command: Command
) -> None:
    wanted = ["--table", "main", "--datasets", "hwu64"]
    command = [sys.executable, "-m", "benchmark.run", "--profile", "tiny", "--experiments", tiny_experiments,
               "--results-dir", tmp_path / "results", *wanted]  # fmt: skip
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "BENCHMARK_CACHE_DIR": str(cache_dir)}
    process = subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if " done    " in line:
            break
    children = children_of(process.pid)
    assert children
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    deadline = time.monotonic() + 30
    while any(alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(child) for child in children)
    kept = results_in(tmp_path)
    assert 1 <= len(kept) < 5
    left = benchmark_command("run", *wanted, "--dry-run")
    assert f"{5 - len(kept)} trainings planned, {len(kept)} already done" in left.stdout
    if number == signal.SIGKILL:
        call = benchmark_command("run", *wanted)
        assert call.returncode == 0
        assert f"{len(kept)} done before" in call.stdout
        now = results_in(tmp_path)
        for name, result in kept.items():  # one that was stored and not scored yet is scored, and not trained again
            assert now[name] == result | {"views": result["views"] or now[name]["views"]}
            assert now[name]["views"]


def test_every_shipped_profile_resolves_every_run(tmp_path: Path) -> None:
    registry = load_registry(EXPERIMENTS)
    assert list(registry.profiles) == ["paper", "compact", "small", "small_tnews", "demo"]
    for profile in registry.profiles:
        call = run_module("run", "--profile", profile, "--dry-run", "--results-dir", tmp_path / "results")
        assert call.returncode == 0, call.stderr
    assert not list(tmp_path.iterdir())


def test_the_list_says_what_there_is_and_what_is_done(finished: Path, benchmark_command: Command) -> None:
    for path in (finished / "results" / "tiny").glob("*avuc*.json"):
        path.unlink()
    call = benchmark_command("run", "--list")
    assert call.returncode == 0, call.stderr
    lines = {line.split()[0]: line.split()[1:] for line in call.stdout.splitlines() if line.strip()}
    left = 51 - 8  # AVUC on three data sets and at four noise levels; RAU=>AVUC
    assert lines["tiny"][:2] == [str(left), "51"]
    assert lines["noise"][1:3] == ["16", "20"]  # number, done, of
    assert lines["avuc"][1:3] == ["0", "7"]
    assert lines["hs_rau"][1:3] == ["10", "10"]
    assert call.stdout.index("Profiles (--profile)") < call.stdout.index("Tables of profile tiny")


def test_a_search_trains_its_candidates_once_and_says_what_the_validation_rows_choose(
    finished: Path, experiments: Path, cache_dir: Path
) -> None:
    own = experiments / "own"
    own.mkdir()
    (own / "mine.yaml").write_text(
        "searches:\n"
        "  mine:\n"
        "    description: How long.\n"
        "    methods: [bert]\n"
        "    datasets: [banking77]\n"
        "    axes: [{label: epochs, set: [training.epochs], to: [1, 4]}]\n"
        "    choose_by: nll\n"
        "    metrics: [nll, f1]\n"
    )
    options = ["--profile", "tiny", "--experiments", experiments, "--results-dir", finished / "results"]
    env = {"BENCHMARK_CACHE_DIR": str(cache_dir)}
    call = run_module("run", *options, "--search", "mine", env=env)
    assert call.returncode == 0, call.stdout + call.stderr
    assert "bert (epochs 1) on tiny_banking77, tiny_base, seed 0" in call.stdout
    assert "1 trained, 0 failed, 1 done before. What was found: " in call.stdout
    assert "--profile tiny --search mine" in call.stdout
    report = run_module("report", *options, "--tables-dir", finished / "tables", "--search", "mine", env=env)
    assert report.returncode == 0, report.stderr
    written = (finished / "tables" / "tiny" / "search_mine.md").read_text()
    assert written.strip() == report.stdout.strip()
    assert (
        "**BERT, tiny banking77.** Chosen by NLL: epochs 4, which is what the profile has. On 40 rows an accuracy"
        in written
    )
    line = next(line for line in written.splitlines() if line.startswith("| 4 "))
    validation = next(
        view["scores"]
        for result in results_in(finished).values()
        if result["run"]["data"]["dataset"] == "tiny_banking77"
        and [term["term"] for term in result["run"]["loss"]] == ["cross_entropy"]
        and not result["run"]["loss"][0]["smoothing"]
        and result["run"]["optimisation"]["epochs"] == 4
        for view in result["views"]
        if view["view"]["split"] == "validation"
    )
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "4", f"**{validation['nll']:.3f}**", f"{100 * validation['f1']:.2f}", "chosen, the profile's",
    ]  # fmt: skip
    more = run_module("run", *options, "--search", "mine", "--seeds", "7", "--methods", "bert", env=env)
    assert more.returncode == 0, more.stderr
    for seed_7 in (finished / "results" / "tiny").glob(
        "tiny_banking77.clean.tiny_base.linear.cross_entropy.seed7*.json"
    ):
        if json.loads(seed_7.read_text())["run"]["optimisation"]["epochs"] == 4:
            seed_7.unlink()  # what is left of seed 7 is a candidate's
    main = run_module("report", *options, "--tables-dir", finished / "tables", "--table", "main", env=env)
    assert "missing" not in main.stdout
    assert "One seed (0)." in main.stdout
    scores = run_module("report", *options, "--tables-dir", finished / "tables", "--format", "csv", env=env).stdout
    rows = list(csv.DictReader(scores.splitlines()))
    assert {row["methods"] for row in rows if row["epochs"] == "1"} == {""}
    assert {row["seed"] for row in rows if row["score"] == "f1"} == {"0", "7"}


def test_claims_are_judged_from_the_results(finished: Path, benchmark_command: Command) -> None:
    call = benchmark_command("report", "--claims")
    assert call.returncode == 0, call.stderr
    assert call.stdout.startswith("### Claims of the paper")
    assert (finished / "tables" / "tiny" / "claims.md").read_text() in call.stdout
    assert "missing:" not in call.stdout  # every run is there, so that no verdict lacks one
    latex = benchmark_command("report", "--claims", "--format", "latex")
    assert r"\begin{tabular}" in latex.stdout
    assert (finished / "tables" / "tiny" / "claims.tex").is_file()


def test_a_run_that_must_be_trained_for_another_view_is_trained(
    finished: Path, experiments: Path, cache_dir: Path
) -> None:
    """Results without their logits, as a checkout has them, cannot be scored again."""
    shutil.rmtree(finished / "results" / "tiny" / "logits")
    path = experiments / "metrics.yaml"
    path.write_text(path.read_text().replace("ece_bins: 10", "ece_bins: 20"))
    options = ["--experiments", experiments, "--profile", "tiny", "--results-dir", finished / "results"]
    call = run_module(
        "run", *options, "--table", "main", "--datasets", "banking77", "--methods", "ts", "ls",
        env={"BENCHMARK_CACHE_DIR": str(cache_dir)},
    )  # fmt: skip
    assert call.returncode == 0, call.stderr
    assert "2 trained, 0 failed" in call.stdout
    assert "by another command" not in call.stdout
    bins = {view["view"]["ece_bins"] for result in results_in(finished).values() for view in result["views"]}
    assert bins == {10, 20}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_worker_understands_paths_that_the_terminal_cannot_show(
    experiments: Path, cache_dir: Path, tmp_path: Path, encoding: str
) -> None:
    results = tmp_path / "Ergebnisse für 意图"
    options = ["--experiments", experiments, "--profile", "tiny", "--results-dir", results]
    call = run_module(
        "run", *options, "--table", "main", "--datasets", "banking77", "--methods", "bert", "--jobs-per-device", "1",
        env={"BENCHMARK_CACHE_DIR": str(cache_dir), "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    assert call.returncode == 0, call.stdout + call.stderr
    assert len(list((results / "tiny").glob("*.json"))) == 1


def test_finished_runs_need_no_inputs(finished: Path, experiments: Path, cache_dir: Path) -> None:
    for file in (finished / "results" / "tiny").glob("tiny_banking77.clean.tiny_base.linear.cross_entropy.*"):
        file.unlink()
    datasets = yaml.safe_load((experiments / "datasets.yaml").read_text())
    datasets["datasets"]["tiny_tnews"]["source"] = {
        "kind": "files", "folder": "x", "format": "csv",
        "train": ["a.csv"], "test": ["b.csv"], "text": "t", "intent": ["i"],
    }  # fmt: skip
    (experiments / "datasets.yaml").write_text(yaml.safe_dump(datasets, sort_keys=False))
    options = ["--experiments", experiments, "--profile", "tiny", "--results-dir", finished / "results"]
    environment = {"BENCHMARK_CACHE_DIR": str(cache_dir), "BENCHMARK_DATA_DIR": ""}
    call = run_module("run", *options, "--table", "main", env=environment)
    assert call.returncode == 0, call.stdout + call.stderr
    assert "2 trained, 0 failed" in call.stdout  # BERT and LS on the one data set that lacked results


def test_a_report_of_nothing_overwrites_nothing(
    finished: Path, tiny_experiments: Path, benchmark_command: Command
) -> None:
    benchmark_command("report", "--table", "main")
    before = (finished / "tables" / "tiny" / "main.md").read_text()
    call = benchmark_command("report", "--table", "main", "--seeds", "7")
    assert "No results of these seeds" in call.stderr
    assert call.stdout == ""
    for path in (finished / "results" / "tiny").glob("*.json"):
        if ".seed0." not in path.name or "hwu64" not in path.name or "linear.cross_entropy." not in path.name:
            path.unlink()
    changed = Path(shutil.copytree(tiny_experiments, finished / "experiments")) / "profiles.yaml"
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace("batch_size: 16", "batch_size: 15"), encoding="utf-8")
    options = ["--profile", "tiny", "--experiments", changed.parent, "--results-dir", finished / "results"]
    call = run_module("report", *options, "--tables-dir", finished / "tables")
    assert re.search(r"There (is one result|are \d+ results), of other settings than the tables now have", call.stderr)
    failed = {"status": "failed", "failure": {"kind": "input", "reason": "Half a row.", "log": None}}
    kept = list((finished / "results" / "tiny").glob("*.json"))
    for path in kept:
        result = json.loads(path.read_text(encoding="utf-8"))
        about = {name: result[name] for name in ("schema_version", "run_id", "run", "environment")}
        path.write_text(json.dumps(about | failed), encoding="utf-8")
    none = benchmark_command("report")
    assert f"{len(kept)} runs failed: Half a row (input)" in none.stderr
    assert "of other settings" not in none.stderr
    other = benchmark_command("report", "--profile", "demo")
    assert "so there is nothing to show or write: python -m benchmark.run --profile demo" in other.stderr
    seeds = benchmark_command("report", "--seeds", "7", "8-9")
    assert re.search(
        r"benchmark\.run --profile tiny --seeds 7 8-9 --experiments \S+ --results-dir \S+$", seeds.stderr, re.M
    )
    assert "There are results of: --profile tiny" in other.stderr
    assert (finished / "tables" / "tiny" / "main.md").read_text() == before


def test_seeds_of_contents_that_are_not_shown_do_not_count(
    registry: Registry, cache_dir: Path, tmp_path: Path, benchmark_command: Command
) -> None:
    """TNEWS as it is here has results of seed 0, as it was those of seed 1."""
    here = find_inputs(registry, ["tiny_tnews"], [], places(None, None, cache_dir)).inputs.datasets["tiny_tnews"]
    folder = ResultFolder(tmp_path / "results", "tiny")
    folder.make()
    for seed, content in ((0, here), (1, "f" * 64)):
        for method in ("bert", "ls"):
            inputs = tiny_inputs({"tnews": content})
            folder.put(made_result(registry, Subject("tnews", "base", method), seed, inputs), None)
    before = tiny_inputs({"tnews": "f" * 64})
    bert = Subject("tnews", "base", "bert")
    for inputs in (tiny_inputs({"tnews": here}), before):
        folder.save(made_result(registry, bert, 0, inputs, made_logits(0)), made_logits(0))
    listed = benchmark_command("run", "--list")
    lines = {line.split()[0]: line.split()[1:] for line in listed.stdout.splitlines() if line.strip()}
    assert lines["bert"][1:3] == ["1", "10"]  # done, of: on TNEWS as it is here
    call = benchmark_command("report", "--table", "main")
    assert call.returncode == 0, call.stderr
    assert "One seed (0)." in call.stdout
    assert "(n=1)" not in call.stdout
    assert "No results of these seeds" in benchmark_command("report", "--table", "main", "--seeds", "1").stderr
    assert benchmark_command("report", "--format", "csv").returncode == 0
    rows = (tmp_path / "tables" / "tiny" / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert {here[:16] in row for row in rows[1:]} == {True, False}  # scores.csv has all


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--format", "csv", "--compare"], "--compare does not go with csv"),
        (["--format", "csv", "--table", "main"], "--table does not go with csv, which has all scores"),
        (["--claims", "--table", "main"], "--claims looks at whole tables"),
        (["--format", "html", "--ranking"], "--ranking does not go with html: the page has none"),
        (["--format", "html", "--claims"], "--claims does not go with html"),
        (["--search", "rates", "--table", "main"], "--search stands in place of tables; leave out --table."),
        (["--search", "paper_rates"], "Search paper_rates is for profile paper, not for small."),
        (["--search", ""], "--search: at least one name is needed."),
        (["--table", ""], "--table: at least one name is needed."),
        (["--search", "rates", "--compare"], "--compare goes with the tables, in whose place --search stands."),
        (["--search", "rate"], 'there is no search "rate"; did you mean "rates"?'),
        (["--claims", "--search", "rates"], "--claims and --search each stand in place of the tables"),
        (["--claims", "--ranking"], "--claims and --ranking each stand in place of the tables"),
        (["--recommend", "--format", "latex"], "--recommend is written in Markdown only"),
        (["--recommend", "--by", "nll", "--format", "html"], "the page's advice is by ECE; leave out --format."),
        (["--by", "nll"], "--by says by which measure --recommend decides; give both, or neither."),
        (["--data-dir", "no/such/folder"], "--data-dir: no/such/folder is not a folder."),
        (["--seeds", "0", "--seeds=1"], "--seeds is given twice; give it once, with everything that belongs to it"),
        (["--table", "more_methods", "--compare"], "The paper has no numbers for more_methods; leave out --compare."),
    ],
)
def test_options_that_cannot_be_are_refused(options: list[str], sentence: str) -> None:
    call = run_module("report", "--profile", "small", *options)
    assert call.returncode == 2
    assert sentence in call.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seeds", "0-2000000000"], '"0-2000000000" are too many; at most 10,000 at a time.'),
        (["--seeds", "9" * 5000], "goes beyond 2147483647, the largest seed."),
        (["--jobs-per-device", "10000000000"], "10000000000 is not a whole number from 1 to 9999"),
    ],
)
def test_numbers_beyond_all_measure_are_refused(arguments: list[str], sentence: str) -> None:
    call = run_module("run", "--dry-run", "--profile", "demo", *arguments)
    assert (call.returncode, "Traceback" in call.stderr) == (2, False)
    assert sentence in call.stderr


def test_claims_about_other_data_are_one_sentence(experiments: Path, tmp_path: Path, registry: Registry) -> None:
    (experiments / "own").mkdir()
    (experiments / "own" / "desk.yaml").write_text(
        "profiles:\n  desk: {description: D., seeds: [0], datasets: {desk: tiny_tnews}, encoders: {base: tiny_base},\n"
        "    training: [{max_length: 16, learning_rate: 1.0e-3, weight_decay: 0, betas: [0.9, 0.999], epsilon: 1.0e-8, "
        "batch_size: 8, epochs: 3, warmup_share: 0.1, decay: none, max_gradient_norm: none, precision: auto}]}\n"
        "tables:\n  desk: {number: X, caption: Desk., rows: [[{method: bert}]], "
        "columns: [{label: Desk, dataset: desk, metrics: [f1]}]}\n"
    )
    own = load_registry(experiments)
    run = resolve_run(own, "desk", Subject("desk", "base", "bert"), 0, tiny_inputs())
    made = made_result(registry, Subject("tnews", "base", "bert"))
    data = made.data.model_copy(update={"fingerprint": run.data.fingerprint})
    result = made.model_copy(update={"run": run, "run_id": identity(run), "data": data})
    folder = ResultFolder(tmp_path / "results", "desk")
    folder.make()
    folder.put(result, None)
    options = ["--experiments", experiments, "--results-dir", tmp_path / "results", "--tables-dir", tmp_path / "tables"]
    for what, code, sentence in (
        ("--claims", 0, "The paper claims nothing about the data of profile desk."),  # asked for by run_all.sh, too
        ("--compare", 2, "error: The paper has no numbers for desk; leave out --compare."),
    ):
        call = run_module("report", "--profile", "desk", what, *options)
        assert (call.returncode, call.stdout, call.stderr.strip()) == (code, "", sentence)
    assert not (tmp_path / "tables").exists()


def test_a_reader_that_has_seen_enough_ends_the_command_without_a_word(tmp_path: Path) -> None:
    command = f"{sys.executable} -m benchmark.run --list --results-dir {tmp_path} | true; echo ${{PIPESTATUS[0]}}"
    call = subprocess.run(["bash", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (call.stdout.strip(), "Traceback" in call.stderr) == ("141", False)


def test_a_terminal_without_the_signs_of_a_table_gets_others(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = ["--profile", "small", "--table", "main", "--tables-dir", tmp_path / "file" / "tables"]
    call = run_module("report", *options, env={"PYTHONIOENCODING": "ascii"})
    assert re.search(r"\d\d\.\d\d \? \d\.\d\d", call.stdout), call.stdout
    assert (call.returncode, "Traceback" in call.stderr) == (2, False)  # nor can anything be written there


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    command = f"{sys.executable} -m benchmark.report --profile small --table main --tables-dir {tmp_path} > /dev/full"
    call = subprocess.run(["bash", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (call.returncode, "Traceback" in call.stderr) == (2, False), call.stderr
    assert "error: No space left on device; what was finished is kept" in call.stderr


def test_options_are_not_abbreviated() -> None:
    call = run_module("run", "--prof", "demo", "--dry-run")
    assert call.returncode == 2
    assert "unrecognized arguments: --prof" in call.stderr

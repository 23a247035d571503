"""Trackers note what the scheduler hears, in their own formats, and never cost a run."""

import asyncio
import io
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmark.errors import UserError
from benchmark.inputs import find_inputs, places
from benchmark.jobs import EpochDone, EpochMeans, Job, JobEnded, parse_event
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import Registry, Subject, select_tables
from benchmark.schedule import Device, Pool, Slot, Update, local_workers
from benchmark.specs import RunSpec, readable_name, term_name
from benchmark.store import KnownResults, Result, ResultFolder
from benchmark.tracking import TrackedRun, chosen_trackers, listening
from benchmark.tracking.listening import epoch_numbers
from benchmark.worker import Worker
from tests.conftest import PROJECT, Command
from tests.fake_worker import DIES_TWICE, NEEDS_PIECES, SUCCEEDS
from tests.results import made_result, worker_setup

SUBJECT = Subject("tnews", "base", "hs_rau")
EARLIER = EpochMeans(loss=9.0, terms=(9.0, None, 9.0), entropy=9.0, accuracy=0.0)
MEANS = [
    EpochMeans(loss=2.5, terms=(1.5, None, 1.0), entropy=1.25, accuracy=0.25),
    EpochMeans(loss=1.5, terms=(0.75, 0.5, 0.25), entropy=0.5, accuracy=0.75),
]


class Case:
    """A run of the tiny profile, its result on disk, and what the scheduler would hear of it."""

    def __init__(self, registry: Registry, root: Path) -> None:
        self.folder = ResultFolder(root, "tiny")
        self.result: Result = made_result(registry, SUBJECT)
        self.folder.save(self.result)
        run = self.result.run
        dataset, encoder = registry.datasets[run.data.dataset], registry.encoders[run.encoder.encoder]
        self.job = Job(run=run, views=(), dataset=dataset, encoder=encoder, redo=False)
        self.plan = [PlannedRun(run, "train", "new", (), ("hs_rau",), ("main",), dataset, encoder)]
        self.said: list[str] = []

    def hear(self, tracker: str, *events: EpochDone | JobEnded | None) -> None:
        """Let a tracker hear of events, to the end."""
        makers = chosen_trackers([tracker])
        with listening(makers, self.folder, self.plan, self.said.append) as (update,):
            for event in events:
                update(Update(self.job, 0, event))

    def expected_scores(self) -> dict[str, float]:
        return {
            f"{view.view.split}/{name}": value
            for view in self.result.views
            if view.view.calibrator is None
            for name, value in view.scores.items()
        }


@pytest.fixture
def case(registry: Registry, tmp_path: Path) -> Case:
    return Case(registry, tmp_path / "results")


def epoch(done: int, means: EpochMeans) -> EpochDone:
    return EpochDone(done=done, of=2, seconds=10.0 * done, means=means)


def ended(outcome: str) -> JobEnded:
    return JobEnded(outcome=outcome, seconds=20.0)


DIED_THEN_DONE = [
    None,
    epoch(1, EARLIER),
    epoch(2, EARLIER),
    ended("died"),
    None,
    epoch(1, MEANS[0]),
    epoch(2, MEANS[1]),
    ended("success"),
]


# --- TensorBoard -----------------------------------------------------------------------------------------------------


def read_events(folder: Path):
    """TensorBoard's own reader of a folder, with all that is in it."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(folder))
    reader.Reload()
    return reader


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    reader = read_events(folder)
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def test_tensorboard_reads_back_what_was_heard_of_the_last_attempt(case: Case) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install -r requirements-tracking.txt")
    case.hear("tensorboard", *DIED_THEN_DONE)
    folder = case.folder.folder / "logs" / "tensorboard" / readable_name(case.job.run)
    found = scalars(folder)
    first, second, third = (f"terms/{term_name(term)}" for term in case.job.run.loss)
    exact = {
        "training/loss": [(1, 2.5), (2, 1.5)],
        "training/entropy": [(1, 1.25), (2, 0.5)],
        "training/accuracy": [(1, 0.25), (2, 0.75)],
        "training/seconds": [(1, 10.0), (2, 20.0)],
        first: [(1, 1.5), (2, 0.75)],
        second: [(2, 0.5)],
        third: [(1, 1.0), (2, 0.25)],
    }
    assert {tag: found.pop(tag) for tag in exact} == exact
    expected = case.expected_scores()
    assert "test/f1" in expected
    assert {tag: value for tag, ((step, value),) in found.items()} == pytest.approx(expected, rel=1e-6)
    assert {step for ((step, _),) in found.values()} == {2}
    assert case.said == []


def test_tensorboard_shows_the_configuration_as_text(case: Case) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install -r requirements-tracking.txt")
    case.hear("tensorboard", epoch(1, MEANS[0]), ended("failed"))
    reader = read_events(case.folder.folder / "logs" / "tensorboard" / readable_name(case.job.run))
    texts = {
        tag.removeprefix("about/"): reader.Tensors(tag)[0].tensor_proto.string_val[0].decode()
        for tag in reader.Tags()["tensors"]
    }
    assert json.loads(texts["run"]) == case.job.run.model_dump(mode="json")
    assert json.loads(texts["methods"]) == ["hs_rau"]
    assert texts["run_id"] == case.result.run_id
    assert texts["outcome"] == "failed"


def test_an_open_board_forgets_the_earlier_attempt(case: Case) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install -r requirements-tracking.txt")
    case.hear("tensorboard", epoch(1, EARLIER), epoch(2, EARLIER), ended("died"))
    reader = read_events(case.folder.folder / "logs" / "tensorboard" / readable_name(case.job.run))
    assert len(reader.Scalars("training/loss")) == 2
    case.hear("tensorboard", epoch(1, MEANS[0]))
    reader.Reload()
    assert [event.value for event in reader.Scalars("training/loss")] == [2.5]


@pytest.mark.parametrize("outcome", ["claimed", "already_done"])
def test_another_schedulers_log_is_left_alone(case: Case, outcome: str) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install -r requirements-tracking.txt")
    folder = case.folder.folder / "logs" / "tensorboard" / readable_name(case.job.run)
    case.hear("tensorboard", epoch(1, MEANS[0]))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    case.hear("tensorboard", None, ended(outcome))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# --- Weights & Biases ------------------------------------------------------------------------------------------------


def read_wandb(path: Path) -> tuple[dict, list[dict], dict, int]:
    """Configuration, history, summary and exit code of an offline run: the file is a LevelDB log of messages."""
    from wandb.proto.wandb_internal_pb2 import Record

    content = path.read_bytes()
    messages, part, place = [], b"", 7
    while place + 7 <= len(content):
        if 2**15 - place % 2**15 < 7:  # no header fits into the rest of a block
            place += 2**15 - place % 2**15
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        part += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            messages.append(Record.FromString(part))
            part = b""
    config, history, summary, code = {}, [], {}, -1
    for message in messages:
        kind = message.WhichOneof("record_type")
        if kind == "run":
            config = {item.key: json.loads(item.value_json) for item in message.run.config.update}
            config |= {"name": message.run.display_name, "group": message.run.run_group}
        if kind == "history":
            row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in message.history.item}
            history.append(row)
        if kind == "summary":
            summary |= {item.key or item.nested_key[0]: json.loads(item.value_json) for item in message.summary.update}
        if kind == "exit":
            code = message.exit.exit_code
    return config, history, summary, code


def test_wandb_keeps_each_attempt_offline(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="needs wandb: pip install -r requirements-tracking.txt")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "true")
    beside = case.job.model_copy(update={"run": case.job.run.model_copy(update={"seed": 1})})
    with listening(chosen_trackers(["wandb"]), case.folder, case.plan, case.said.append) as (update,):
        for event in DIED_THEN_DONE:
            update(Update(case.job, 0, event))
            if event == DIED_THEN_DONE[1]:  # another run is open all the while, and is interrupted in the end
                update(Update(beside, 1, epoch(1, EARLIER)))
    assert case.said == []
    files = (case.folder.folder / "logs" / "wandb").glob("offline-run-*/run-*.wandb")
    runs = sorted((read_wandb(path) for path in files), key=lambda run: run[3])
    outcomes = sorted((name["name"], summary["outcome"], code) for name, _, summary, code in runs)
    assert outcomes == sorted(
        [
            (readable_name(case.job.run), "died", 1),
            (readable_name(case.job.run), "success", 0),
            (readable_name(beside.run), "interrupted", 1),
        ]
    )
    config, history, summary, _ = runs[0]
    assert config["name"] == readable_name(case.job.run)
    assert config["group"] == "tiny"
    assert config["run"] == case.job.run.model_dump(mode="json")
    assert config["methods"] == ["hs_rau"]
    assert config["run_id"] == case.result.run_id
    assert [row["_step"] for row in history] == [1, 2]
    for row, means, seconds in zip(history, MEANS, (10.0, 20.0), strict=True):
        numbers = epoch_numbers(case.job.run, means, seconds)
        assert {name: row[name] for name in numbers} == numbers
    expected = case.expected_scores()
    assert {name: summary[name] for name in expected} == expected
    assert summary["outcome"] == "success"


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("sometimes", 'WANDB_MODE is "sometimes"; --track wandb knows offline (the default), online and disabled.'),
        ("online", "WANDB_MODE=online needs a key: set WANDB_API_KEY, or call wandb login."),
    ],
)
def test_modes_of_wandb_are_checked_before_any_work(
    mode: str, sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("wandb", reason="needs wandb: pip install -r requirements-tracking.txt")
    monkeypatch.setenv("WANDB_MODE", mode)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.raises(UserError) as caught:
        chosen_trackers(["wandb"])
    assert str(caught.value).startswith(sentence)


# --- whatever the tracker --------------------------------------------------------------------------------------------


class Notes:
    """A tracker that keeps all in memory, or fails at the epoch that it is told."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.lines: list[tuple[int, str]] = []

    def begin(self, run: TrackedRun) -> "NotesOfRun":
        self.lines.append((run.run.seed, "begin"))
        return NotesOfRun(self, run.run)


class NotesOfRun:
    def __init__(self, notes: Notes, run: RunSpec) -> None:
        self.notes = notes
        self.seed = run.seed

    def epoch(self, done: int, numbers: Mapping[str, float]) -> None:
        if self.notes.fails:
            raise OSError(28, "No space left on device")
        self.notes.lines.append((self.seed, f"epoch {done}"))

    def end(self, outcome: str, scores: Mapping[str, float]) -> None:
        self.notes.lines.append((self.seed, outcome))


def test_a_tracker_that_fails_is_switched_off_and_everything_else_goes_on(case: Case, tmp_path: Path) -> None:
    """Through the pool, with workers that die: one tracker's disk is full, the other hears of all."""
    seeds = [SUCCEEDS, NEEDS_PIECES, DIES_TWICE]
    jobs = [case.job.model_copy(update={"run": case.job.run.model_copy(update={"seed": seed})}) for seed in seeds]
    setup = worker_setup(tmp_path)
    updates: list[Update] = []
    broken, whole = Notes(fails=True), Notes()
    makers = {"broken": lambda logs: broken, "whole": lambda logs: whole}

    with listening(makers, case.folder, case.plan, case.said.append) as listeners:

        def tell(update: Update) -> None:
            event = update.event
            if isinstance(event, EpochDone):  # the fake worker records nothing
                event = event.model_copy(update={"means": MEANS[0]})
            updates.append(update)
            for listener in listeners:
                listener(Update(update.job, update.slot, event))

        command = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))
        slots = [Slot(Device("cpu", "CPU"), 1)]
        hire = local_workers(slots, lambda slot: setup, tmp_path / "logs", command)
        asyncio.run(Pool(len(slots), hire, tell, case.said.append).run(jobs))

    assert [update.event.outcome for update in updates if isinstance(update.event, JobEnded)].count("success") == 3
    assert case.said == [
        "--track broken failed and is switched off, the runs go on: [Errno 28] No space left on device"
    ]
    assert broken.lines == [(SUCCEEDS, "begin")]
    attempts = {
        seed: [line for noted, line in whole.lines if noted == seed and line not in ("begin", "epoch 1")]
        for seed in seeds
    }
    assert attempts == {
        SUCCEEDS: ["success"],
        NEEDS_PIECES: ["out_of_memory", "out_of_memory", "success"],
        DIES_TWICE: ["died", "died", "success"],
    }
    assert all(
        [line for noted, line in whole.lines if noted == seed].count("begin") == len(attempts[seed]) for seed in seeds
    )


def test_what_is_at_work_at_the_end_was_interrupted(case: Case) -> None:
    notes = Notes()
    with listening({"notes": lambda logs: notes}, case.folder, case.plan, case.said.append) as (update,):
        update(Update(case.job, 0, epoch(1, MEANS[0])))
    assert [line for _, line in notes.lines] == ["begin", "epoch 1", "interrupted"]


def test_a_tracker_that_is_slow_holds_up_nobody(case: Case) -> None:
    go_on = threading.Event()

    class Slow(Notes):
        def begin(self, run: TrackedRun) -> NotesOfRun:
            go_on.wait(10)
            return super().begin(run)

    notes = Slow()
    with listening({"slow": lambda logs: notes}, case.folder, case.plan, case.said.append) as (update,):
        update(Update(case.job, 0, epoch(1, MEANS[0])))  # comes back though the tracker waits
        assert notes.lines == []
        go_on.set()
    assert notes.lines != []


def test_numbers_that_are_none_are_not_noted(case: Case) -> None:
    run = case.job.run.model_copy(update={"loss": case.job.run.loss[:1]})
    means = EpochMeans(loss=float("nan"), terms=(1.0,), entropy=float("inf"), accuracy=0.5)
    said = parse_event(EpochDone(done=1, of=1, seconds=3.0, means=means).model_dump_json())
    assert isinstance(said, EpochDone)
    assert said.means is not None
    assert epoch_numbers(run, said.means, 3.0) == {
        "training/accuracy": 0.5,
        "training/seconds": 3.0,
        "terms/cross_entropy": 1.0,
    }


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["tensorboard", "wandb"])
def test_a_package_that_is_missing_is_one_sentence_before_any_work(
    package: str, tmp_path: Path, benchmark_command: Command
) -> None:
    blocked = tmp_path / "packages" / package
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text(f"raise ModuleNotFoundError(\"No module named '{package}'\")\n")
    call = benchmark_command("run", "--track", package, env={"PYTHONPATH": str(blocked.parent)})
    assert call.returncode == 2
    sentence = f"--track {package} needs {package}: pip install -r requirements-tracking.txt"
    assert call.stderr.strip() == f"error: {sentence} (No module named '{package}')"
    assert call.stdout == ""
    assert not (tmp_path / "results").exists()


def test_the_pinned_packages_are_the_ones_that_are_known() -> None:
    lines = (PROJECT / "requirements-tracking.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition("==")[0] for line in lines if not line.startswith("#")] == ["tensorboard", "wandb"]
    with pytest.raises(UserError, match='there is no "tensorbord"; did you mean "tensorboard"'):
        chosen_trackers(["tensorbord"])
    with pytest.raises(UserError, match="--track: at least one name is needed"):
        chosen_trackers([","])
    assert chosen_trackers(None) == {}


def test_trackers_need_no_torch() -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install -r requirements-tracking.txt")
    pytest.importorskip("wandb", reason="needs wandb: pip install -r requirements-tracking.txt")
    script = (
        "import sys, benchmark.tracking.board, benchmark.tracking.weights_and_biases\n"
        "print(sorted({'torch', 'tensorflow', 'transformers', 'pandas'} & set(sys.modules)))"
    )
    call = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=PROJECT, check=True)
    assert call.stdout.strip() == "[]"


# --- whole trainings -------------------------------------------------------------------------------------------------


def test_the_worker_says_what_the_loop_recorded(registry: Registry, cache_dir: Path, tmp_path: Path) -> None:
    where = places(None, None, cache_dir)
    inputs = find_inputs(registry, ["tiny_banking77"], ["tiny_base"], where).inputs
    tables = select_tables(registry, "tiny", ["main"], ["banking77"], ["hs_rau"])
    (planned,) = make_plan(registry, "tiny", tables, [0], inputs, KnownResults.of([]))
    setup = worker_setup(tmp_path / "results", where)
    job = Job(run=planned.run, views=planned.views, dataset=planned.dataset, encoder=planned.encoder, redo=False)
    said = io.StringIO()
    assert Worker(setup, said).handle(job).outcome == "success"
    events = [parse_event(line) for line in said.getvalue().splitlines()]
    result = ResultFolder(tmp_path / "results", "tiny").read(planned.run)
    assert result is not None
    assert result.training is not None
    recorded = [{name: getattr(record, name) for name in EpochMeans.model_fields} for record in result.training.epochs]
    assert len(recorded) == 4
    means = [event.means.model_dump() for event in events if isinstance(event, EpochDone) and event.means]
    assert [entry | {"terms": list(entry["terms"])} for entry in means] == recorded


def test_the_command_logs_to_both(tmp_path: Path, benchmark_command: Command) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install -r requirements-tracking.txt")
    pytest.importorskip("wandb", reason="needs wandb: pip install -r requirements-tracking.txt")
    chosen = ["--table", "main", "--datasets", "banking77", "--methods", "bert"]
    call = benchmark_command("run", *chosen, "--track", "tensorboard", "--track", "wandb", env={"WANDB_MODE": ""})
    assert call.returncode == 0, call.stdout + call.stderr
    assert call.stderr == ""
    assert "--track" not in call.stdout
    folder = tmp_path / "results" / "tiny"
    ((result,), unusable) = ResultFolder(folder.parent, "tiny").read_all()
    assert unusable == []
    assert result.training is not None
    losses = [record.loss for record in result.training.epochs]
    (path,) = (folder / "logs" / "wandb").glob("offline-run-*/run-*.wandb")
    config, history, summary, code = read_wandb(path)
    assert (config["name"], code) == (readable_name(result.run), 0)
    assert [row["training/loss"] for row in history] == losses
    found = scalars(folder / "logs" / "tensorboard" / readable_name(result.run))
    assert [value for _, value in found["training/loss"]] == pytest.approx(losses, rel=1e-6)
    for view in result.views:
        if view.view.calibrator is None:
            assert summary[f"{view.view.split}/ece"] == view.scores["ece"]
            assert found[f"{view.view.split}/ece"][0][1] == pytest.approx(view.scores["ece"], rel=1e-6)

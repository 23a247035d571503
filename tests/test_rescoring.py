"""Scoring stored logits again where something is in the way."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark import rescoring
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import Registry, Subject, select_tables
from benchmark.rescoring import score_again
from benchmark.specs import RESAMPLED, OwnCalibrator, identity
from benchmark.store import HELD, KnownResults, Outline, ResultFolder, claim
from tests.results import from_before, made_logits, made_result, tiny_inputs
from tests.test_commands import children_of


def half_scored(
    registry: Registry, folder: ResultFolder, seeds: list[int]
) -> tuple[list[PlannedRun], KnownResults[Outline]]:
    """Runs of BERT that lack the view of temperature scaling, and what is to be done of them."""
    for seed in seeds:
        whole = made_result(registry, Subject("tnews", "base", "bert"), seed)
        plain = [view for view in whole.views if view.view.calibrator is None]
        assert len(plain) < len(whole.views)
        logits = made_logits(seed, len(whole.data.label_names))
        folder.save(whole.model_copy(update={"views": plain}), logits)
    outlines, _ = folder.outlines()
    finished = KnownResults.of(outlines, [outline.run_id for outline in outlines])
    tables = select_tables(registry, "tiny", ["main"], datasets=["tnews"], methods=["bert", "ts"])
    plan = make_plan(registry, "tiny", tables, seeds, tiny_inputs(), finished)
    assert [planned.action for planned in plan] == ["score"] * len(seeds)
    return plan, finished


def test_a_run_that_another_command_holds_is_said_and_not_passed_over(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    plan, finished = half_scored(registry, folder, [0])
    monkeypatch.setattr(rescoring, "SCORING_PATIENCE", 0.0)
    with claim(folder.claims, plan[0].run):
        path = folder.path(plan[0].run)
        assert rescoring._score_one(folder, plan[0], folder.outlines()[0][0], tmp_path) == (False, [f"{path}: {HELD}"])
    assert score_again(folder, plan, finished, tmp_path) == (1, [])


def test_a_run_that_another_command_has_scored_meanwhile_is_done(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    plan, finished = half_scored(registry, folder, [0])
    assert score_again(folder, plan, finished, tmp_path) == (1, [])
    assert score_again(folder, plan, finished, tmp_path) == (0, [])


def test_resamples_that_lack_a_measure_which_came_later_are_made_anew(registry: Registry, tmp_path: Path) -> None:
    """Where there are logits; without them that is no reason to train again."""
    folder = ResultFolder(tmp_path, "tiny")
    plan, finished = half_scored(registry, folder, [0])
    score_again(folder, plan, finished, tmp_path)
    whole = folder.read(plan[0].run)
    of_tests = [view.resampled for view in whole.views if view.resampled]
    assert [resampled.measures.keys() for resampled in of_tests] == [set(RESAMPLED)] * 2
    folder.save(from_before(whole))
    outlines, _ = folder.outlines()
    tables = select_tables(registry, "tiny", ["main"], datasets=["tnews"], methods=["bert", "ts"])
    without, finished = KnownResults.of(outlines, []), KnownResults.of(outlines, [outlines[0].run_id])
    assert [one.action for one in make_plan(registry, "tiny", tables, [0], tiny_inputs(), without)] == ["skip"]
    plan = make_plan(registry, "tiny", tables, [0], tiny_inputs(), finished)
    assert score_again(folder, plan, finished, tmp_path) == (1, [])
    assert [view.resampled for view in folder.read(whole.run).views if view.resampled] == of_tests
    assert score_again(folder, plan, finished, tmp_path) == (0, [])


def test_damage_that_planning_passes_over_costs_its_own_run_only(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    plan, finished = half_scored(registry, folder, [0, 1])
    damaged = folder.path(plan[0].run)
    text = damaged.read_text(encoding="utf-8")
    assert text.count('"recall": [') > 0
    damaged.write_text(text.replace('"recall": [', '"recall": [null, ', 1), encoding="utf-8")
    scored, (failure,) = score_again(folder, plan, finished, tmp_path)
    assert scored == 1
    assert failure.startswith(f"{damaged}: ")


def die_over_seed_0(folder: ResultFolder, planned: PlannedRun, *_: object) -> tuple[bool, list[str]]:
    if planned.run.seed == 0:
        os._exit(1)
    return True, []


@pytest.mark.parametrize(("processes", "seeds"), [(2, [0, 1, 2]), (1, [0, 1]), (1, [0])])
def test_a_process_that_dies_of_scoring_costs_its_own_run_only(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int, seeds: list[int]
) -> None:
    """Killed for its memory, say, or by a calibrator of the user's own; also where one process is all that there is."""
    folder = ResultFolder(tmp_path, "tiny")
    plan, finished = half_scored(registry, folder, seeds)
    monkeypatch.setattr(rescoring, "_score_one", die_over_seed_0)
    monkeypatch.setattr(rescoring, "scoring_processes", lambda jobs: min(jobs, processes))
    scored, failures = score_again(folder, plan, finished, tmp_path)
    assert scored == len(seeds) - 1
    (dead,) = (planned.run for planned in plan if planned.run.seed == 0)
    assert failures == [f"{folder.path(dead)}: the process that scored it died"]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_calibrator_that_ends_its_process_costs_no_other_of_ones_own(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    """Whichever it is among them: it is named, and the others are scored, those of other runs, too."""
    (tmp_path / "parts.py").write_text(PARTS, encoding="utf-8")
    folder = ResultFolder(tmp_path / "results", "tiny")
    plan, finished = half_scored(registry, folder, [0, 1])
    plain = next(view for view in plan[0].views if view.calibrator is None)
    first, ends, last = (
        plain.model_copy(update={"calibrator": OwnCalibrator(kind="own", function=name, settings=settings)})
        for name, settings in (("parts:plain", {"factor": 1.0}), ("parts:ends", {}), ("parts:plain", {"factor": 2.0}))
    )
    plan = [replace(planned, views=(first, ends, last)) for planned in plan]
    monkeypatch.setattr(rescoring, "scoring_processes", lambda jobs: min(jobs, processes))
    scored, failures = score_again(folder, plan, finished, tmp_path)
    assert (scored, len(failures)) == (2, 2)
    for planned, failure in zip(plan, failures, strict=True):
        result = folder.read(planned.run)
        assert [result.view(view) is not None for view in (first, ends, last)] == [True, False, True]
        why = "a process ended while parts:ends was at work in it"
        assert result.unscored_because == {identity(ends): why}
        assert failure == f"{folder.path(planned.run)}: the process that scored it died ({why})"
    again = KnownResults.of(folder.outlines()[0], [identity(planned.run) for planned in plan])
    assert score_again(folder, plan, again, tmp_path) == (0, failures)


PARTS = """import os
from scipy.special import softmax


def plain(logits, labels, factor):
    return lambda scores: softmax(factor * scores, axis=1)


def ends(logits, labels):
    os._exit(1)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")
def test_the_processes_that_scored_end_soon(registry: Registry, tmp_path: Path) -> None:
    """And do not wait idle for more beside the trainings that follow."""

    def scoring() -> list[int]:
        commands = {child: Path(f"/proc/{child}/cmdline") for child in children_of(os.getpid())}
        return [
            child for child, command in commands.items() if command.exists() and b"popen_loky" in command.read_bytes()
        ]

    folder = ResultFolder(tmp_path, "tiny")
    plan, finished = half_scored(registry, folder, [0])
    assert score_again(folder, plan, finished, tmp_path) == (1, [])
    assert scoring()
    deadline = time.monotonic() + 20
    while scoring() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not scoring()

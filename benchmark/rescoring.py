"""Scoring stored logits again, by views or measures that came later; nothing is trained."""

import contextlib
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from pathlib import Path

import joblib

from benchmark import own_code
from benchmark.errors import UserError
from benchmark.plan import PlannedRun
from benchmark.schedule import scoring_processes
from benchmark.specs import identity
from benchmark.store import HELD, SCORING_PATIENCE, KnownResults, Outline, Result, ResultFolder, claim
from benchmark.stored_scores import score_and_save

_SECONDS_IDLE = 2


def score_again(
    folder: ResultFolder, plan: Sequence[PlannedRun], finished: KnownResults[Outline], own_folder: Path
) -> tuple[int, list[str]]:
    """Score the stored logits of the planned runs by the views that are new, and by those that lack a measure that came
    later; the other old views stay. Returns how many runs were, and what failed: views that could not be scored (the
    user's own calibrators, say, whose functions are in the folder ``own_folder``), processes that died of it, logits
    that are not the bytes that were stored, runs that another command keeps to itself.
    """
    found = [(planned, finished.find(planned.run)) for planned in plan if planned.action == "score"]
    todo = [(planned, outline) for planned, outline in found if outline is not None]
    ends = _score_in_parallel(folder, todo, own_folder) if todo else []
    failures = dict.fromkeys(chain.from_iterable(failed for _, failed in ends))
    return sum(scored for scored, _ in ends), list(failures)


def _score_in_parallel(
    folder: ResultFolder, todo: Sequence[tuple[PlannedRun, Outline]], own_folder: Path
) -> list[tuple[bool, list[str]]]:
    """All at once; where a process dies (for its memory, or in a calibrator of the user's own), one after another, so
    that it costs the others nothing. None is scored in this process, which would die of it, too.
    """
    calls = [joblib.delayed(_score_one)(folder, planned, outline, own_folder) for planned, outline in todo]
    if (processes := scoring_processes(len(calls))) > 1:
        with contextlib.suppress(BrokenProcessPool):
            return list(_in_processes(processes)(calls))
    return [_score_by_itself(folder, planned, outline, own_folder) for planned, outline in todo]


def _score_by_itself(
    folder: ResultFolder, planned: PlannedRun, outline: Outline, own_folder: Path
) -> tuple[bool, list[str]]:
    """In a process for this run alone; where that dies, another one as long as there are views that none came to."""
    before = untried = len(outline.unscored(planned.views, planned.measures))
    while True:
        with contextlib.suppress(BrokenProcessPool):
            call = joblib.delayed(_score_one)(folder, planned, outline, own_folder)
            ends: list[tuple[bool, list[str]]] = _in_processes(2)([call])  # two: one would be this process
            return ends[0]
        result = folder.whole(outline)
        unscored = result.unscored(planned.views, planned.measures)
        reasons = [result.unscored_because.get(identity(view)) for view in unscored]
        if not 0 < reasons.count(None) < untried:
            why = ", ".join(dict.fromkeys(filter(None, reasons)))
            died = f"{folder.path(outline.run)}: the process that scored it died{f' ({why})' if why else ''}"
            return len(unscored) < before, [died]
        untried = reasons.count(None)


def _in_processes(count: int) -> joblib.Parallel:
    """Processes that end soon after the last call: idle ones, which joblib keeps for five minutes, would take memory
    from the trainings that follow, and outlive this process, its output in their hands, where it is killed.
    """
    return joblib.Parallel(n_jobs=count, idle_worker_timeout=_SECONDS_IDLE)


def _score_one(folder: ResultFolder, planned: PlannedRun, outline: Outline, own_folder: Path) -> tuple[bool, list[str]]:
    """Whether anything was scored, and what failed."""
    own_code.look_in(own_folder)
    try:
        with claim(folder.claims, outline.run, SCORING_PATIENCE) as ours:
            if not ours:
                return False, [f"{folder.path(outline.run)}: {HELD}"]
            return _score_claimed(folder, planned, folder.whole(outline))
    except UserError as error:
        return False, [str(error)]


def _score_claimed(folder: ResultFolder, planned: PlannedRun, result: Result) -> tuple[bool, list[str]]:
    missing = result.unscored(planned.views, planned.measures)
    if not missing:  # another command did it meanwhile
        return False, []
    logits = folder.read_logits(result)
    if logits is None:
        return False, [
            f"{folder.logits_path(result)}: not the bytes that were stored; delete it, and the run is trained again"
        ]
    _, failures = score_and_save(folder, result, missing, logits)
    return len(failures) < len(missing), [f"{folder.path(result.run)}: {failure}" for failure in failures]

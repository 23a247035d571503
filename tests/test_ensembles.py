"""Deep ensembles and passes with dropout: other ways to predict with what was trained, scored from stored logits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmark.ensembles import combined, ensembles, score_ensembles
from benchmark.metrics import softmax
from benchmark.plan import make_plan
from benchmark.registry import Registry, Subject, method_view, resolve_run, row_key, select_tables
from benchmark.render.notes import notes
from benchmark.report import _methods
from benchmark.scoring import score
from benchmark.specs import DeepEnsemble, McDropout
from benchmark.store import HELD, KnownResults, Logits, Result, ResultFolder, claim
from benchmark.tables import GridBuilder, ResultFinder, SharedGrid, over_shared_seeds
from tests.conftest import run_module
from tests.results import made_data, made_logits, made_result, tiny_inputs

BERT = Subject("tnews", "base", "bert")


def chosen(registry: Registry, *methods: str) -> dict:
    return select_tables(registry, "tiny", ["more_methods"], ["tnews"], list(methods))


def stored(registry: Registry, folder: ResultFolder, *seeds: int, of: int = 0) -> None:
    """Results of BERT with logits, one a seed."""
    for seed in seeds:
        logits = made_logits(100 * of + seed)
        folder.save(made_result(registry, BERT, seed, logits=logits), logits)


def scored(registry: Registry, folder: ResultFolder, *seeds: int) -> tuple[int, int]:
    wanted = ensembles(registry, "tiny", chosen(registry, "bert", "deep_ensemble"), seeds, tiny_inputs())
    found = score_ensembles(folder, list(wanted), KnownResults.of(folder.outlines()[0]))
    assert not found.failures
    return found.count, len(found.lacking)


def test_an_ensemble_is_the_mean_of_its_members_probabilities() -> None:
    first = Logits(np.zeros((1, 2), np.float32), np.zeros(1, int), np.array([[0, 0]], np.float32), np.ones(1, int))
    sure = replace(first, test_logits=np.array([[np.log(9), 0]], np.float32))
    np.testing.assert_allclose(softmax(combined([first, sure]).test_logits), [[0.7, 0.3]], atol=1e-6)
    np.testing.assert_array_equal(combined([first, sure]).test_labels, [1])
    hopeless = replace(first, test_logits=np.array([[2000, -2000]], np.float32))
    assert np.isfinite(combined([hopeless, hopeless]).test_logits).all()


@pytest.mark.parametrize(("seeds", "count"), [((0, 1, 2), 1), ((0, 1, 2, 3, 4, 5), 2), ((0, 1), 0), ((1, 2, 3), 0)])
def test_ensembles_share_no_run(registry: Registry, tmp_path: Path, seeds: tuple[int, ...], count: int) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, *seeds)
    assert scored(registry, folder, *seeds) == (count, 0)
    holders = [result for result in folder.read_all()[0] if any(view.members for view in result.views)]
    assert [result.run.seed for result in holders] == list(range(0, 3 * count, 3))
    members = [member.run_id for result in holders for view in result.views for member in view.members]
    assert len(set(members)) == len(members) == 3 * count


def test_an_ensemble_is_scored_once_and_again_when_a_member_changes(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2)
    view = method_view(registry, "deep_ensemble")
    assert isinstance(view.calibrator, DeepEnsemble)
    assert scored(registry, folder, 0, 1, 2) == (1, 0)
    first = next(result for result in folder.read_all()[0] if result.run.seed == 0)
    before = first.view(view)
    expected = score(view, combined([made_logits(seed) for seed in range(3)]), made_data())
    assert before.scores == expected.scores
    assert scored(registry, folder, 0, 1, 2) == (0, 0)
    stored(registry, folder, 2, of=1)
    assert scored(registry, folder, 0, 1, 2) == (1, 0)
    after = next(result for result in folder.read_all()[0] if result.run.seed == 0)
    assert after.view(view).scores != before.scores
    assert len(after.views) == len(first.views)


@pytest.mark.parametrize("measure", ["aurc", "nll"])
def test_an_ensemble_scored_before_there_was_a_measure_is_scored_anew(
    registry: Registry, tmp_path: Path, measure: str
) -> None:
    """Or before it was resampled."""
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2)
    assert scored(registry, folder, 0, 1, 2) == (1, 0)
    first = next(result for result in folder.read_all()[0] if result.run.seed == 0)
    for view in first.views:
        if view.members:
            if measure == "aurc":
                del view.scores["aurc"]
            else:
                del view.resampled.measures[measure]
    folder.put(first, None)
    logits = {path: path.read_bytes() for path in (folder.folder / "logits").iterdir()}
    for path in logits:
        path.unlink()
    assert scored(registry, folder, 0, 1, 2) == (0, 0)  # no reason to train again, and none to complain
    for path, content in logits.items():
        path.write_bytes(content)
    assert scored(registry, folder, 0, 1, 2) == (1, 0)
    assert scored(registry, folder, 0, 1, 2) == (0, 0)


def test_an_ensemble_that_cannot_be_scored_is_said_and_costs_no_other(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2, 3, 4, 5)
    logits = made_logits(1)
    logits.test_logits[0, 0] = np.nan
    folder.save(made_result(registry, BERT, 1), logits)
    wanted = ensembles(registry, "tiny", chosen(registry, "bert", "deep_ensemble"), range(6), tiny_inputs())
    found = score_ensembles(folder, list(wanted), KnownResults.of(folder.outlines()[0]))
    assert (found.count, found.lacking) == (1, [])
    (failure,) = found.failures
    assert "the test rows, calibrator deep_ensemble, could not be scored: ValueError" in failure


def test_without_its_logits_an_ensemble_waits(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2)
    for path in (folder.folder / "logits").glob("*seed1*"):
        path.unlink()
    assert scored(registry, folder, 0, 1, 2) == (0, 1)


def test_a_cell_of_ensembles_has_fewer_values_than_seeds_and_says_so(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2)
    scored(registry, folder, 0, 1, 2)
    tables = chosen(registry, "bert", "deep_ensemble")
    for seeds, values in (((0, 1, 2), 1), ((0,), 1), ((1, 2), 0), ((0, 1, 2, 3), 1)):
        finished = KnownResults.of(folder.read_all()[0])
        grid = GridBuilder(registry, "tiny", finished, tiny_inputs(), seeds).build(
            "more_methods", tables["more_methods"]
        )
        bert, ensemble = (grid.cell(row_key(name, "base"), "TNEWS", "f1") for name in ("bert", "deep_ensemble"))
        assert (len(bert.values), bert.expected) == (len(set(seeds) - {3}), len(seeds))
        assert (len(ensemble.values), ensemble.partial) == (values, 0 < values < len(seeds))
        assert (ensemble.why_missing is None) == (values == len(seeds))
        assert {finished.by_run[run].run.seed for run in ensemble.sources} == ({0, 1, 2} if values else set())
        assert ("Each value of an ensemble is of 3 seeds: its own and the 2 that follow." in notes(grid)) == (
            values > 0
        )


def test_methods_are_compared_over_the_seeds_that_they_share_and_ensembles_have_fewer(
    registry: Registry, tmp_path: Path
) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2)
    scored(registry, folder, 0, 1, 2)
    results = folder.read_all()[0]
    tables = chosen(registry, "bert", "deep_ensemble", "brier")

    def shared(*more: Result) -> SharedGrid:
        builder = GridBuilder(registry, "tiny", KnownResults.of([*results, *more]), tiny_inputs(), (0, 1, 2))
        return over_shared_seeds(builder, "x", tables["more_methods"])

    def labels(found: SharedGrid) -> list[str]:
        return [row.label for row in found.rows]

    alone = shared()
    assert (alone.grid.seeds, labels(alone), alone.short) == ((0, 1, 2), ["BERT"], ())
    assert [row.label for row in alone.ensembles] == ["Deep ensemble (3 seeds)"]
    with_one = shared(made_result(registry, replace(BERT, method="brier"), 0))
    assert (with_one.grid.seeds, labels(with_one)) == ((0,), ["BERT", "Brier loss"])
    assert (with_one.ensembles, with_one.short) == ((), ("Deep ensemble (3 seeds)",))  # it is of seeds 1 and 2, too
    apart = shared(made_result(registry, replace(BERT, method="brier"), 5))
    assert (apart.grid.seeds, apart.short) == ((0, 1, 2), ())
    stored(registry, folder, 3)
    results += [result for result in folder.read_all()[0] if result.run.seed == 3]
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0, 1, 2, 3))
    four = over_shared_seeds(builder, "x", tables["more_methods"])
    assert (labels(four), four.ensembles, four.short) == (["BERT"], (), ("Deep ensemble (3 seeds)",))
    stored(registry, folder, 4)
    results += [result for result in folder.read_all()[0] if result.run.seed == 4]
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0, 1, 4))
    others = over_shared_seeds(builder, "x", tables["more_methods"])  # as many seeds as it has members, but not those
    assert (labels(others), others.ensembles, others.short) == (["BERT"], (), ("Deep ensemble (3 seeds)",))


def test_passes_with_dropout_are_scored_from_what_was_stored(registry: Registry, tmp_path: Path) -> None:
    view = method_view(registry, "mc_dropout")
    logits = made_logits(0)
    other = made_logits(1).test_logits
    held = replace(logits, mc_dropout={view.calibrator.passes: other})
    expected = score(view.model_copy(update={"calibrator": None}), replace(logits, test_logits=other), made_data())
    assert score(view, held, made_data()).scores == expected.scores
    folder = ResultFolder(tmp_path, "tiny")
    result = made_result(registry, BERT, logits=logits)
    folder.save(result, held)
    (read,) = folder.read_all()[0]
    assert read.logits.mc_dropout == [20]
    np.testing.assert_array_equal(folder.read_logits(read).mc_dropout[20], other)


def test_only_a_training_makes_passes_with_dropout(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    logits = made_logits(0)
    actions = []
    for held in ({}, {20: logits.test_logits}):
        folder.save(made_result(registry, BERT, logits=logits), replace(logits, mc_dropout=held))
        results = folder.read_all()[0]
        finished = KnownResults.of(results, [result.run_id for result in results])
        (planned,) = make_plan(registry, "tiny", chosen(registry, "mc_dropout"), (0,), tiny_inputs(), finished)
        actions.append((planned.action, planned.reason))
    assert actions[0] == ("train", "passes with dropout are asked for, which only a training makes")
    assert actions[1][0] == "score"


def test_passes_with_dropout_are_kept_by_whatever_trains_again(registry: Registry, tmp_path: Path) -> None:
    """And asked for by no table but the one that is wanted, though it is not optional."""
    folder = ResultFolder(tmp_path, "tiny")
    logits = made_logits(0)
    folder.save(made_result(registry, BERT, logits=logits), replace(logits, mc_dropout={7: logits.test_logits}))
    tables = {name: table.model_copy(update={"optional": False}) for name, table in registry.tables.items()}
    registry = replace(registry, tables=tables)
    main = select_tables(registry, "tiny", ["main"], ["tnews"], ["bert"])
    for results, expected in (([], []), (folder.outlines()[0], [7])):
        (planned,) = make_plan(registry, "tiny", main, (0,), tiny_inputs(), KnownResults.of(results), redo=True)
        found = [view.calibrator.passes for view in planned.views if isinstance(view.calibrator, McDropout)]
        assert (planned.action, found) == ("train", expected)


def test_an_ensemble_of_runs_made_again_is_not_shown(registry: Registry, tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2)
    scored(registry, folder, 0, 1, 2)
    finder = ResultFinder(registry, "tiny", KnownResults.of(folder.read_all()[0]), tiny_inputs())
    subject = replace(BERT, method="deep_ensemble")
    assert not isinstance(finder.scored(subject, 0), str)
    assert finder.scored(subject, 1) == "an ensemble starts at another seed"
    stored(registry, folder, 2, of=1)
    finder = ResultFinder(registry, "tiny", KnownResults.of(folder.read_all()[0]), tiny_inputs())
    assert finder.scored(subject, 0) == "one of its runs was made again since; benchmark.run scores it anew"
    result = finder.finished.find(resolve_run(registry, "tiny", BERT, 0, tiny_inputs()))
    ensemble = result.view(method_view(registry, "deep_ensemble"))
    assert _methods(finder, {result.run_id}, result, ensemble) == ""
    assert _methods(finder, {result.run_id}, result, result.view(method_view(registry, "bert"))) == "bert"


def test_an_ensemble_is_not_scored_into_a_run_that_is_being_made_again(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmark.ensembles.SCORING_PATIENCE", 0.0)
    folder = ResultFolder(tmp_path, "tiny")
    stored(registry, folder, 0, 1, 2)
    first = next(outline for outline in folder.outlines()[0] if outline.run.seed == 0)
    wanted = list(ensembles(registry, "tiny", chosen(registry, "bert", "deep_ensemble"), (0, 1, 2), tiny_inputs()))
    with claim(folder.claims, first.run):
        found = score_ensembles(folder, wanted, KnownResults.of(folder.outlines()[0]))
    assert (found.count, found.failures) == (0, [f"{folder.path(first.run)}: {HELD}"])
    assert scored(registry, folder, 0, 1, 2) == (1, 0)


def test_the_commands_make_and_show_both(experiments: Path, tmp_path: Path, cache_dir: Path) -> None:
    options = ["--experiments", experiments, "--profile", "tiny", "--results-dir", tmp_path / "results"]
    options += ["--table", "more_methods", "--datasets", "tnews", "--methods", "mc_dropout", "deep_ensemble", "mixup"]
    environment = {"BENCHMARK_CACHE_DIR": str(cache_dir)}
    run = run_module("run", *options, "--seeds", "0-2", env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "6 trained, 0 failed" in run.stdout
    assert "1 ensemble scored" in run.stdout
    again = run_module("run", *options, "--seeds", "0-2", env=environment)
    assert "0 trained, 0 failed, 6 done before" in again.stdout
    assert "ensemble" not in again.stdout
    report = run_module(
        "report", *options[:6], "--table", "more_methods", "--seeds", "0-2", "--tables-dir", tmp_path, env=environment
    )
    for form in (["--format", "html"], ["--figures"], ["--recommend"]):
        shown = run_module("report", *options[:8], "--seeds", "0-2", "--tables-dir", tmp_path, *form, env=environment)
        assert shown.returncode == 0, shown.stderr
    for label in ("MC dropout", "Deep ensemble", "Mixup"):
        (line,) = (line for line in report.stdout.splitlines() if line.startswith(f"| {label} "))
        assert line.count("–") == 20, line  # two data sets of three were not asked for

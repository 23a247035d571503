"""Planning: the union of runs without duplicates, each with a reason; pure."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmark.commandline import new_console, new_parser, run_command
from benchmark.errors import UserError
from benchmark.inputs import places
from benchmark.plan import PlannedRun, make_plan
from benchmark.registry import Inputs, Registry, Subject, method_view, select_tables
from benchmark.scoring import score
from benchmark.store import KnownResults, Result
from tests.results import failed_result, made_logits, made_result, tiny_inputs


def plan(registry: Registry, profile: str, *tables: str, seeds: tuple[int, ...] = (0,), **options) -> list[PlannedRun]:
    selection = {key: options.pop(key) for key in ("datasets", "methods") if key in options}
    chosen = select_tables(registry, profile, list(tables), **selection)
    inputs = options.pop("inputs", tiny_inputs())
    finished = options.pop("finished", KnownResults.of([]))
    return make_plan(registry, profile, chosen, seeds, inputs, finished, **options)


@pytest.mark.parametrize("profile", ["paper", "compact", "demo", "tiny"])
@pytest.mark.parametrize(
    ("tables", "count"),
    [
        (["all"], 51),
        (["main"], 15),
        (["noise"], 20),
        (["ablation"], 5),
        (["encoders"], 6),
        (["low_frequency"], 5),
        (["main", "ablation_full", "ablation"], 25),
        (["main", "low_frequency", "low_frequency_full", "main_full"], 15),
    ],
)
def test_tables_share_their_runs(registry: Registry, profile: str, tables: list[str], count: int) -> None:
    planned = plan(registry, profile, *tables)
    assert len(planned) == count
    assert len({item.run_id for item in planned}) == count
    assert {item.action for item in planned} == {"train"}


def test_seeds_multiply_and_stand_in_order(registry: Registry) -> None:
    planned = plan(registry, "paper", "all", seeds=(3, 0, 3))
    assert [item.run.seed for item in planned] == [3] * 51 + [0] * 51


def test_temperature_scaling_is_a_view_of_berts_run(registry: Registry) -> None:
    (only,) = plan(registry, "tiny", "main", datasets=["tnews"], methods=["ts"])
    assert [term.term for term in only.run.loss] == ["cross_entropy"]
    assert [(view.split, view.calibrator is not None) for view in only.views] == [
        ("test", False),
        ("validation", False),
        ("test", True),
    ]


def test_runs_of_one_encoder_and_data_set_stand_together(registry: Registry) -> None:
    keys = [(item.run.encoder.encoder, item.run.data.dataset) for item in plan(registry, "tiny", "all")]
    changes = sum(before != after for before, after in pairwise(keys))
    assert changes == len(set(keys)) - 1


def bert(registry: Registry, **options) -> Result:
    return made_result(registry, Subject("tnews", "base", "bert"), **options)


def decide(registry: Registry, *results: Result, with_logits: bool = False, **options) -> PlannedRun:
    finished = KnownResults.of(results, [result.run_id for result in results] if with_logits else ())
    (only,) = plan(registry, "tiny", "main", datasets=["tnews"], methods=["bert"], finished=finished, **options)
    return only


def complete(registry: Registry) -> Result:
    """A result with every view that its run is asked for."""
    result = bert(registry)
    views = decide(registry).views
    return result.model_copy(update={"views": [score(view, made_logits(0), result.data) for view in views]})


def test_a_finished_run_is_skipped_and_done_again_only_if_asked(registry: Registry) -> None:
    done = complete(registry)
    assert (decide(registry, done).action, decide(registry, done).reason) == ("skip", "done")
    assert decide(registry, done, redo=True).action == "train"


def test_a_run_that_is_made_again_has_what_it_had_of_optional_tables(registry: Registry) -> None:
    bert = made_result(registry, Subject("tnews", "base", "bert"))
    vector = score(method_view(registry, "vector"), made_logits(0, 15), bert.data)
    undeclared = vector.model_copy(update={"view": vector.view.model_copy(update={"ece_bins": 7}), "view_id": "7"})
    before = bert.model_copy(update={"views": [*bert.views, vector, undeclared]})
    (planned,) = plan(
        registry, "tiny", "main", datasets=["tnews"], methods=["bert"], finished=KnownResults.of([before]), redo=True
    )
    kinds = [view.calibrator.kind if view.calibrator else None for view in planned.views]
    assert planned.action == "train"
    assert kinds == [None, None, "temperature", "vector"]
    assert planned.views[-1] == vector.view


def test_a_failed_run_is_tried_again(registry: Registry) -> None:
    only = decide(registry, failed_result(bert(registry).run))
    assert (only.action, only.reason) == ("train", "failed before (diverged)")


def test_another_bin_count_scores_again_and_trains_nothing(registry: Registry) -> None:
    done = complete(registry)
    twenty = replace(registry, scoring=registry.scoring.model_copy(update={"ece_bins": 20}))
    only = decide(twenty, done, with_logits=True)
    assert (only.action, only.reason) == ("score", "3 of 3 views not scored yet")
    without = decide(twenty, done)
    assert without.action == "train"
    assert "logits are not here" in without.reason


def test_a_measure_that_came_later_is_scored_where_it_can_be_and_never_a_reason_to_train(registry: Registry) -> None:
    done = complete(registry)
    del done.views[1].scores["ece_if_calibrated"]
    only = decide(registry, done, with_logits=True)
    assert (only.action, only.reason) == ("score", "1 of 3 views not scored yet")
    assert decide(registry, done).action == "skip"


def test_what_only_another_table_asks_for_is_scored_where_it_can_be_and_never_a_reason_to_train(
    registry: Registry,
) -> None:
    """A table that no longer is optional asks for five calibrators more; it is not the one that is run."""
    done = complete(registry)
    wanted = registry.tables["more_methods"].model_copy(update={"optional": False})
    more = replace(registry, tables=registry.tables | {"more_methods": wanted})
    assert (decide(more, done).action, decide(more, done).reason) == ("skip", "done")
    assert decide(more, done, with_logits=True).action == "score"


def test_a_table_on_data_that_the_profile_lacks_asks_for_nothing(registry: Registry) -> None:
    done = complete(registry)
    columns = [column.model_copy(update={"dataset": "mine"}) for column in registry.tables["more_methods"].columns]
    mine = registry.tables["more_methods"].model_copy(update={"optional": False, "columns": tuple(columns)})
    more = replace(registry, tables=registry.tables | {"mine": mine})
    assert decide(more, done, with_logits=True).action == "skip"
    assert decide(more).views == decide(registry).views


def test_other_data_train_again(registry: Registry) -> None:
    only = decide(registry, complete(registry), inputs=tiny_inputs({"tnews": "f" * 64}))
    assert (only.action, only.reason) == ("train", "other data or encoder weights than the result at hand")


def test_unknown_inputs_are_taken_from_results_that_agree(registry: Registry) -> None:
    done = complete(registry)
    assert decide(registry, done, inputs=Inputs()).action == "skip"
    other = bert(registry, inputs=tiny_inputs({"tnews": "f" * 64}))
    assert decide(registry, done, other, inputs=Inputs()).action == "train"


def test_every_cell_of_every_table_finds_its_run_in_the_plan(registry: Registry) -> None:
    from benchmark.registry import resolve_run, table_subjects

    runs = {item.run for item in plan(registry, "compact", "all", inputs=Inputs())}
    for table in select_tables(registry, "compact", ["all"]).values():
        for subject in table_subjects(registry, table):
            assert resolve_run(registry, "compact", subject, 0, Inputs()) in runs


def test_calibrators_of_optional_tables_are_scored_only_where_those_are_asked_for(registry: Registry) -> None:
    def kinds(*names: str, more: tuple[str, ...] = ()) -> list[str]:
        tables = select_tables(registry, "tiny", list(names), methods=["bert", "ts", *more])
        plan = make_plan(registry, "tiny", tables, [0], tiny_inputs(), KnownResults.of([]))
        views = next(planned.views for planned in plan if planned.run.data.dataset == "tiny_tnews")
        return [view.calibrator.kind for view in views if view.calibrator]

    assert kinds("main") == ["temperature"]
    assert kinds("main", "more_methods", more=("vector", "beta")) == ["temperature", "vector", "beta"]


@pytest.mark.parametrize(("named", "sentence"), [("a\udcff", "is not Unicode"), ("file", "is a file, not a folder")])
def test_a_cache_that_cannot_be_is_one_sentence(
    named: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BENCHMARK_CACHE_DIR", str(tmp_path / named))
    with pytest.raises(UserError, match=f"^BENCHMARK_CACHE_DIR: .*{sentence}"):
        places(None, None)


def test_a_cache_may_be_named_from_the_users_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BENCHMARK_CACHE_DIR", "~/cache")
    assert places(None, None).cache == tmp_path / "cache"


def test_a_terminal_without_width_is_told_what_happens(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    new_console().print("a plan")
    assert capsys.readouterr().out == "a plan\n"


def test_where_memory_does_not_suffice_that_is_a_sentence(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(arguments: object) -> int:
        raise MemoryError("Unable to allocate 745. GiB for an array")

    monkeypatch.setattr("sys.argv", ["report"])
    monkeypatch.setattr("benchmark.commandline.signal.signal", lambda *_: None)  # this process keeps its own
    with pytest.raises(SystemExit) as ended:
        run_command(too_much, new_parser("report", ""))
    assert ended.value.code == 2
    assert "memory does not suffice: Unable to allocate 745. GiB for an array" in capsys.readouterr().err

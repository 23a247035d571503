"""Searches: what their candidates are, and which of them validation scores choose."""

from dataclasses import replace

import pytest

from benchmark.declarations import Axis, Search, TrainingRule
from benchmark.errors import UserError
from benchmark.prepare import _plan as prepared_runs
from benchmark.registry import Candidate, Registry, Subject, candidates, resolve_run, validation_view
from benchmark.registry.candidates import known_settings
from benchmark.render import search_to_markdown
from benchmark.search import Choice, choices, plan_searches, searches_for, select_searches, value_in_words
from benchmark.specs import OwnTerm, identity
from benchmark.store import KnownResults, Result
from benchmark.tables import of_tables
from tests.results import failed_result, made_result, tiny_inputs

BERT = Subject("banking77", "base", "bert")
HS_RAU = Subject("banking77", "base", "hs_rau")
RATES = Search(
    description="Rates.",
    methods=("bert",),
    datasets=("banking77",),
    axes=(
        Axis(label="rate", set=("training.learning_rate",), to=(1.0e-3, 3.0e-3)),
        Axis(label="epochs", set=("training.epochs",), to=(2, 4)),
    ),
    choose_by="f1",
    metrics=("nll", "f1"),
)


@pytest.fixture
def searching(registry: Registry) -> Registry:
    """The registry with the search ``rates``, which has the declared settings among its candidates, the last one."""
    return replace(registry, searches={"rates": RATES})


def result(candidate: Candidate, seed: int = 0, **scores: float) -> Result:
    """A result of a candidate with these scores of its validation rows."""
    made = made_result(candidate.registry, BERT, seed)
    spec = validation_view(candidate.registry)
    scored = made.views[0].model_copy(
        update={"view": spec, "view_id": identity(spec), "scores": made.views[0].scores | scores}
    )
    return made.model_copy(update={"views": [*made.views, scored]})


def choose(registry: Registry, results: list[Result], seeds: tuple[int, ...] = (0,)) -> Choice:
    table = select_searches(registry, "tiny", ["rates"])["rates"]
    (found,) = choices(registry, "tiny", "rates", table, KnownResults.of(results), tiny_inputs(), seeds)
    return found


def test_a_data_set_for_which_the_profile_has_no_encoder_is_no_part_of_a_search(searching: Registry) -> None:
    tiny, everywhere = searching.profile("tiny"), RATES.model_copy(update={"datasets": ()})
    part = tiny.model_copy(update={"encoders": tiny.encoders | {"base": {BERT.dataset: tiny.encoders["base"]}}})
    partly = replace(searching, profiles=searching.profiles | {"tiny": part}, searches={"rates": everywhere})
    table = select_searches(partly, "tiny", ["rates"])["rates"]
    assert len(table.columns) > 1
    (found,) = choices(partly, "tiny", "rates", table, KnownResults.of([]), tiny_inputs(), (0,))
    assert found.dataset == partly.dataset_label(part, BERT.dataset)


def test_a_method_that_cannot_be_trained_ends_no_report_of_a_search(registry: Registry) -> None:
    tiny = registry.profile("tiny")
    late = tiny.model_copy(update={"training": (*tiny.training, TrainingRule(method="poscal", epochs=1))})
    both = RATES.model_copy(update={"methods": ("bert", "poscal"), "axes": RATES.axes[:1]})
    changed = replace(registry, profiles=registry.profiles | {"tiny": late}, searches={"rates": both})
    table = select_searches(changed, "tiny", ["rates"])["rates"]
    made = [result(candidate, f1=0.8) for candidate in candidates(changed, "tiny", both)]
    found = choices(changed, "tiny", "rates", table, KnownResults.of(made), tiny_inputs(), (0,))
    assert [(one.method, any(tried.chosen for tried in one.tried)) for one in found] == [
        ("BERT", True),
        ("PosCal", False),
    ]


def test_candidates_are_all_combinations_and_leave_the_registry_as_it_is(searching: Registry) -> None:
    before = resolve_run(searching, "tiny", BERT, 0, tiny_inputs())
    found = candidates(searching, "tiny", RATES)
    assert [candidate.values for candidate in found] == [(1e-3, 2), (1e-3, 4), (3e-3, 2), (3e-3, 4)]
    runs = [resolve_run(candidate.registry, "tiny", BERT, 0, tiny_inputs()) for candidate in found]
    assert [(run.optimisation.learning_rate, run.optimisation.epochs) for run in runs] == [
        (1e-3, 2), (1e-3, 4), (3e-3, 2), (3e-3, 4),
    ]  # fmt: skip
    assert runs[-1] == before  # the declared settings are the same run
    assert resolve_run(searching, "tiny", BERT, 0, tiny_inputs()) == before


def test_settings_of_losses_and_heads_are_varied_together(registry: Registry) -> None:
    search = Search(
        description="Start.",
        methods=("hs_rau",),
        axes=(
            Axis(label="start", set=("losses.rau.start", "losses.kl.start"), to=({"after_epochs": 1},)),
            Axis(label="dropout", set=("heads.hyperspherical.dropout",), to=(0.0,)),
        ),
        choose_by="nll",
        metrics=("nll",),
    )
    (candidate,) = candidates(registry, "tiny", search)
    before = resolve_run(registry, "tiny", HS_RAU, 0, tiny_inputs())
    after = resolve_run(candidate.registry, "tiny", HS_RAU, 0, tiny_inputs())
    assert [term.start.model_dump() for term in after.loss[1:]] == [{"after_epochs": 1}] * 2
    assert after.head == before.head.model_copy(update={"dropout": 0.0})
    assert after.loss[0] == before.loss[0]
    assert resolve_run(candidate.registry, "tiny", BERT, 0, tiny_inputs()) == resolve_run(
        registry, "tiny", BERT, 0, tiny_inputs()
    )


def test_a_value_may_be_a_list(registry: Registry) -> None:
    axes = (Axis(label="betas", set=("training.betas",), to=([0.9, 0.99], [0.8, 0.9])),)
    search = Search(description="x", methods=("bert",), axes=axes, choose_by="nll", metrics=("nll",))
    runs = [resolve_run(one.registry, "tiny", BERT, 0, tiny_inputs()) for one in candidates(registry, "tiny", search)]
    assert [run.optimisation.betas for run in runs] == [(0.9, 0.99), (0.8, 0.9)]
    assert [value_in_words(value) for value in axes[0].to] == ["0.9, 0.99", "0.8, 0.9"]


def test_values_that_do_not_go_together_are_refused_only_together(registry: Registry) -> None:
    def search(*thresholds: str | float) -> Search:
        axes = (
            Axis(label="start", set=("losses.rau.start",), to=({"after_epochs": 0},)),
            Axis(label="threshold", set=("losses.rau.threshold",), to=thresholds),
        )
        return Search(description="x", methods=("hs_rau",), axes=axes, choose_by="nll", metrics=("nll",))

    assert len(candidates(registry, "tiny", search(0.5))) == 1
    with pytest.raises(UserError, match="mean_entropy needs at least one epoch"):
        candidates(registry, "tiny", search(0.5, "mean_entropy"))


def test_a_candidate_is_planned_once_and_told_apart_by_its_settings(searching: Registry) -> None:
    twice = replace(searching, searches={"rates": RATES, "again": RATES})
    tables = select_searches(twice, "tiny", ["rates", "again"])
    done = KnownResults.of([result(candidates(twice, "tiny", RATES)[3])])
    plan = plan_searches(twice, "tiny", tables, [0], tiny_inputs(), done)
    assert [planned.action for planned in plan] == ["train", "train", "train", "skip"]
    assert {planned.tables for planned in plan} == {("rates", "again")}
    assert plan[1].settings == "rate 0.001; epochs 4"
    assert len({planned.run_id for planned in plan}) == 4


def test_the_best_on_validation_rows_is_chosen_whatever_the_test_rows_say(searching: Registry) -> None:
    found = candidates(searching, "tiny", RATES)
    f1 = [0.5, 0.7, 0.9, 0.7]
    results = [result(one, f1=value, nll=1.0) for one, value in zip(found, f1, strict=True)]
    best_on_test = results[0].views[0].model_copy(update={"scores": results[0].views[0].scores | {"f1": 1.0}})
    results[0] = results[0].model_copy(update={"views": [best_on_test, *results[0].views[1:]]})
    choice = choose(searching, results)
    assert [one.chosen for one in choice.tried] == [False, False, True, False]
    assert [one.declared for one in choice.tried] == [False, False, False, True]
    text = search_to_markdown("rates", "About.", [choice])
    assert "Chosen by F1: rate 0.003; epochs 2. The profile has rate 0.003; epochs 4. On 60 rows" in text
    assert "| 0.003  | 2        | 1.000 | **90.00** | chosen        |" in text


def test_lower_is_better_where_the_metric_says_so_and_the_earlier_of_equals_is_chosen(searching: Registry) -> None:
    by_nll = replace(searching, searches={"rates": RATES.model_copy(update={"choose_by": "nll"})})
    found = candidates(by_nll, "tiny", RATES)
    choice = choose(by_nll, [result(one, nll=value) for one, value in zip(found, (3.0, 2.0, 2.0, 4.0), strict=True)])
    assert [one.chosen for one in choice.tried] == [False, True, False, False]


def test_of_equals_the_declared_one_is_chosen_and_said(searching: Registry) -> None:
    found = candidates(searching, "tiny", RATES)
    choice = choose(
        searching, [result(one, f1=value) for one, value in zip(found, (0.70004, 0.6, 0.7, 0.7), strict=True)]
    )
    assert [one.chosen for one in choice.tried] == [False, False, False, True]
    text = search_to_markdown("rates", "About.", [choice])
    alike = "equal as printed: rate 0.001; epochs 2, or rate 0.003; epochs 2"
    assert f"rate 0.003; epochs 4 ({alike}), which is what the profile has." in text


def test_where_nothing_can_be_chosen_only_seeds_with_results_are_spoken_of(searching: Registry) -> None:
    found = candidates(searching, "tiny", RATES)
    choice = choose(searching, [result(found[0], seed=1, f1=0.5)], (0, 1, 2))
    assert choice.seeds == (1,)
    text = search_to_markdown("rates", "About.", [choice])
    assert "One seed (1)." in text
    assert "(n=1)" not in text


def test_only_seeds_that_every_candidate_has_are_compared(searching: Registry) -> None:
    found = candidates(searching, "tiny", RATES)
    results = [result(one, seed=0, f1=value) for one, value in zip(found, (0.5, 0.6, 0.7, 0.8), strict=True)]
    results.append(result(found[0], seed=1, f1=1.0))
    choice = choose(searching, results, (0, 1))
    assert choice.seeds == (0,)
    assert [one.chosen for one in choice.tried] == [False, False, False, True]
    assert "Left out: seed 1, which not every candidate has." in search_to_markdown("rates", "About.", [choice])
    assert choice.precisions == ("float32",)
    mixed = search_to_markdown("rates", "About.", [replace(choice, precisions=("bfloat16", "float32"))])
    assert "Trained in bfloat16 and float32, which are not told apart here." in mixed


def test_nothing_is_chosen_before_all_are_trained(searching: Registry) -> None:
    found = candidates(searching, "tiny", RATES)
    choice = choose(searching, [result(one, f1=0.5) for one in found[:3]])
    assert not any(one.chosen for one in choice.tried)
    text = search_to_markdown("rates", "About.", [choice])
    assert "Nothing chosen yet: 3 of 4 candidates have results; all must, with one seed." in text
    assert "| 0.003  | 4        |" in text
    assert "–" in text


def test_a_measure_that_came_later_is_missing_and_decides_nothing(registry: Registry) -> None:
    by_chance = RATES.model_copy(update={"metrics": ("nll", "f1", "ece_if_calibrated")})
    searching = replace(registry, searches={"rates": by_chance})
    old = [result(one, f1=0.5 + 0.1 * place) for place, one in enumerate(candidates(searching, "tiny", by_chance))]
    for one in old:
        for view in one.views:
            view.scores.pop("ece_if_calibrated", None)
    shown = choose(searching, old)
    assert [one.chosen for one in shown.tried] == [False, False, False, True]
    assert [one.cells[2].mean for one in shown.tried] == [None] * 4
    deciding = replace(registry, searches={"rates": by_chance.model_copy(update={"choose_by": "ece_if_calibrated"})})
    choice = choose(deciding, old)
    assert not any(one.chosen for one in choice.tried)
    assert choice.tried[3].cells[1].mean == pytest.approx(80)
    assert "no seed has ECE if calibrated of every candidate." in search_to_markdown("rates", "About.", [choice])


def test_a_search_that_only_failed_beside_the_declared_candidate_is_shown(searching: Registry) -> None:
    found = candidates(searching, "tiny", RATES)
    failed = [failed_result(resolve_run(one.registry, "tiny", BERT, 0, tiny_inputs())) for one in found[:3]]
    text = search_to_markdown("rates", "About.", [choose(searching, [*failed, result(found[3], f1=0.5)])])
    assert text.count("| failed") == 3
    alone = search_to_markdown("rates", "About.", [choose(searching, [result(found[3], f1=0.5)])])
    assert "Not searched yet: no candidate other than the profile's own settings has a result." in alone


def test_a_candidate_whose_training_failed_cannot_be_chosen(searching: Registry) -> None:
    found = candidates(searching, "tiny", RATES)
    failed = [failed_result(resolve_run(one.registry, "tiny", BERT, 0, tiny_inputs())) for one in found]
    choice = choose(searching, [*(result(one, f1=0.5) for one in found[:3]), failed[3]])
    assert [one.chosen for one in choice.tried] == [True, False, False, False]
    assert "failed" in search_to_markdown("rates", "About.", [choice]).splitlines()[-1]
    at_seed_1 = failed_result(failed[0].run.model_copy(update={"seed": 1}))
    other = choose(
        searching, [*(result(one, f1=0.5) for one in found[1:]), result(found[0], f1=0.9), at_seed_1], (0, 1)
    )
    assert [one.failed for one in other.tried] == [True, False, False, False]  # whatever its other seeds gave
    assert not other.tried[0].chosen
    every = choose(searching, failed)
    assert "the training of every candidate failed" in search_to_markdown("rates", "About.", [every])


def test_searches_are_those_of_the_profile_and_its_data_sets(registry: Registry) -> None:
    searches = {
        "any": RATES.model_copy(update={"datasets": ()}),
        "elsewhere": RATES.model_copy(update={"profiles": ("paper",)}),
        "other_data": RATES.model_copy(update={"datasets": ("mine",)}),
    }
    several = replace(registry, searches=searches)
    assert searches_for(several, "tiny") == ["any"]
    assert [column.dataset for column in select_searches(several, "tiny", ["any"])["any"].columns] == [
        "tnews", "hwu64", "banking77",
    ]  # fmt: skip
    with pytest.raises(UserError, match="has nothing of what was asked for in search other_data"):
        select_searches(several, "tiny", ["other_data"])
    with pytest.raises(UserError, match="is for profile paper, not for tiny"):
        select_searches(several, "tiny", ["elsewhere"])


def test_the_edge_of_an_axis_and_the_size_of_noise_are_told(searching: Registry) -> None:
    wide = RATES.model_copy(
        update={"axes": (Axis(label="rate", set=("training.learning_rate",), to=(1.0e-3, 2.0e-3, 3.0e-3)),)}
    )
    registry = replace(searching, searches={"rates": wide})
    found = candidates(registry, "tiny", wide)
    results = [result(one, f1=value, accuracy=0.8) for one, value in zip(found, (0.5, 0.6, 0.7), strict=True)]
    text = search_to_markdown("rates", "About.", [choose(registry, results)])
    assert "It lies at the edge of the values of rate." in text
    assert "On 60 rows an accuracy of 80.0 % has a 95 % interval of 68.2 to 88.2 % (Wilson's)." in text
    middle = [result(one, f1=value) for one, value in zip(found, (0.5, 0.8, 0.7), strict=True)]
    assert "edge" not in search_to_markdown("rates", "About.", [choose(registry, middle)])


def test_a_rule_for_another_method_never_holds_for_a_candidate(registry: Registry) -> None:
    profile = registry.profile("tiny")
    rule = TrainingRule(method="ls", learning_rate=2.0e-2)
    ruled = profile.model_copy(update={"training": (*profile.training, rule)})
    registry = replace(registry, profiles=registry.profiles | {"tiny": ruled})
    axis = Axis(label="smoothing", set=("losses.cross_entropy.smoothing",), to=(0.0, 0.1))
    search = Search(description="x", methods=("bert",), axes=(axis,), choose_by="nll", metrics=("nll",))
    runs = [resolve_run(one.registry, "tiny", BERT, 0, tiny_inputs()) for one in candidates(registry, "tiny", search)]
    assert [run.optimisation.learning_rate for run in runs] == [3e-3, 3e-3]
    calibrated = resolve_run(registry, "tiny", Subject("banking77", "base", "ls"), 0, tiny_inputs())
    assert calibrated.optimisation.learning_rate == 2e-2


def test_settings_of_a_function_of_ones_own_are_varied_one_by_one(registry: Registry) -> None:
    own = OwnTerm(
        term="own", weight=1.0, function="mine:too_sure", settings={"above": 0.9, "flag": True}, sha256="0" * 64
    )
    parts = registry.methods
    method = parts.methods["bert"].model_copy(update={"loss": ("cross_entropy", "mine")})
    changed = parts.model_copy(
        update={"losses": parts.losses | {"mine": own}, "methods": parts.methods | {"mine": method}}
    )
    registry = replace(registry, methods=changed)
    axis = Axis(label="above", set=("losses.mine.settings.above",), to=(0.5, 0.9))
    search = Search(description="x", methods=("mine",), axes=(axis,), choose_by="nll", metrics=("nll",))
    found = [one.registry.methods.losses["mine"].settings for one in candidates(registry, "tiny", search)]
    assert found == [{"above": 0.5, "flag": True}, {"above": 0.9, "flag": True}]
    assert known_settings(registry, "losses.mine") == ["settings.above", "settings.flag", "weight"]


@pytest.mark.parametrize(
    ("value", "words"),
    [(1e-4, "0.0001"), (1e-5, "1.0e-05"), (4.5e-5, "4.5e-05"), (3, "3"), (0.00300000001, "0.00300000001"),
     ("mean_entropy", "mean_entropy"), ({"after_epochs": 1}, "after_epochs 1"), (True, "True")],
)  # fmt: skip
def test_values_are_shown_as_they_are(value: object, words: str) -> None:
    assert value_in_words(value) == words


def test_results_of_candidates_are_none_of_the_tables(registry: Registry) -> None:
    found = candidates(registry, "tiny", RATES)
    declared, other = result(found[-1], seed=1), result(found[0], seed=7)
    ls = made_result(registry, Subject("banking77", "base", "ls"), 2)
    assert of_tables(registry, "tiny", [declared, other, ls]) == [declared, ls]


def test_unknown_methods_and_data_sets_lead_to_known_ones(searching: Registry) -> None:
    with pytest.raises(UserError, match='there is no method "brt"; did you mean "bert"'):
        select_searches(searching, "tiny", ["rates"], methods=["brt"])
    with pytest.raises(UserError, match='did you mean "banking77"'):
        select_searches(searching, "tiny", ["rates"], datasets=["banking7"])


def test_a_profile_that_is_for_a_search_alone_is_prepared_for_it(searching: Registry) -> None:
    alone = replace(searching, tables={})
    assert len(prepared_runs(alone, "tiny")) == 4 * len(alone.profile("tiny").seeds)
    with pytest.raises(UserError, match="Profile tiny has no run"):
        prepared_runs(replace(alone, searches={}), "tiny")


def test_of_those_within_a_standard_error_another_measure_may_choose(searching: Registry) -> None:
    then = replace(searching, searches={"rates": RATES.model_copy(update={"then_by": "nll"})})
    options = candidates(then, "tiny", then.searches["rates"])
    rows = result(options[0]).data.rows["validation"]
    error = (0.9 * 0.1 / rows) ** 0.5  # of an accuracy of 90 %
    scores = [(0.90, 0.60), (0.90 - 0.99 * error, 0.50), (0.90 - 1.01 * error, 0.40), (0.89, 0.55)]  # F1 and NLL
    results = [result(option, f1=f1, nll=nll, accuracy=0.9) for option, (f1, nll) in zip(options, scores, strict=True)]
    found = choose(then, results)
    assert [one.chosen for one in found.tried] == [False, True, False, False]
    assert (found.then_by, found.within) == ("NLL", pytest.approx(100 * error))
    said = search_to_markdown("rates", "About.", [found])
    assert f"Chosen by NLL, of those within one standard error of the best F1 ({100 * error:.2f} points): " in said
    assert "**0.500**" in said
    by_f1 = choose(searching, results)
    assert ([one.chosen for one in by_f1.tried], by_f1.then_by) == ([True, False, False, False], None)


def test_where_not_all_of_those_have_the_other_measure_it_chooses_nothing(searching: Registry) -> None:
    """Of an older result, or with some seeds only, over which means would not compare."""
    then = replace(searching, searches={"rates": RATES.model_copy(update={"then_by": "nll"})})
    options = candidates(then, "tiny", then.searches["rates"])

    def results(seed: int) -> list[Result]:
        return [
            result(option, seed, f1=f1, nll=nll, accuracy=0.9)
            for option, f1, nll in zip(options, (0.90, 0.90, 0.89, 0.50), (0.5, 0.6, 0.4, 0.1), strict=True)
        ]

    made = [*results(0), *results(1)]
    seeds = (0, 1)
    assert [one.chosen for one in choose(then, made, seeds).tried] == [False, False, True, False]
    assert [one.near for one in choose(then, made, seeds).tried] == [True, True, True, False]
    del made[7].views[-1].scores["nll"]  # of a candidate that is not near
    assert [one.chosen for one in choose(then, made, seeds).tried] == [False, False, True, False]
    del made[6].views[-1].scores["nll"]
    found = choose(then, made, seeds)
    assert ([one.chosen for one in found.tried], found.then_by, found.within) == (
        [True, False, False, False],
        None,
        None,
    )
    text = search_to_markdown("rates", "About.", [found])
    assert "Chosen by F1: rate 0.001; epochs 2 (equal as printed: rate 0.001; epochs 4)." in text
    failed = failed_result(made[2].run)  # the nearest of all by NLL, which so cannot be chosen
    others = [one for one in made if one.run_id != failed.run_id]
    assert [one.chosen for one in choose(then, [*others, failed], seeds).tried] == [True, False, False, False]


def test_those_equal_by_the_other_measure_are_named_where_they_are_near(searching: Registry) -> None:
    then = replace(searching, searches={"rates": RATES.model_copy(update={"then_by": "nll"})})
    options = candidates(then, "tiny", then.searches["rates"])
    results = [
        result(option, f1=f1, nll=0.4, accuracy=0.9)
        for option, f1 in zip(options, (0.90, 0.89, 0.50, 0.50), strict=True)
    ]
    text = search_to_markdown("rates", "About.", [choose(then, results)])
    assert "points): rate 0.001; epochs 2 (equal as printed: rate 0.001; epochs 4). " in text

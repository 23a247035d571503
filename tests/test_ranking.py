"""Ranks under every measure, and how far they agree with those of ECE."""

from dataclasses import replace

import pytest

from benchmark.ranking import RANKED_BY, Ranking, rank_methods
from benchmark.registry import Registry, Subject, select_tables
from benchmark.render import ranking_to_markdown
from benchmark.store import KnownResults, Result
from benchmark.tables import GridBuilder
from tests.results import made_result, tiny_inputs, with_scores

LOWER_BETTER = [name for name in RANKED_BY if name not in ("f1",)]


def scored(registry: Registry, method: str, **scores: float) -> Result:
    result = made_result(registry, Subject("tnews", "base", method))
    return with_scores(result, **(dict.fromkeys(LOWER_BETTER, 0.5) | scores))


def ranking(registry: Registry, results: list[Result]) -> list[Ranking]:
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    tables = select_tables(registry, "tiny", ["main", "noise", "low_frequency"])
    return rank_methods(builder, tables.values())


def test_ranks_and_their_agreement_by_hand(registry: Registry) -> None:
    results = [
        scored(registry, "ls", f1=0.9, ece=0.3, nll=0.1, brier=0.3, aurc=0.2),
        scored(registry, "poscal", f1=0.8, ece=0.2, nll=0.2, brier=0.2, aurc=0.2),
        scored(registry, "avuc", f1=0.9, ece=0.1, nll=0.3, brier=0.1, aurc=0.1),
    ]
    (found,) = ranking(registry, results)
    assert found.dataset == "tiny tnews"
    assert found.methods == ("AVUC", "PosCal", "LS")  # in the order of ECE
    by_measure = dict(zip(RANKED_BY, zip(*found.ranks, strict=True), strict=True))
    assert by_measure["ece"] == (1, 2, 3)
    assert by_measure["f1"] == (1, 3, 1)  # the higher is the better; equal ones share the better rank
    assert by_measure["nll"] == (3, 2, 1)
    assert by_measure["aurc"] == (1, 2, 2)
    agreement = dict(zip(RANKED_BY, found.agreement, strict=True))
    assert agreement["ece"] == agreement["brier"] == pytest.approx(1.0)
    assert agreement["nll"] == pytest.approx(-1.0)
    assert agreement["aurc"] == pytest.approx(2 / (3 * 2) ** 0.5)  # two pairs agree, one is tied
    assert agreement["mce"] is None


def test_a_method_without_results_is_left_out_and_one_alone_has_no_rank(registry: Registry) -> None:
    assert ranking(registry, []) == []
    assert ranking(registry, [scored(registry, "ls", ece=0.3)]) == []
    (found,) = ranking(registry, [scored(registry, "ls", ece=0.3), scored(registry, "avuc", ece=0.1)])
    assert found.methods == ("AVUC", "LS")


def test_methods_without_a_seed_in_common_have_no_ranks(registry: Registry) -> None:
    first = scored(registry, "ls", ece=0.3)
    other = with_scores(made_result(registry, Subject("tnews", "base", "avuc"), 1), **dict.fromkeys(LOWER_BETTER, 0.5))
    builder = GridBuilder(registry, "tiny", KnownResults.of([first, other]), tiny_inputs(), (0, 1))
    assert rank_methods(builder, select_tables(registry, "tiny", ["main"]).values()) == []


def test_the_table_names_measures_and_agreement(registry: Registry) -> None:
    (found,) = ranking(registry, [scored(registry, "ls", ece=0.3), scored(registry, "avuc", ece=0.1)])
    about, _, *lines = ranking_to_markdown(found).splitlines()
    assert about == "One seed (0)."
    assert [cell.strip() for cell in lines[0].strip("|").split("|")][:4] == ["tiny tnews", "F1", "ECE", "top-label ECE"]
    assert lines[2].split("|")[1].strip() == "AVUC"
    assert lines[-1].split("|")[1].strip() == "*agreement with ECE*"
    assert "–" in lines[-1]


def test_only_methods_on_the_base_encoder_are_ranked(registry: Registry) -> None:
    results = [scored(registry, "ls", ece=0.3), scored(registry, "hs_rau", ece=0.1)]
    builder = GridBuilder(registry, "tiny", KnownResults.of(results), tiny_inputs(), (0,))
    (found,) = rank_methods(builder, select_tables(registry, "tiny", ["main", "encoders"]).values())
    assert found.methods == ("HS-RAU", "LS")


def test_a_method_whose_temperature_was_not_found_has_no_rank(registry: Registry) -> None:
    results = [scored(registry, name, ece=ece) for name, ece in (("ls", 0.3), ("bert", 0.2), ("avuc", 0.1))]
    views = [
        view if view.temperature is None else view.model_copy(update={"temperature": 100.0, "at_bound": True})
        for view in results[1].views
    ]
    (found,) = ranking(registry, [results[0], results[1].model_copy(update={"views": views}), results[2]])
    assert found.methods == ("AVUC", "BERT", "LS")
    assert dict(zip(found.methods, found.ranks, strict=True))["LS"][1] == 3
    assert found.without_optimum == ("TS",)
    assert "Left out, because no temperature was found: TS." in ranking_to_markdown(found)
    named = replace(found, without_optimum=("*mine*",), short=("<b>x</b>",))
    assert r"found: \*mine\*." in ranking_to_markdown(named)
    assert "&lt;b&gt;x&lt;/b&gt;" in ranking_to_markdown(named)


def test_a_method_that_lacks_a_measure_is_left_out_and_the_others_are_ranked(registry: Registry) -> None:
    results = [scored(registry, "ls", ece=0.3), scored(registry, "hs_rau", ece=0.1), scored(registry, "avuc", ece=0.2)]
    for view in results[2].views:
        del view.scores["mce"]
    (found,) = ranking(registry, results)
    assert found.methods == ("HS-RAU", "LS")
    assert found.short == ("AVUC",)

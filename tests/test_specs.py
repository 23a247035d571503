"""Identity: every training setting counts, nothing else does."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from benchmark.registry import Inputs, Registry, Subject, load_registry, method_view, resolve_run
from benchmark.specs import (
    DataSpec,
    RunSpec,
    canonical,
    identity,
    readable_name,
    recipe_identity,
    sub_seed,
)
from tests.conftest import EXPERIMENTS

INPUTS = Inputs(
    {"tnews": "a" * 64, "banking77": "b" * 64}, {"bert_base_chinese": "c" * 64, "bert_base_uncased": "d" * 64}
)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(EXPERIMENTS)


@pytest.fixture(scope="module")
def run(registry: Registry) -> RunSpec:
    return resolve_run(registry, "paper", Subject("tnews", "base", "hs_rau", 0.05), 0, INPUTS)


def leaves(model: BaseModel, path: tuple = ()) -> list[tuple]:
    """The paths of all values in a description."""
    found = []
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            found += leaves(value, (*path, name))
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for index, item in enumerate(value):
                found += leaves(item, (*path, name, index))
        else:
            found.append((*path, name))
    return found


def changed(value: Any) -> list[Any]:
    """Other values of the same kind, for any of which the description may still be valid."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [value + 0.1, value * 0.5]
    if isinstance(value, tuple):
        return [tuple(item * 0.5 for item in value)]
    others = {"hyperspherical": [], "auto": ["float32"], "linear": ["none"], "frobenius": [5.0], "ignore": ["zero"]}
    others |= {"normalised": ["encoded"], "mean_entropy": [0.5], "rau": ["avuc"], "cross_entropy": [], "poscal": []}
    others |= {"forward": ["reverse"], "reverse": ["forward"]}
    if value is None:
        return [3]
    return others.get(value, [f"{value}x", "e" * 64])


def replaced(content: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    if isinstance(content, list):
        return [replaced(item, path[1:], value) if index == path[0] else item for index, item in enumerate(content)]
    return content | {path[0]: replaced(content.get(path[0]), path[1:], value)}


def test_every_field_of_a_run_counts(run: RunSpec) -> None:
    paths = leaves(run)
    assert len(paths) > 30
    untouched = []
    for path in paths:
        value = run
        for part in path:
            value = value[part] if isinstance(part, int) else getattr(value, part)
        for other in changed(value):
            try:
                variant = RunSpec.model_validate_json(json.dumps(replaced(run.model_dump(mode="json"), path, other)))
            except ValidationError:
                continue
            assert identity(variant) != identity(run), path
            break
        else:
            untouched.append(path[-1])
    # what names the kind of a part cannot be changed alone; other kinds are other runs, as the next test sees
    assert sorted(untouched) == ["kind", "term", "term"]


def test_methods_have_runs_of_their_own_except_for_calibrators(registry: Registry) -> None:
    names = list(registry.methods.methods)
    runs = {name: resolve_run(registry, "paper", Subject("tnews", "base", name), 0, INPUTS) for name in names}
    same = {(a, b) for a in names for b in names if a < b and runs[a] == runs[b]}
    posthoc = {name for name, method in registry.methods.methods.items() if method.posthoc is not None}
    of_other_runs = {("ls", "ls_ts"), ("focal", "focal_ts"), ("hs_rau", "hs_rau_ts"), ("hs_alone", "hs_alone_ts")}
    assert same >= of_other_runs
    of_other_runs |= {("hs_rau", "hs_rau_ts_clean"), ("hs_rau_ts", "hs_rau_ts_clean")}
    of_bert = {"ts", "ts_clean", "vector", "dirichlet", "beta", "isotonic", "histogram", "mc_dropout", "deep_ensemble"}
    assert {name for pair in same - of_other_runs for name in pair} == {"bert"} | of_bert
    assert posthoc == of_bert | {calibrated for _, calibrated in of_other_runs}


def test_runs_of_before_poscal_had_two_directions_keep_their_identity(registry: Registry) -> None:
    run = resolve_run(registry, "paper", Subject("tnews", "base", "hs_rau"), 0, INPUTS)
    assert run.loss[2].divergence == "reverse"
    assert "divergence" not in canonical(run)
    assert '"divergence":"forward"' in canonical(
        resolve_run(registry, "paper", Subject("tnews", "base", "poscal"), 0, INPUTS)
    )


def test_views_of_before_calibrators_could_be_fitted_on_clean_labels_keep_their_identity(registry: Registry) -> None:
    as_trained, clean = (method_view(registry, method) for method in ("ts", "ts_clean"))
    assert "validation_labels" not in canonical(as_trained)
    assert '"validation_labels":"clean"' in canonical(clean)
    assert identity(as_trained) != identity(clean)


def test_identity_survives_a_round_trip(run: RunSpec) -> None:
    assert identity(RunSpec.model_validate_json(run.model_dump_json())) == identity(run)
    assert RunSpec.model_validate_json(canonical(run)) == run


def test_identity_is_the_same_on_every_machine(run: RunSpec) -> None:
    """A golden value: if it changes, all results that people have are made again. Raise TRAINING_VERSION if that is
    meant.
    """
    assert identity(run) == "3763706b6622b6c7105dc597f44557b5335c303463b022f45bb437d67b8ba731"


def test_whole_numbers_and_floats_are_one_value() -> None:
    assert identity(DataSpec(dataset="x", fingerprint=None, corruption=0)) == identity(
        DataSpec(dataset="x", fingerprint=None, corruption=0.0)
    )


def test_recipe_leaves_contents_open(run: RunSpec) -> None:
    other = run.model_copy(update={"data": run.data.model_copy(update={"fingerprint": "f" * 64})})
    assert identity(other) != identity(run)
    assert recipe_identity(other) == recipe_identity(run)


def test_names_are_readable_and_different(registry: Registry) -> None:
    names = {
        readable_name(resolve_run(registry, "paper", Subject("tnews", "base", method, rate), seed, INPUTS))
        for method in ("bert", "ls", "poscal", "hs_rau")
        for rate in (0.0, 0.05, 0.5)
        for seed in (0, 1)
    }
    assert len(names) == 24
    run = resolve_run(registry, "paper", Subject("tnews", "base", "hs_rau", 0.3), 1, INPUTS)
    long = run.model_copy(update={"data": run.data.model_copy(update={"dataset": "d" * 300})})
    assert len(readable_name(long)) < 200  # an ending of a file being written still fits into 255
    assert readable_name(long).endswith(f".{identity(long)[:12]}")
    name = readable_name(run)
    assert name.startswith("tnews.noise0.3.bert_base_chinese.hyperspherical.cross_entropy+rau+poscal.seed1.")


@pytest.mark.parametrize("name", ["../x", "a/b", "A", "", "x" * 61, "a.b", "a b"])
def test_names_cannot_leave_their_folder(name: str) -> None:
    with pytest.raises(ValidationError):
        DataSpec(dataset=name, fingerprint=None, corruption=0.0)


def test_metric_settings_change_the_view_and_not_the_run(registry: Registry, run: RunSpec) -> None:
    subject = Subject("tnews", "base", "hs_rau", 0.05)
    from dataclasses import replace

    twenty = replace(registry, scoring=registry.scoring.model_copy(update={"ece_bins": 20}))
    assert identity(method_view(registry, subject.method)) != identity(method_view(twenty, subject.method))
    assert resolve_run(twenty, "paper", subject, 0, INPUTS) == run


def test_sub_seeds_differ_by_purpose_and_seed_and_stay() -> None:
    seeds = {sub_seed(seed, purpose) for seed in range(50) for purpose in ("head", "order", "dropout")}
    assert len(seeds) == 150
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert sub_seed(0, "head") == sub_seed(0, "head")
    assert sub_seed(0, "corruption", "train") != sub_seed(0, "corruption", "validation")

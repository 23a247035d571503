"""Functions of the user's own: found without being run, part of a run's identity, at work in a training."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark import own_code
from benchmark.calibrators import fit
from benchmark.declarations import TableColumn, TableRow
from benchmark.errors import UserError, first_line
from benchmark.models.heads import build_head
from benchmark.plan import make_plan
from benchmark.registry import Inputs, Subject, load_registry, resolve_run, select_tables
from benchmark.specs import OwnCalibrator, OwnHead, OwnTerm, identity, readable_name
from benchmark.store import KnownResults
from benchmark.tables import GridBuilder
from benchmark.training.objective import Objective
from benchmark.training.terms import live_term
from tests.conftest import run_module
from tests.results import made_result, tiny_inputs

SOURCE = """
import numpy as np
import torch
from scipy.special import softmax


def gap(logits, labels, scale):
    return scale * (logits.softmax(dim=1).max(dim=1).values - 0.5).abs().mean()


def two_layers(hidden, n_labels, generator, width):
    return torch.nn.Sequential(torch.nn.Linear(hidden, width), torch.nn.Tanh(), torch.nn.Linear(width, n_labels))


def cooler(logits, labels, factor):
    return lambda scores: softmax(factor * scores, axis=1)


def no_probabilities(logits, labels):
    return lambda scores: scores


def nearly_probabilities(logits, labels):
    return lambda scores: np.array([[1.0000009, 0.0]])


def no_module(hidden, n_labels, generator):
    return 3


def too_wide(hidden, n_labels, generator):
    return torch.nn.Linear(hidden, n_labels + 1)


def nothing(logits, labels, scale):
    scale * logits.sum()


def of_each(logits, labels):
    return logits.sum(dim=1)


def counted(logits, labels):
    return (logits.argmax(dim=1) == labels).float().mean()


def wrong(logits, labels, factor):
    raise ValueError("cannot be")


def leaves(logits, labels):
    raise SystemExit(3)


def endless(logits, labels):
    return lambda scores: np.zeros((10**15,))
"""
ENTRIES = """
losses:
  gap: {term: own, function: "parts:gap", weight: 0.1, settings: {scale: 2.0}}
heads:
  two_layers: {kind: own, function: "parts:two_layers", settings: {width: 8}}
calibrators:
  cooler: {kind: own, function: "parts:cooler", settings: {factor: 0.5}}
methods:
  mine: {label: Mine, head: two_layers, loss: [cross_entropy, gap], source: ours}
  mine_cooler: {label: Mine cooler, head: two_layers, loss: [cross_entropy, gap], posthoc: cooler, source: ours}
tables:
  mine:
    number: mine
    caption: My methods.
    optional: true
    rows: [[{method: bert}, {method: mine}, {method: mine_cooler}]]
    columns: [{label: TNEWS, dataset: tnews, metrics: [f1, ece]}]
"""


GIVES = """
import numpy as np


def fit(logits, labels):
    return lambda scores: np.array({})
"""


@pytest.fixture
def own(experiments: Path) -> Path:
    """The folder of own entries, with a module and entries that name its functions."""
    folder = experiments / "own"
    folder.mkdir()
    (folder / "parts.py").write_text(SOURCE, encoding="utf-8")
    (folder / "parts.yaml").write_text(ENTRIES, encoding="utf-8")
    return folder


def run_of(experiments: Path) -> str:
    run = resolve_run(load_registry(experiments), "tiny", Subject("tnews", "base", "mine"), 0, Inputs())
    assert ".own.cross_entropy+gap." in readable_name(run)
    return identity(run)


def test_another_source_or_setting_is_another_run(own: Path) -> None:
    first = run_of(own.parent)
    assert run_of(own.parent) == first
    (own / "parts.py").write_text(SOURCE + "\n# a word\n", encoding="utf-8")
    second = run_of(own.parent)
    (own / "parts.yaml").write_text(ENTRIES.replace("scale: 2.0", "scale: 3.0"), encoding="utf-8")
    assert len({first, second, run_of(own.parent)}) == 3


def test_settings_that_python_calls_equal_are_two_runs_where_their_types_differ(own: Path) -> None:
    entries = """
losses: {gap_%(name)s: {term: own, function: "parts:gap", weight: 0.1, settings: {scale: %(value)s}}}
calibrators: {cool_%(name)s: {kind: own, function: "parts:cooler", settings: {factor: %(value)s}}}
methods:
  m_%(name)s: {label: M, head: linear, loss: [cross_entropy, gap_%(name)s], source: ours}
  c_%(name)s: {label: C, head: linear, loss: [cross_entropy], posthoc: cool_%(name)s, source: ours}
"""
    for name, value in (("whole", "1"), ("real", "1.0"), ("flag", "true")):
        (own / f"{name}.yaml").write_text(entries % {"name": name, "value": value}, encoding="utf-8")
    registry = load_registry(own.parent)
    methods = ["m_whole", "m_real", "m_flag", "c_whole", "c_real", "c_flag"]
    tables = select_tables(registry, "tiny", ["main"])
    rows = (tuple(TableRow(method=method) for method in methods),)
    column = TableColumn(label="TNEWS", dataset="tnews", metrics=("f1",))
    table = tables["main"].model_copy(update={"rows": rows, "columns": (column,)})
    plan = make_plan(registry, "tiny", {"main": table}, [0], tiny_inputs(), KnownResults.of([]))
    assert [planned.methods for planned in plan] == [
        ("m_whole",),
        ("m_real",),
        ("m_flag",),
        ("c_whole", "c_real", "c_flag"),
    ]
    calibrated = [view.calibrator for view in plan[-1].asked if view.calibrator is not None]
    assert {type(calibrator.settings["factor"]) for calibrator in calibrated} == {int, float, bool}


def test_entries_without_functions_keep_their_runs(own: Path, tiny_experiments: Path) -> None:
    subject = Subject("tnews", "base", "hs_rau")
    with_own, without = (
        identity(resolve_run(load_registry(folder), "tiny", subject, 0, Inputs()))
        for folder in (own.parent, tiny_experiments)
    )
    assert with_own == without


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "parts:gap",
            "parts:gapp",
            r'own/parts\.yaml:3: losses\.gap\.function: .*defines no "gapp"; did you',
        ),
        (
            "parts:gap",
            "nothing:gap",
            r'losses\.gap\.function: There is no module "nothing": .*is not there',
        ),
        ("parts:gap", "parts", r"losses\.gap\.function: a function as \"module:function\" is expected, not .parts.\.$"),
        ("weight: 0.1", f'weight: 0.1, sha256: "{"0" * 64}"', r"another one than its sha256 says: [0-9a-f]{64}"),
        ("{scale: 2.0}", "[2.0]", r"losses\.gap\.settings: "),
    ],
)
def test_mistakes_are_one_sentence_with_their_place(own: Path, old: str, new: str, sentence: str) -> None:
    (own / "parts.yaml").write_text(ENTRIES.replace(old, new, 1), encoding="utf-8")
    (mistake,) = load_registry(own.parent).left_out.values()
    assert re.search(sentence, mistake)


def test_a_module_that_is_not_python_is_told_by_its_line(own: Path) -> None:
    (own / "parts.py").write_text("def gap(:\n", encoding="utf-8")
    (mistake,) = load_registry(own.parent).left_out.values()
    assert "parts.py:1: this is not Python" in mistake


@pytest.mark.parametrize(
    "line",
    [
        "from helper import x",
        "import helper.part as y",
        "from . import helper",
        "import experiments.own.helper",
        "import a_package",
    ],
)
def test_a_file_that_needs_another_one_beside_it_is_refused_with_its_line(own: Path, line: str) -> None:
    """The hash would not see the other file change."""
    (own / "helper.py").write_text("x = 1\n", encoding="utf-8")
    (own / "a_package").mkdir()
    (own / "random.py").write_text("", encoding="utf-8")  # is not what others get by that name
    assert load_registry(own.parent).left_out == {}
    lines = f"import torch\nimport random\n{line}\n"
    (own / "parts.py").write_text(SOURCE.replace("import torch\n", lines, 1), encoding="utf-8")
    (mistake,) = load_registry(own.parent).left_out.values()
    assert re.search(r"parts\.py:5: a file of own functions is read by itself and cannot import one beside", mistake)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("{scale: 2.0}", "{scael: 2.0}", r'parts\.py:\d+: gap takes no setting "scael"; did you mean "scale"\?$'),
        (
            'function: "parts:gap"',
            'function: "parts:needs"',
            r'parts\.py:\d+: needs needs "factor" among the settings\.$',
        ),
        ('function: "parts:gap"', 'function: "parts:takes_all"', None),
        ("{factor: 0.5}", "{factor: 0.5, other: 1}", r'parts\.py:\d+: cooler takes no setting "other"'),
        (
            "{scale: 2.0}",
            "{scale: 2.0, labels: 3}",
            r'parts\.py:\d+: gap is given "labels" as an array; it is no setting\.$',
        ),
        (", settings: {scale: 2.0}", "", r'parts\.py:\d+: gap needs "scale" among the settings\.$'),
        ("settings: {width: 8}", "settings: {}", r'parts\.py:\d+: two_layers needs "width" among the settings\.$'),
        ('function: "parts:gap"', 'function: "parts:bound_anew"', None),
        (
            '"parts:gap", weight: 0.1, settings: {scale: 2.0}',
            '"parts:too_few", weight: 0.1',
            r"parts\.py:\d+: too_few is given 2 arguments before its settings, and takes 1\.$",
        ),
    ],
)
def test_settings_that_a_function_does_not_take_are_told_from_its_source(
    own: Path, old: str, new: str, sentence: str | None
) -> None:
    more = """
def needs(logits, labels, scale, *, factor): ...


def too_few(logits): ...


def takes_all(logits, labels, **settings): ...


def bound_anew(logits, labels, *, other): ...


bound_anew = partial(bound_anew, other=1)
"""
    (own / "parts.py").write_text(SOURCE + more, encoding="utf-8")
    (own / "parts.yaml").write_text(ENTRIES.replace(old, new), encoding="utf-8")
    mistakes = list(load_registry(own.parent).left_out.values())
    assert len(mistakes) == (sentence is not None)
    if sentence is not None:
        assert re.search(r"parts\.yaml:\d+: [\w.]+: ", mistakes[0])
        assert re.search(sentence, mistakes[0])


def test_an_own_function_without_settings_needs_none_written(own: Path) -> None:
    (own / "parts.yaml").write_text(
        ENTRIES.replace('"parts:gap", weight: 0.1, settings: {scale: 2.0}', '"parts:of_each", weight: 0.1'),
        encoding="utf-8",
    )
    registry = load_registry(own.parent)
    assert registry.left_out == {}
    assert registry.methods.losses["gap"].settings == {}


def test_loading_a_registry_runs_nothing_of_it(own: Path) -> None:
    (own / "parts.py").write_text(SOURCE + "\nraise SystemExit('ran')\n", encoding="utf-8")
    assert "mine" in load_registry(own.parent).methods.methods


def test_functions_of_installed_packages_are_found_too(own: Path) -> None:
    installed = ENTRIES.replace("parts:gap", "benchmark.losses:brier_loss").replace(", settings: {scale: 2.0}", "")
    (own / "parts.yaml").write_text(installed, encoding="utf-8")
    term = load_registry(own.parent).methods.losses["gap"]
    assert own_code.load(term.function, term.sha256) is __import__("benchmark.losses").losses.brier_loss


def test_source_that_changed_since_planning_is_not_run(own: Path) -> None:
    term = load_registry(own.parent).methods.losses["gap"]
    own_code.look_in(own)
    assert own_code.load(term.function, term.sha256)(torch.zeros(2, 2), torch.zeros(2).long(), 1.0).item() == 0
    (own / "parts.py").write_text(SOURCE + "\n# a word\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"parts\.py has changed since this was planned"):
        own_code.load(term.function, term.sha256)


def test_what_runs_is_the_source_that_was_hashed_not_byte_code_of_another(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    own_code.look_in(own)
    path = own / "same.py"
    for number in "12":  # of one size and one second
        path.write_text(f"def number():\n    return {number}\n", encoding="utf-8")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert own_code.load("same:number", own_code.source_hash("same:number", own, 0, []))() == int(number)


def test_a_file_that_is_a_link_is_the_one_that_runs(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside an installed module of that name, which is not the one that was hashed."""
    for folder, number in (("linked", 1), ("installed", 2)):
        (tmp_path / folder).mkdir()
        source = f"def number():\n    return {number}\n"
        (tmp_path / folder / "twice.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    (own / "twice.py").symlink_to(tmp_path / "linked" / "twice.py")
    own_code.look_in(own)
    assert own_code.load("twice:number", own_code.source_hash("twice:number", own, 0, []))() == 1


def test_a_head_with_batch_normalisation_is_refused_and_one_that_fails_is_named(own: Path) -> None:
    source = """
import torch


def normed(hidden, n_labels, generator):
    return torch.nn.Sequential(torch.nn.BatchNorm1d(hidden), torch.nn.Linear(hidden, n_labels))


class Picky(torch.nn.Linear):
    def forward(self, encoded):
        if self.training:
            raise ValueError("not while training")
        return super().forward(encoded)


def picky(hidden, n_labels, generator):
    return Picky(hidden, n_labels)
"""
    (own / "heads.py").write_text(source, encoding="utf-8")
    own_code.look_in(own)
    with pytest.raises(UserError, match="heads:normed has a batch normalisation"):
        build_head(OwnHead(kind="own", function="heads:normed", settings={}), 4, 2, torch.Generator())
    head = build_head(OwnHead(kind="own", function="heads:picky", settings={}), 4, 2, torch.Generator())
    with pytest.raises(UserError, match=r"heads:picky failed \(.*/heads\.py:\d+\): ValueError: not while training"):
        head(torch.zeros(2, 4))


def test_a_loss_on_another_device_is_refused(own: Path) -> None:
    own_code.look_in(own)
    source = "import torch\n\n\ndef host(logits, labels):\n    return torch.ones(())\n"
    (own / "elsewhere.py").write_text(source, encoding="utf-8")
    term = OwnTerm(term="own", weight=1.0, function="elsewhere:host", settings={})
    on_device = torch.zeros(2, 2, device="meta"), torch.zeros(2, dtype=torch.long, device="meta")
    made = live_term(term, 2, 1, 1, torch.device("meta"), 0)
    with pytest.raises(UserError, match=r"elsewhere:host must give its value on the device of the logits, meta\."):
        made.value(*on_device)


def test_what_an_error_says_is_cut_and_made_of_letters() -> None:
    assert first_line(ValueError("x" * 5_000_000)) == "x" * 500 + "…"
    assert first_line(ValueError("half \udcff.")) == "half \\udcff"
    assert first_line(ValueError()) == "ValueError"


def test_a_function_that_writes_into_what_it_is_given_changes_it_for_itself_alone(own: Path) -> None:
    source = """
def fit(logits, labels):
    logits[:], labels[:] = 0.0, 1

    def probabilities(scores):
        scores[:] = 0.5
        return scores

    return probabilities


def loss(logits, labels):
    labels.zero_()
    return logits.mul_(2.0).sum()
"""
    (own / "writes.py").write_text(source, encoding="utf-8")
    own_code.look_in(own)
    logits, labels = np.array([[2.0, -1.0], [0.0, 1.0]]), np.array([0, 1])
    kept = logits.copy(), labels.copy()
    probabilities = fit(OwnCalibrator(kind="own", function="writes:fit", settings={}), logits, labels).probabilities
    assert probabilities(logits).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert (logits == kept[0]).all()
    assert (labels == kept[1]).all()
    term = OwnTerm(term="own", function="writes:loss", weight=1.0, settings={})
    batch, of_batch = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([1])
    live_term(term, 2, 1, 1, torch.device("cpu"), 0).value(batch, of_batch).backward()
    assert batch.grad.tolist() == [[2.0, 2.0]]
    assert (batch.tolist(), of_batch.tolist()) == ([[1.0, 2.0]], [1])


def test_a_file_of_a_loss_that_fails_when_it_is_read_is_one_sentence(own: Path) -> None:
    (own / "fails.py").write_text("raise RuntimeError('no luck')\n", encoding="utf-8")
    own_code.look_in(own)
    term = OwnTerm(term="own", function="fails:loss", weight=1.0, settings={})
    with pytest.raises(UserError, match=r"fails:loss.*RuntimeError: no luck"):
        live_term(term, 2, 1, 1, torch.device("cpu"), 0)


def test_that_a_function_has_changed_since_its_result_is_said(own: Path) -> None:
    before = load_registry(own.parent)
    result = made_result(before, Subject("tnews", "base", "mine"))
    finished, inputs = KnownResults.of([result], [result.run_id]), tiny_inputs()

    def reasons() -> tuple[str, object]:
        registry = load_registry(own.parent)
        tables = select_tables(registry, "tiny", ["mine"], None, ["mine"])
        (planned,) = make_plan(registry, "tiny", tables, [0], inputs, finished)
        builder = GridBuilder(registry, "tiny", finished, inputs, (0,))
        return planned.reason, builder.build("mine", registry.tables["mine"]).every_row[1].cells[0].why_missing

    assert reasons() == ("1 of 2 views not scored yet", None)
    (own / "parts.py").write_text(SOURCE + "\n# a word\n", encoding="utf-8")
    assert reasons() == (
        "its function is another one than that of the result at hand",
        "its function has changed since; benchmark.run trains it anew",
    )
    (own / "parts.yaml").write_text(ENTRIES.replace("scale: 2.0", "scale: 3.0"), encoding="utf-8")
    assert reasons() == ("no result yet", "no result")
    (own / "parts.yaml").write_text(ENTRIES, encoding="utf-8")
    (own / "parts.py").write_text(SOURCE, encoding="utf-8")
    inputs = Inputs({**inputs.datasets, "tiny_tnews": "f" * 64}, inputs.encoders)  # it is the data that changed
    assert reasons() == ("other data or encoder weights than the result at hand", "no result")


def test_what_a_function_gives_is_checked(own: Path) -> None:
    own_code.look_in(own)
    logits, labels = np.array([[2.0, -1.0]]), np.array([0])
    calibrator = OwnCalibrator(kind="own", function="parts:no_probabilities", settings={})
    with pytest.raises(UserError, match=r"parts:no_probabilities must give probabilities.*; the lowest is -1\.$"):
        fit(calibrator, logits, labels).probabilities(logits)
    for given, mistake in (
        ([[0.4, 0.5]], r"probabilities, each row summing to 1; a row sums to 0\.9\.$"),
        ([[1.5, -0.5]], r"probabilities, each row summing to 1; the lowest is -0\.5\.$"),
        ([[float("nan"), 1.0]], r"probabilities, each row summing to 1; 1 of them are not finite\.$"),
        ([[0.5, 0.25, 0.25]], r"probabilities of shape \(1, 2\), not \(1, 3\)\.$"),
    ):
        (own / "given.py").write_text(GIVES.format(given).replace("nan", "float('nan')"), encoding="utf-8")
        sys.modules.pop("benchmark_own_given", None)
        calibrator = OwnCalibrator(kind="own", function="given:fit", settings={})
        with pytest.raises(UserError, match=f"^given:fit must give {mistake}"):
            fit(calibrator, logits, labels).probabilities(logits)
    calibrator = OwnCalibrator(kind="own", function="parts:nearly_probabilities", settings={})
    assert fit(calibrator, logits, labels).probabilities(logits).tolist() == [[1.0, 0.0]]  # or its NLL were below 0
    head = OwnHead(kind="own", function="parts:no_module", settings={})
    with pytest.raises(UserError, match="parts:no_module must give a torch module, not int"):
        build_head(head, 4, 2, torch.Generator())
    head = OwnHead(kind="own", function="parts:too_wide", settings={})
    with pytest.raises(UserError, match=r"parts:too_wide must give \(B, 2\) logits for \(B, 4\), not \(2, 3\)"):
        build_head(head, 4, 2, torch.Generator())
    calibrator = OwnCalibrator(kind="own", function="parts:nothing", settings={"scale": 1.0})
    with pytest.raises(UserError, match=r"parts:nothing must give a function from .*, not one of type NoneType"):
        fit(calibrator, logits, labels)


@pytest.mark.parametrize(
    ("function", "settings", "sentence"),
    [
        ("nothing", {"scale": 1.0}, "parts:nothing must give a scalar tensor, not NoneType"),
        ("of_each", {}, r"parts:of_each must give a scalar tensor, not a tensor of shape \(2,\)"),
        ("counted", {}, "parts:counted gives a value that does not hang on the logits"),
        ("wrong", {"factor": 1.0}, r"parts:wrong failed \(.*/parts\.py:\d+\): ValueError: cannot be"),
        ("gap", {"facter": 1.0}, "parts:gap failed: TypeError: .*facter"),
    ],
)
def test_a_loss_that_gives_no_scalar_is_refused(own: Path, function: str, settings: dict, sentence: str) -> None:
    own_code.look_in(own)
    term = OwnTerm(term="own", weight=1.0, function=f"parts:{function}", settings=settings)
    objective = Objective((term,), 2, 1, 1, torch.device("cpu"), 0)
    with pytest.raises(UserError, match=sentence):
        objective(torch.zeros(2, 2, requires_grad=True), torch.zeros(2).long())


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("parts:leaves", r"parts:leaves failed \(.*/parts\.py:\d+\): SystemExit: 3"),
        ("parts:endless", "parts:endless asks for more memory than there is"),
        (
            "lacking:anything",
            r"lacking:anything failed \(.*/lacking\.py:1\): ModuleNotFoundError: No module named 'no_such_package'",
        ),
    ],
)
def test_whatever_a_calibrator_does_is_one_sentence(own: Path, function: str, sentence: str) -> None:
    (own / "lacking.py").write_text("import no_such_package\n\ndef anything(logits, labels): ...\n")
    own_code.look_in(own)
    logits, labels = np.array([[2.0, -1.0]]), np.array([0])
    with pytest.raises(UserError, match=sentence):
        fit(OwnCalibrator(kind="own", function=function, settings={}), logits, labels).probabilities(logits)


def test_a_module_nested_too_deeply_is_left_out(own: Path) -> None:
    (own / "parts.py").write_text("x = " + "-" * 200_000 + "1", encoding="utf-8")
    (mistake,) = load_registry(own.parent).left_out.values()
    assert "nested too deeply" in mistake or "this is not Python" in mistake


def test_a_mistake_leaves_files_that_stand_on_each_other(experiments: Path) -> None:
    own = experiments / "own"
    own.mkdir()
    (own / "a.yaml").write_text(
        "heads: {ha: {kind: linear, dropout: 0.2}}\nmethods: {ma: {label: A, head: linear, loss: [lb], source: ours}}\n"
    )
    (own / "b.yaml").write_text(
        "losses: {lb: {term: cross_entropy, weight: 1.0, smoothing: 0.2}}\n"
        "methods: {mb: {label: B, head: ha, loss: [lb], source: ours}}\n"
    )
    (own / "c.yaml").write_text("methods: {mc: {label: C, head: linear, loss: [no_such], source: ours}}\n")
    (own / "d.yaml").write_text("methods: {md: {label: D, head: hc, loss: [lb], source: ours}}\n")
    registry = load_registry(experiments)
    assert [path.name for path in registry.left_out] == ["c.yaml", "d.yaml"]
    assert registry.methods.methods.keys() >= {"ma", "mb"}


def test_a_calibrator_that_fails_costs_nothing_but_its_own_row(own: Path, tmp_path: Path, cache_dir: Path) -> None:
    (own / "parts.yaml").write_text(ENTRIES.replace("parts:cooler", "parts:wrong"), encoding="utf-8")
    options = ["--experiments", own.parent, "--profile", "tiny", "--results-dir", tmp_path / "results"]
    environment = {"BENCHMARK_CACHE_DIR": str(cache_dir)}
    for trained in ("1 trained, 0 failed, 0 done before", "0 trained, 0 failed, 1 done before"):  # from stored logits
        run = run_module("run", *options, "--table", "mine", "--methods", "mine", "mine_cooler", env=environment)
        assert run.returncode == 1
        assert re.search(r"parts:wrong failed \(.*/parts\.py:\d+\): ValueError: cannot be", run.stdout)
        assert "Traceback" not in run.stderr
        assert f"{trained}, of which not all could be scored as asked (why: above). " in run.stdout
    assert re.search(r"^failed: .*cross_entropy\+gap\S*\.json: parts:wrong failed", run.stdout, flags=re.MULTILINE)
    (own / "parts.yaml").write_text(ENTRIES, encoding="utf-8")
    mended = run_module("run", *options, "--table", "mine", "--methods", "mine", "mine_cooler", env=environment)
    assert mended.returncode == 0
    assert "1 finished runs scored again" in mended.stdout


def test_own_methods_are_trained_scored_and_reported(own: Path, tmp_path: Path, cache_dir: Path) -> None:
    options = ["--experiments", own.parent, "--profile", "tiny", "--results-dir", tmp_path / "results"]
    environment = {"BENCHMARK_CACHE_DIR": str(cache_dir)}
    run = run_module("run", *options, "--table", "mine", env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 trained, 0 failed" in run.stdout
    (own / "parts.yaml").write_text(ENTRIES.replace("factor: 0.5", "factor: 0.25"), encoding="utf-8")
    again = run_module("run", *options, "--table", "mine", env=environment)
    assert "1 finished runs scored again from their logits" in again.stdout
    assert "0 trained, 0 failed, 2 done before" in again.stdout
    report = run_module("report", *options, "--table", "mine", "--tables-dir", tmp_path / "tables", env=environment)
    assert "| Mine cooler " in report.stdout
    assert "missing" not in report.stdout

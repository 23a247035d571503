"""Data of the user's own: the entries written for it, what is refused, and the whole comparison as a stranger runs
it.
"""

import json
import re
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace

import datasets
import huggingface_hub
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from benchmark.data import check_corpus, load_corpus
from benchmark.declarations import Dataset
from benchmark.errors import UserError
from benchmark.inputs import FoundInputs, places
from benchmark.own_data import OwnFiles, declares_profile, own_entries, own_files, write_own_entries
from benchmark.own_report import report_comparison
from benchmark.pseudo_words import pseudo_words
from benchmark.registry import Inputs, Registry, Subject, load_registry, select_tables
from benchmark.store import ResultFolder
from tests.conftest import EXPERIMENTS, run_module
from tests.results import made_result

REGISTRY = load_registry(EXPERIMENTS)
SMALL = "multilingual_e5_small_3_layers"
LABELS = ["pay", "pay", "pay", "move", "move", "close"]


def rows(n: int = 60) -> list[tuple[str, str]]:
    """Texts whose words tell their label; half are of one, a third of another, a sixth of the rarest."""
    return [(f"{LABELS[index % 6]} word{index % 7} please {index}", LABELS[index % 6]) for index in range(n)]


def write_csv(path: Path, content: list[tuple[str, str]], header: str = "utterance,intent") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(f"{text},{label}" for text, label in content)]) + "\n", encoding="utf-8")
    return path


def files(train: Path, test: Path | None = None, validation: Path | None = None, **changes: str) -> OwnFiles:
    return OwnFiles(train.stem, train, validation, test, **({"text": "utterance", "label": "intent"} | changes))


def entries(given: OwnFiles, encoder: str = SMALL) -> dict[str, dict]:
    return own_entries(given, "mine", encoder, REGISTRY.encoders[encoder])


# --- rows held out by label ------------------------------------------------------------------------------------------


def stratified(n_test: int, n_validation: int) -> Dataset:
    held_out = {"seed": 3, "stratified": True}
    return Dataset.model_validate(
        {
            "label": "mine",
            "source": {
                "kind": "files",
                "folder": "mine",
                "format": "csv",
                "train": ["all.csv"],
                "text": "utterance",
                "intent": ["intent"],
            },
            "test": {"rows": n_test} | held_out,
            "validation": {"rows": n_validation} | held_out,
            "tokens_per_text": 8.0,
        }
    )


def test_rows_held_out_by_label_take_each_labels_share(tmp_path: Path) -> None:
    content = rows(600)
    write_csv(tmp_path / "mine" / "all.csv", content)
    corpus = load_corpus("mine", stratified(120, 60), [tmp_path])
    parts = {name: corpus.split(name) for name in ("train", "validation", "test")}
    assert {name: len(part) for name, part in parts.items()} == {"train": 420, "validation": 60, "test": 120}
    texts = [text for part in parts.values() for text in part.texts]
    assert sorted(texts) == sorted(text for text, _ in content)
    for name, wanted in (("test", (60, 40, 20)), ("validation", (30, 20, 10))):
        found = Counter(corpus.label_names[label] for label in parts[name].labels.tolist())
        assert [found[label] for label in ("pay", "move", "close")] == pytest.approx(wanted, abs=1)
    again = load_corpus("mine", stratified(120, 60), [tmp_path])
    assert again.fingerprint == corpus.fingerprint


def test_a_rare_label_gives_a_test_row_before_any_gives_a_second(tmp_path: Path) -> None:
    sizes = {"common": 170, "five": 5, "four": 4, "three": 3, "two": 2}
    content = [(f"{label} {index}", label) for label, size in sizes.items() for index in range(size)]
    write_csv(tmp_path / "mine" / "all.csv", content)
    corpus = load_corpus("mine", stratified(37, 18), [tmp_path])
    counts = [
        dict(zip(corpus.label_names, np.bincount(corpus.split(split).labels, minlength=5), strict=True))
        for split in ("train", "validation", "test")
    ]
    assert [[found[label] for found in counts] for label in sizes] == [
        [120, 16, 34],
        [3, 1, 1],
        [2, 1, 1],
        [2, 0, 1],
        [2, 0, 0],
    ]
    assert check_corpus(corpus).labels_without_test_rows == ("two",)


@pytest.mark.parametrize(("common", "rare", "each"), [(200, 100, 3), (300, 200, 4), (300, 50, 2)])
def test_many_rare_labels_do_not_displace_a_common_one(common: int, rare: int, each: int, tmp_path: Path) -> None:
    content = [(f"c {index}", "common") for index in range(common)]
    content += [(f"r {label} {index}", f"rare{label:03}") for label in range(rare) for index in range(each)]
    write_csv(tmp_path / "mine" / "all.csv", content)
    share = common / len(content)
    tested = []
    for seed in (3, 4):
        declared = stratified(len(content) // 5, len(content) // 10).model_dump()
        declared["test"]["seed"] = declared["validation"]["seed"] = seed
        corpus = load_corpus("mine", Dataset.model_validate(declared), [tmp_path])
        for split in ("train", "validation", "test"):
            found = corpus.split(split).labels
            assert (found == corpus.label_names.index("common")).mean() == pytest.approx(share, abs=0.02), split
        tested.append(set(corpus.test.labels.tolist()))
    assert tested[0] != tested[1]  # which labels, is by lot


def test_a_repeated_text_is_not_trained_on_and_tested_too(tmp_path: Path) -> None:
    content = [(f"text {index % 300}", f"label{index % 300 % 3}") for index in range(400)]
    write_csv(tmp_path / "mine" / "all.csv", content)
    corpus = load_corpus("mine", stratified(80, 40), [tmp_path])
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (280, 40, 80)
    report = check_corpus(corpus)
    assert report.test_texts_seen_before == 0
    assert report.repeated_in_split == {"train": 100, "validation": 0, "test": 0}
    with_a_label_of_repeats = [*content, *[("hi", "greeting"), ("hello", "greeting")] * 30]
    write_csv(tmp_path / "mine" / "all.csv", with_a_label_of_repeats)  # it gives its share even so, and that is counted
    corpus = load_corpus("mine", stratified(80, 40), [tmp_path])
    greeting = corpus.label_names.index("greeting")
    shares = [(corpus.split(split).labels == greeting).sum() for split in ("train", "validation", "test")]
    assert shares == [pytest.approx(wanted, abs=1) for wanted in (44, 5, 10)]
    assert check_corpus(corpus).test_texts_seen_before == shares[2]


def test_no_label_gives_up_its_last_training_row(tmp_path: Path) -> None:
    content = [(f"text {index}", f"label{index % 20}") for index in range(40)] + [("alone", "single")]
    write_csv(tmp_path / "mine" / "all.csv", content)
    corpus = load_corpus("mine", stratified(12, 6), [tmp_path])
    assert np.bincount(corpus.train.labels, minlength=corpus.n_labels).min() == 1
    assert "alone" in corpus.train.texts
    with pytest.raises(
        UserError, match=r"21 test rows cannot be held out of 41 training rows \(each label keeps one\)"
    ):
        load_corpus("mine", stratified(21, 1), [tmp_path])


def test_plain_rows_held_out_are_those_of_before(tmp_path: Path) -> None:
    """The published splits of the three data sets rest on this draw."""
    write_csv(tmp_path / "mine" / "all.csv", [(f"t{index}", "ab"[index % 2]) for index in range(10)])
    declared = stratified(3, 2).model_dump()
    declared["test"]["stratified"] = declared["validation"]["stratified"] = False
    corpus = load_corpus("mine", Dataset.model_validate(declared), [tmp_path])
    drawn = np.random.default_rng(3).permutation(10)[:3]
    assert corpus.test.texts == tuple(f"t{index}" for index in sorted(drawn))


# --- the entries -----------------------------------------------------------------------------------------------------


def test_a_single_file_is_split_and_settings_fit_its_size(tmp_path: Path) -> None:
    found = entries(files(write_csv(tmp_path / "My data.csv", rows(100))))
    dataset = found["datasets"]["mine"]
    assert dataset["label"] == "My data"
    assert (dataset["test"]["rows"], dataset["validation"]["rows"], dataset["training_rows"]) == (20, 10, 70)
    training = found["profiles"]["mine"]["training"][0]
    assert (training["batch_size"], training["epochs"], training["max_length"]) == (32, 40, 64)
    assert training["learning_rate"] == 2.2e-4
    wide = entries(files(tmp_path / "My data.csv"), "bert_base_uncased")["profiles"]["mine"]["training"][0]
    assert wide["learning_rate"] == 2.9e-5
    large = entries(files(write_csv(tmp_path / "large.csv", rows(20_000))))["profiles"]["mine"]["training"][0]
    assert (large["batch_size"], large["epochs"], large["learning_rate"]) == (256, 15, 3e-4)


def test_long_texts_get_longer_rows(tmp_path: Path) -> None:
    content = [(f"{text} {'many words of it ' * 30}", label) for text, label in rows(60)]
    length = entries(files(write_csv(tmp_path / "x.csv", content)))["profiles"]["mine"]["training"][0]["max_length"]
    assert 120 <= length <= 256
    content = [("字" * 3000 + text, label) for text, label in rows(60)]
    assert (
        entries(files(write_csv(tmp_path / "y.csv", content)))["profiles"]["mine"]["training"][0]["max_length"] == 512
    )


def test_a_link_is_taken_as_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("utterance,intent\n" + "".join(f"a{n},l{n % 2}\n" for n in range(20)))
    (tmp_path / "train.csv").symlink_to("blob")  # as the hub's cache stores files
    source = entries(files(tmp_path / "train.csv"))["datasets"]["mine"]["source"]
    assert (source["folder"], source["train"]) == (str(tmp_path), ["train.csv"])


def test_files_of_their_own_are_taken_whole(tmp_path: Path) -> None:
    given = files(
        write_csv(tmp_path / "a" / "train [1].csv", rows(60)),
        test=write_csv(tmp_path / "b" / "test.csv", rows(12)),
        validation=write_csv(tmp_path / "b" / "dev.csv", rows(6)),
    )
    dataset = Dataset.model_validate(entries(given)["datasets"]["mine"])
    corpus = load_corpus("mine", dataset, [])
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (60, 6, 12)


def test_csv_json_lines_and_parquet_of_the_same_rows_are_the_same_data(tmp_path: Path) -> None:
    content = rows(60)
    write_csv(tmp_path / "x.csv", content)
    write_csv(tmp_path / "x2.csv", [(text, f"{label}") for text, label in content])
    (tmp_path / "x.tsv").write_text(
        "utterance\tintent\n" + "".join(f"{a}\t{b}\n" for a, b in content), encoding="utf-8"
    )
    lines = (json.dumps({"utterance": text, "intent": label}) for text, label in content)
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pd.DataFrame(content, columns=["utterance", "intent"]).to_parquet(tmp_path / "x.parquet")
    prints = set()
    for name in ("x.csv", "x2.csv", "x.tsv", "x.jsonl", "x.parquet"):
        dataset = Dataset.model_validate(entries(files(tmp_path / name))["datasets"]["mine"])
        prints.add(load_corpus("mine", dataset, []).fingerprint)
    assert len(prints) == 1


def test_the_written_entries_are_the_registrys_and_are_written_anew(experiments: Path, tmp_path: Path) -> None:
    given = files(write_csv(tmp_path / "Help desk-2.csv", rows(60)))
    name, path, *_ = write_own_entries(experiments, given, None, SMALL)
    assert (name, path) == ("help_desk_2", experiments / "own" / "help_desk_2.yaml")
    registry = load_registry(experiments)
    assert list(select_tables(registry, name, ["all"])) == [name]
    before = path.read_text(encoding="utf-8")
    write_own_entries(experiments, given, None, SMALL)
    assert path.read_text(encoding="utf-8") == before
    path.write_text(before.replace("epochs: 40", "epochs: 3"), encoding="utf-8")
    with pytest.raises(UserError, match="is not as this command wrote it: run it by --profile help_desk_2"):
        write_own_entries(experiments, given, None, SMALL)
    path.write_text(before, encoding="utf-8")
    other = files(write_csv(tmp_path / "elsewhere" / "Help desk-2.csv", rows(60)))
    with pytest.raises(
        UserError, match=r'"help_desk_2" stands for .*Help desk-2\.csv already; choose another by --name'
    ):
        write_own_entries(experiments, other, None, SMALL)


def test_mistakes_in_own_entries_are_told_with_their_place(experiments: Path, tmp_path: Path) -> None:
    _, path, *_ = write_own_entries(experiments, files(write_csv(tmp_path / "mine.csv", rows(60))), None, SMALL)
    text = path.read_text(encoding="utf-8")
    for old, new, sentence in (
        (SMALL, "no_such_encoder", r"own/mine\.yaml:\d+: profiles\.mine\.encoders\.base: there is no encoder"),
        ("  mine:", "  small:", r"own/mine\.yaml:\d+: profiles\.small: the name is taken by .*profiles\.yaml"),
        ("profiles:", "profile:", r"own/mine\.yaml:\d+: profile: unknown key"),
    ):
        path.write_text(text.replace(old, new), encoding="utf-8")
        registry = load_registry(experiments)
        assert re.search(sentence, registry.left_out[path])
        assert "mine" not in registry.profiles


def test_a_file_with_mistakes_stops_only_itself_and_what_needs_it(experiments: Path, tmp_path: Path) -> None:
    own = experiments / "own"
    own.mkdir()
    (own / "a_needs_z.yaml").write_text(
        "methods:\n  both: {label: Both, head: flat, loss: [cross_entropy], source: ours}\n", encoding="utf-8"
    )
    (own / "b_wrong.yml").write_text("methods: 3\n", encoding="utf-8")
    (own / "z.yaml").write_text("heads:\n  flat: {kind: linear, dropout: 0.0}\n", encoding="utf-8")
    registry = load_registry(experiments)
    assert "both" in registry.methods.methods
    assert [path.name for path in registry.left_out] == ["b_wrong.yml"]
    (own / "z.yaml").unlink()
    registry = load_registry(experiments)
    assert [path.name for path in registry.left_out] == ["b_wrong.yml", "a_needs_z.yaml"]
    assert "bert" in registry.methods.methods
    (own / "c_needs_z.yaml").write_text(
        "methods:\n  one: {label: One, head: flat, loss: [cross_entropy, gap], source: ours}\n", encoding="utf-8"
    )
    registry = load_registry(experiments)
    assert all(len(mistake.splitlines()) == 1 for mistake in registry.left_out.values())
    mistake = registry.left_out[own / "c_needs_z.yaml"]
    assert mistake.endswith("And 1 more, which may all come from the files left out before.")
    with pytest.raises(
        UserError, match=r'no profile "c_needs_z": its file is left out\. .*c_needs_z\.yaml:2: .*"flat"'
    ):
        registry.profile("c_needs_z")
    name, *_ = write_own_entries(experiments, files(write_csv(tmp_path / "mine.csv", rows(60))), None, SMALL)
    assert name in load_registry(experiments).profiles


def test_odd_file_names_are_no_hindrance(experiments: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("a:b.csv", "~tilde.csv", "[x] 'y'.csv", "数据.csv", "x" * 80 + ".csv", "9.csv")):
        given = files(write_csv(tmp_path / str(number) / name, rows(60)))
        made, *_ = write_own_entries(experiments, given, f"odd{number}", SMALL)
        assert len(load_corpus(made, load_registry(experiments).datasets[made], []).test) == 12
    assert write_own_entries(experiments, given, None, SMALL)[0] == "data_9"


@pytest.mark.parametrize("title", ["2e5", "1_0.5E-3", "1e5x", "2026-11-29", "yes", "null", "0x1f", "1.5", "a: b"])
def test_a_file_or_a_column_that_looks_like_something_else_stays_what_it_is(
    experiments: Path, tmp_path: Path, title: str
) -> None:
    given = files(write_csv(tmp_path / f"{title}.csv", rows(60), f"{title},intent"), text=title)
    name, path, *_ = write_own_entries(experiments, given, None, SMALL)
    dataset = load_registry(experiments).datasets[name]
    assert (dataset.label, dataset.source.text) == (title, title), path.read_text(encoding="utf-8")


def test_a_data_set_of_the_hub_is_fetched_once_and_taken_by_its_splits(
    experiments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load(name: str, config: str | None, revision: str, split: str) -> datasets.Dataset:
        asked.append((name, revision, split) if config is None else (name, config, revision, split))
        content = rows(60 if split == "train" else 12)
        return datasets.Dataset.from_dict({"utterance": [a for a, _ in content], "intent": [b for _, b in content]})

    class Hub:
        def dataset_info(self, name: str) -> SimpleNamespace:
            return SimpleNamespace(sha="5" * 40)

    class Away:
        def dataset_info(self, name: str) -> SimpleNamespace:
            raise OSError("no network")

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    taken = partial(own_files, validation=None, test="test", text="utterance", label="intent", delimiter=None)
    found = taken("owner/help-desk", cache=tmp_path)
    assert asked == [("owner/help-desk", "5" * 40, "train"), ("owner/help-desk", "5" * 40, "test")]
    declared = entries(found)["datasets"]["mine"]
    assert declared["label"] == "owner/help-desk"
    corpus = load_corpus("mine", Dataset.model_validate(declared), [])
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (54, 6, 12)
    monkeypatch.setattr(huggingface_hub, "HfApi", Away)
    assert taken("owner/help-desk", cache=tmp_path) == found
    assert len(asked) == 2
    with pytest.raises(UserError, match='"owner/other" is not a file here, and the hub has no such data set or cannot'):
        taken("owner/other", cache=tmp_path)
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    german = taken("owner/help-desk/de", cache=tmp_path)
    assert asked[2:] == [("owner/help-desk", "de", "5" * 40, split) for split in ("train", "test")]
    assert german.train != found.train
    assert write_own_entries(experiments, german, None, SMALL)[0] == "help_desk_de"


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (rows(60)[2:5], "too few to hold out"),
        ([("a", "only"), ("b", "only")] * 20, 'has only the label "only"'),
        ([], "no row in this file"),
    ],
)
def test_rows_that_cannot_be_compared_on_are_refused(
    tmp_path: Path, content: list[tuple[str, str]], sentence: str
) -> None:
    path = write_csv(tmp_path / "mine.csv", content)
    with pytest.raises(UserError, match=sentence):
        load_corpus("mine", Dataset.model_validate(entries(files(path))["datasets"]["mine"]), [])


def test_one_test_row_is_refused(tmp_path: Path) -> None:
    """A bootstrap over it has no spread, so every difference would be beyond noise."""
    train, test = write_csv(tmp_path / "train.csv", rows(60)), write_csv(tmp_path / "test.csv", rows(60)[:1])
    dataset = Dataset.model_validate(entries(files(train, test))["datasets"]["mine"])
    with pytest.raises(UserError, match=r'"mine" has one test row, by which nothing can be told from noise; give it'):
        load_corpus("mine", dataset, [])
    write_csv(test, rows(60)[:2])
    assert len(load_corpus("mine", dataset, []).test) == 2


def test_a_thousand_labels_of_two_rows_are_split_and_of_one_row_are_not(tmp_path: Path) -> None:
    two = write_csv(tmp_path / "two.csv", [(f"text {index}", f"label {index // 2}") for index in range(2000)])
    dataset = Dataset.model_validate(entries(files(two))["datasets"]["mine"])
    corpus = load_corpus("mine", dataset, [])
    assert (corpus.n_labels, len(corpus.test), len(corpus.validation)) == (1000, 400, 200)
    assert np.bincount(corpus.train.labels, minlength=1000).min() == 1
    one = write_csv(tmp_path / "one.csv", [(f"text {index}", f"label {index}") for index in range(1000)])
    with pytest.raises(UserError, match="1000 rows of 1000 labels are too few"):
        entries(files(one))


def test_a_label_of_the_test_file_alone_is_refused_with_its_place(tmp_path: Path) -> None:
    test = write_csv(tmp_path / "test.csv", [*rows(12), ("new", "unheard")])
    given = files(write_csv(tmp_path / "mine.csv", rows(60)), test=test)
    with pytest.raises(UserError, match=r'test\.csv:14: the label "unheard" is not one of the 3 labels'):
        load_corpus("mine", Dataset.model_validate(entries(given)["datasets"]["mine"]), [])


def test_wrong_files_columns_and_names_are_one_sentence(experiments: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "mine.csv", rows(60))
    (tmp_path / "mine.xlsx").write_bytes(b"PK")
    (tmp_path / "mine.jsonl").write_text("{}", encoding="utf-8")
    for given, sentence in (
        (files(tmp_path / "none.csv"), r"none\.csv is not a file"),
        (files(tmp_path), r" is a folder; name the file in it, and those of other splits by --test-data"),
        (files(tmp_path / "mine.xlsx"), r"the ending must tell the format; known: \.csv"),
        (files(path, test=tmp_path / "mine.jsonl"), "must have one format"),
        (files(path, label="intnet"), r'mine\.csv:1: there is no column "intnet"; did you mean "intent"\?'),
    ):
        with pytest.raises(UserError, match=sentence):
            write_own_entries(experiments, given, None, SMALL)
    for name, sentence in (
        ("small", 'There is a profile "small" already'),
        ("../x", "cannot be a name"),
        ("n" * 51, "at most 50"),
        ("recommendation", 'name: "recommendation" is what another file'),
    ):
        with pytest.raises(UserError, match=sentence):
            write_own_entries(experiments, files(path), name, SMALL)
    with pytest.raises(UserError, match='methods: "ts" is named twice'):
        write_own_entries(experiments, files(path), None, SMALL, ["bert", "ts", "ts"])
    for content, sentence in (
        ([("a", "only")] * 40, 'has only the label "only"'),
        (rows(4)[2:], "too few to hold out"),
    ):
        with pytest.raises(UserError, match=sentence):
            write_own_entries(experiments, files(write_csv(tmp_path / "bad.csv", content)), None, SMALL)
        assert not list((experiments / "own").glob("bad.yaml"))
    with pytest.raises(UserError, match='there is no encoder "bert"'):
        write_own_entries(experiments, files(path), None, "bert")
    assert not list((experiments / "own").iterdir())


def test_the_figure_of_another_file_keeps_its_name(experiments: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "mine.csv", rows(60))
    write_own_entries(experiments, files(path), "other", SMALL)
    other = experiments / "own" / "other.yaml"
    other.write_text(other.read_text(encoding="utf-8").replace("other_more:", "mine_more:"), encoding="utf-8")
    with pytest.raises(UserError, match='There is a figure "mine_more" already; choose another name by --name'):
        write_own_entries(experiments, files(path), "mine", SMALL)
    assert not load_registry(experiments).left_out


def test_a_name_does_not_silently_come_to_stand_for_other_columns(experiments: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "utterance,intent,domain\n" + "".join(f"{text},{label},{label[0]}\n" for text, label in rows(60)), "utf-8"
    )
    write_own_entries(experiments, files(path), None, SMALL)
    written = (experiments / "own" / "mine.yaml").read_text(encoding="utf-8")
    with pytest.raises(
        UserError, match='"mine" stands for the same file with another --label-column already; choose another'
    ):
        write_own_entries(experiments, files(path, label="domain"), None, SMALL)
    assert (experiments / "own" / "mine.yaml").read_text(encoding="utf-8") == written
    test = tmp_path / "elsewhere" / "test.csv"  # the folder of both files is another one, the training file is not
    test.parent.mkdir()
    test.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UserError, match="stands for the same file with another --test-data already; choose another"):
        write_own_entries(experiments, replace(files(path), test=test), None, SMALL)
    fewer = write_own_entries(experiments, files(path), None, SMALL, ["bert", "ts"], [0])  # which is said
    assert fewer.no_more == ["vector", "beta", "isotonic", "histogram", "ls", "poscal", "avuc", "hs_rau"]
    other = write_own_entries(experiments, files(path), None, "multilingual_e5_small", ["bert", "ls"])
    assert other.no_more == ["ts", SMALL]
    assert write_own_entries(experiments, files(path), None, "multilingual_e5_small").no_more == []


# --- as a user calls it ----------------------------------------------------------------------------------------------


def call(tmp_path: Path, experiments: Path, cache: Path, *options: object) -> "CompletedProcess[str]":
    return run_module(
        "run",
        *options,
        "--experiments",
        experiments,
        "--results-dir",
        tmp_path / "results",
        "--tables-dir",
        tmp_path / "tables",
        env={"BENCHMARK_CACHE_DIR": str(cache)},
    )


def generated(n: int) -> list[tuple[str, str]]:
    """Rows of the words that a tiny built encoder knows."""
    words = pseudo_words(60)
    return [
        (f"{words[LABELS.index(label)]} {words[10 + index % 7]}", label) for index, (_, label) in enumerate(rows(n))
    ]


def test_own_data_are_a_profile_in_the_file_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("profiles: {mine: {description: Mine.}}", encoding="utf-8")
    (tmp_path / "small.yaml").write_text("tables: {extra: {number: '1'}}", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("profiles: {broken: ", encoding="utf-8")
    found = [name for name in ("mine", "small", "broken", "not_there") if declares_profile(tmp_path, name)]
    assert found == ["mine"]


def test_an_own_file_that_is_left_out_is_told_once(experiments: Path, tmp_path: Path, cache_dir: Path) -> None:
    (experiments / "own").mkdir()
    (experiments / "own" / "broken.yaml").write_text("tables:\n", encoding="utf-8")
    path = write_csv(tmp_path / "desk.csv", generated(60))
    columns = ("--text-column", "utterance", "--label-column", "intent", "--encoder", "tiny_base", "--dry-run")
    made = call(tmp_path, experiments, cache_dir, "--data", path, *columns)
    assert made.returncode == 0, made.stderr
    assert (made.stdout + made.stderr).count("broken.yaml:1: tables has nothing after it") == 1
    assert "  rows: 42 / 6 / 12 (training / validation / test), " in made.stdout
    assert "tiny_base has random weights" in made.stdout


def test_an_encoder_that_knows_generated_words_alone_is_refused_for_others(
    experiments: Path, tmp_path: Path, cache_dir: Path
) -> None:
    path = write_csv(tmp_path / "desk.csv", rows(60))
    columns = ("--text-column", "utterance", "--label-column", "intent", "--encoder", "tiny_base")
    made = call(tmp_path, experiments, cache_dir, "--data", path, *columns)
    assert made.returncode == 2
    assert re.search(
        r'^error: --encoder: "tiny_base" knows generated words alone, and 100% of .*desk\.csv', made.stderr
    )
    assert not (experiments / "own" / "desk.yaml").exists()


def test_a_file_becomes_tables_figures_a_page_and_a_recommendation(
    experiments: Path, tmp_path: Path, cache_dir: Path
) -> None:
    content = generated(120)
    path = write_csv(tmp_path / "desk.csv", content)
    columns = ("--text-column", "utterance", "--label-column", "intent")
    first = call(tmp_path, experiments, cache_dir, "--data", path, *columns, "--encoder", "tiny_base", "--seeds", "0-1")
    assert first.returncode == 0, first.stderr + first.stdout
    folder = tmp_path / "tables" / "desk"
    names = {file.name for file in folder.iterdir()}
    assert {"desk.md", "desk.tex", "tables.tex", "recommendation.md", "report.html", "figures"} <= names
    assert (folder / "figures" / "reliability_desk.png").is_file()
    assert len(list((tmp_path / "results" / "desk").glob("*.json"))) == 10
    advice = (folder / "recommendation.md").read_text(encoding="utf-8")
    assert "**desk.**" in advice
    assert "Found in the rows: " in advice
    assert "only 24 test rows: few differences between methods will rise above noise" in advice
    assert advice.strip() in first.stdout
    assert "| BERT " in first.stdout
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Do the paper" not in page
    second = call(tmp_path, experiments, cache_dir, "--profile", "desk", "--seeds", "0-1", "--dry-run")
    assert "0 trainings planned, 10 already done" in second.stdout
    (folder / "recommendation.md").unlink()
    third = call(tmp_path, experiments, cache_dir, "--profile", "desk", "--seeds", "0-1")
    assert "0 trained, 0 failed, 10 done before" in third.stdout
    assert advice.strip() in third.stdout
    assert (folder / "recommendation.md").read_text(encoding="utf-8") == advice
    table = (folder / "desk.md").read_text(encoding="utf-8")
    part = call(tmp_path, experiments, cache_dir, "--profile", "desk", "--methods", "bert", "ts", "--seeds", "0")
    assert "0 trained, 0 failed, 1 done before" in part.stdout
    assert (folder / "desk.md").read_text(encoding="utf-8") == table  # what is at hand, and not what was asked for now
    assert advice.strip() in part.stdout
    damaged = next((tmp_path / "results" / "desk").glob("*.json"))  # in a part that planning passes over
    text = damaged.read_text(encoding="utf-8")
    damaged.write_text(text.replace('"recall": [', '"recall": [null, ', 1), encoding="utf-8")
    fourth = call(tmp_path, experiments, cache_dir, "--profile", "desk", "--seeds", "0-1")
    assert f"{damaged}: not counted, because " in fourth.stdout
    reported = partial(
        run_module,
        *("report", "--profile", "desk", "--experiments", experiments, "--results-dir", tmp_path / "results"),
        *("--tables-dir", tmp_path / "tables"),
    )
    assert "has changed" not in reported().stderr
    by_ece = (folder / "recommendation.md").read_text(encoding="utf-8")
    by_nll = reported("--recommend", "--by", "nll").stdout
    assert by_nll.startswith("### Recommendation by NLL\n\n")
    assert "of the methods that lower NLL and do not lose F1" in by_nll
    assert (folder / "recommendation.by_nll.md").read_text(encoding="utf-8").strip() == by_nll.strip()
    assert (folder / "recommendation.md").read_text(encoding="utf-8") == by_ece
    whole = (folder / "desk.md").read_text(encoding="utf-8")
    assert "One seed (1)." in reported("--seeds", "1").stdout
    assert "One seed (1)." in (folder / "desk.seed1.md").read_text(encoding="utf-8")
    assert (folder / "desk.md").read_text(encoding="utf-8") == whole
    write_csv(path, content[1:])
    after = reported()
    assert "| BERT " in after.stdout
    note = 'Data set "desk" has changed since these results were made.'
    assert all(note in text for text in (after.stdout, reported("--recommend").stdout))
    assert 'data set "desk" has changed since these results were made; python -m benchmark.run --profile desk' in (
        after.stderr
    )
    write_csv(path, [content[0], (content[1][0], "")])
    unreadable = reported()
    assert f'data set "desk" cannot be read any more: {path}:' in unreadable.stderr
    note = 'Whether data set "desk" has changed since these results were made is not known: it cannot be read any more.'
    assert note in unreadable.stdout
    path.unlink()
    assert 'no file "desk.csv", which the entry of the data set names' in reported().stderr
    entries = experiments / "own" / "desk.yaml"
    text = entries.read_text(encoding="utf-8")
    entries.write_text(text.replace(f"folder: {tmp_path}", f"folder: {tmp_path / 'gone'}"), encoding="utf-8")
    assert 'data set "desk" is not here, so whether it has changed since is not known' in reported().stderr
    entries.write_text(text, encoding="utf-8")
    write_csv(path, content[1:])
    partly = call(tmp_path, experiments, cache_dir, "--profile", "desk", "--seeds", "1", "--methods", "bert")
    others = 'not shown: 9 results of data set "desk", made of other content of it, or of the encoder'
    assert others in partly.stdout
    assert others in reported().stderr
    assert f"benchmark.report --profile desk --experiments {experiments} --results-dir {tmp_path}" in partly.stdout


def test_results_of_other_data_do_not_empty_the_tables_that_were_made_of_them(
    registry: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of data that has been changed since: the tables written before stay, and it is said why."""
    folder = ResultFolder(tmp_path, "tiny")
    results = [made_result(registry, Subject("tnews", "base", method)) for method in ("bert", "ls")]
    for result in results:
        folder.save(result)
    table = tmp_path / "tables" / "tiny" / "main.md"
    table.parent.mkdir(parents=True)
    table.write_text("made before", encoding="utf-8")
    where, registry = places(None, None, tmp_path / "cache"), replace(registry, figures={})
    report_comparison(Console(soft_wrap=True), registry, "tiny", ["main"], folder, where, tmp_path / "tables")
    assert "the results at hand are of other data, or another encoder, than is here" in capsys.readouterr().out
    assert [file.name for file in table.parent.iterdir()] == ["main.md"]
    assert table.read_text(encoding="utf-8") == "made before"
    monkeypatch.setattr("benchmark.own_report.find_table_inputs", lambda *_: FoundInputs(Inputs()))
    report_comparison(Console(soft_wrap=True), registry, "tiny", ["main"], folder, where, tmp_path / "tables")
    assert "| BERT " in table.read_text(encoding="utf-8")  # what is not here contradicts nothing


def test_options_that_do_not_go_together_are_one_sentence(experiments: Path, tmp_path: Path, cache_dir: Path) -> None:
    path = write_csv(tmp_path / "desk.csv", rows(60))
    for options, sentence in (
        (("--data", path, "--delimiter", ";;"), "--delimiter is one character"),
        (("--data", path, "--delimiter", ""), "--delimiter is one character"),
        (("--data", path, "--delimiter", '"'), "--delimiter is one character"),
        (("--data", ""), "--data: nothing was given"),
        (("--data", "owner/name", "--test-data", ""), "--test-data: nothing was given"),
        (("--data", path, "--text-column", "intent", "--label-column", "intent"), "cannot both be the column"),
        (("--data", path, "--text-column", "utterance", "--label-column", "intent", "--methods", ","), "at least one"),
        (("--text-column", "utterance"), "--text-column goes with --data"),
        (("--data", path, "--profile", "tiny"), "leave out --profile"),
        (
            ("--data", path, "--table", "main"),
            "--data makes a table of its own, of this data alone: leave out --table.",
        ),
        (("--data", path, "--datasets", "desk"), "of this data alone: leave out --datasets."),
        (("--data", path, "--search", "mine"), "make it first, then --search by its --profile."),
        (("--test-data", path), "--test-data goes with --data"),
        (("--data", path), 'there is no column "text"'),
    ):
        found = call(tmp_path, experiments, cache_dir, *options)
        assert found.returncode == 2
        assert sentence in found.stderr
        assert "Traceback" not in found.stderr

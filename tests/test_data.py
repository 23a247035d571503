"""Reading, splitting, corrupting and checking data; texts stay what they are in the file, to the byte."""

import datetime
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmark.data import check_corpus, corrupt_labels, load_corpus, original_labels
from benchmark.data.generated import generate
from benchmark.data.readers import read_rows
from benchmark.declarations import Dataset, GeneratedSource
from benchmark.errors import UserError
from benchmark.registry import load_registry
from tests.conftest import EXPERIMENTS, PROJECT


def dataset(**changes: object) -> Dataset:
    source = {
        "kind": "files",
        "folder": "mine",
        "format": "csv",
        "train": ["train.csv"],
        "test": ["test.csv"],
        "text": "text",
        "intent": ["intent"],
    }
    other = {key: changes.pop(key) for key in ("labels", "train_rows", "validation", "expected") if key in changes}
    if "train_rows" in other:
        other["train"] = other.pop("train_rows")  # "train" is the source's files here
    rest = {"label": "mine", "source": source | changes, "tokens_per_text": 8.0, "validation": {"rows": 1, "seed": 0}}
    return Dataset.model_validate(rest | other)


def write(folder: Path, name: str, content: str | bytes) -> None:
    path = folder / "mine" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


CSV = "text,intent\none,a\ntwo,b\nthree,a\nfour,b\n"


def test_four_awkward_rows_of_csv_stay_four_texts(tmp_path: Path) -> None:
    write(tmp_path, "train.csv", '\ufefftext,intent\n"a line\nbreak",a\nnull,b\nNA,a\n007,b\n')
    write(tmp_path, "test.csv", CSV)
    corpus = load_corpus("mine", dataset(), [tmp_path])
    assert sorted((*corpus.train.texts, *corpus.validation.texts)) == sorted(["a line\nbreak", "null", "NA", "007"])
    assert corpus.label_names == ("a", "b")


def test_line_separators_do_not_split_json_lines(tmp_path: Path) -> None:
    rows = ["one\u2028line", "carriage\rreturn", "next\x85line", "plain", "two"]
    labelled = zip(rows, "abaab", strict=True)
    lines = "\n".join(json.dumps({"text": row, "intent": label}, ensure_ascii=False) for row, label in labelled)
    write(tmp_path, "train.json", lines + "\n\n")
    write(tmp_path, "test.json", '{"text": "x", "intent": "a"}\n' * 2)
    corpus = load_corpus("mine", dataset(format="json_lines", train=["train.json"], test=["test.json"]), [tmp_path])
    assert sorted((*corpus.train.texts, *corpus.validation.texts)) == sorted(rows)


def test_several_label_columns_and_another_delimiter(tmp_path: Path) -> None:
    header = "id;scenario;intent;text\n"
    write(tmp_path, "train/b.csv", header + '1;alarm;set;"wake; <me> up"\n2;alarm;query;when\n')
    write(tmp_path, "train/a.csv", header + "3;music;play;song\n")
    write(tmp_path, "test.csv", header + "4;music;play;tune\n5;music;play;air\n")
    corpus = load_corpus(
        "mine", dataset(delimiter=";", train=["train/*.csv"], intent=["scenario", "intent"]), [tmp_path]
    )
    assert corpus.label_names == ("alarm_query", "alarm_set", "music_play")
    assert "wake; <me> up" in (*corpus.train.texts, *corpus.validation.texts)


def test_two_pairs_of_labels_that_are_joined_alike_are_told_apart(tmp_path: Path) -> None:
    header = "scenario,intent,text\n"
    write(tmp_path, "train.csv", header + "play_music,likeness,one\nplay,song,two\nplay,song,three\n")
    write(tmp_path, "test.csv", header + "play,music_likeness,four\n")
    sentence = (
        r"test\.csv:2: the labels play \+ music_likeness and play_music \+ likeness \(.*train\.csv:2\) are both "
        r'"play_music_likeness" where they are joined; rename one\.'
    )
    with pytest.raises(UserError, match=sentence):
        load_corpus("mine", dataset(train=["train.csv"], intent=["scenario", "intent"]), [tmp_path])


@pytest.mark.parametrize("swallowed", [1, 5])
def test_a_quote_that_takes_in_other_rows_is_told_where_tabs_separate(tmp_path: Path, swallowed: int) -> None:
    lines = [f"text {row}\tlabel" for row in range(12)]
    lines[3] = '"' + lines[3]
    lines[3 + swallowed] = 'text "\tlabel'
    write(tmp_path, "a.tsv", "text\tintent\n" + "\n".join(lines) + "\n")
    sentence = rf"a\.tsv:5: the quote that a value begins with here is closed {swallowed} lines further down"
    with pytest.raises(UserError, match=sentence):
        list(read_rows(tmp_path / "mine" / "a.tsv", "csv", "text", ("intent",), "\t"))
    write(tmp_path, "b.tsv", 'text\tintent\n"two\nlines, a ""quote""\nand\ta tab"\tlabel\n')
    (row,) = read_rows(tmp_path / "mine" / "b.tsv", "csv", "text", ("intent",), "\t")
    assert row.text == 'two\nlines, a "quote"\nand\ta tab'


def test_a_quote_that_nothing_closes_is_told_where_it_begins(tmp_path: Path) -> None:
    lines = [f"text {row},label" for row in range(50)]
    lines[20] = '"' + lines[20]
    write(tmp_path, "a.csv", "text,intent\n\n" + "\n".join(lines) + "\n")
    with pytest.raises(UserError, match=r"a\.csv:23: a quote that a value begins with here is never closed; write"):
        list(read_rows(tmp_path / "mine" / "a.csv", "csv", "text", ("intent",), ","))
    write(tmp_path, "b.csv", 'text,"intent\na,b\n')
    with pytest.raises(UserError, match=r"b\.csv:1: a quote that a value begins with here is never closed"):
        list(read_rows(tmp_path / "mine" / "b.csv", "csv", "text", ("intent",), ","))


@pytest.mark.parametrize("swallowed", [1, 5])
@pytest.mark.parametrize("label_first", [False, True])
def test_a_quote_that_takes_in_other_rows_is_told_by_their_labels(
    tmp_path: Path, swallowed: int, label_first: bool
) -> None:
    cells = [[f"text {row}", f"label {row % 2}"] for row in range(12)]
    cells[3][0] = '"' + cells[3][0]
    cells[3 + swallowed][0] += ' of 32"'
    rows = [",".join(reversed(row) if label_first else row) for row in cells]
    write(tmp_path, "a.csv", ("intent,text\n" if label_first else "text,intent\n") + "\n".join(rows) + "\n")
    sentence = rf"a\.csv:5: the quote that a value begins with here is closed {swallowed} lines further down"
    with pytest.raises(UserError, match=sentence):
        list(read_rows(tmp_path / "mine" / "a.csv", "csv", "text", ("intent",), ","))


@pytest.mark.parametrize(
    ("header", "delimiter", "rows", "text"),
    [
        ("text;intent", ";", '"one; two\nthree; four\nfive";label', "one; two\nthree; four\nfive"),
        ("text,intent", ",", '"Are you coming?\nyes,no\nbye",yes\nx,no', "Are you coming?\nyes,no\nbye"),
        ("text,intent", ",", '"Preis: 4,5\nGut",4\nschlecht,4\nsehr gut,5', "Preis: 4,5\nGut"),
        ("intent,text", ",", '4,"Zutaten:\n1,5 l Wasser\nSalz"\n1,x\n4,y', "Zutaten:\n1,5 l Wasser\nSalz"),
        ("text,intent", ",", '"a,b\nc",b', "a,b\nc"),
        ("intent\ttext", "\t", 'a\t"one\ntwo\tthree"\na\tb', "one\ntwo\tthree"),
    ],
)
def test_lines_of_a_text_with_the_delimiter_in_them_are_no_rows(
    tmp_path: Path, header: str, delimiter: str, rows: str, text: str
) -> None:
    write(tmp_path, "c.csv", f"{header}\n{rows}\n")
    first, *_ = list(read_rows(tmp_path / "mine" / "c.csv", "csv", "text", ("intent",), delimiter))
    assert first.text == text


def test_parquet_files_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    declared = dataset(format="parquet", train=["train.parquet"], test=["train.parquet"])
    path = tmp_path / "mine" / "train.parquet"
    path.parent.mkdir()
    pd.DataFrame({"text": ["NA", "007", "x"], "intent": ["a", "b", "a"]}).to_parquet(path)
    corpus = load_corpus("mine", declared, [tmp_path])
    assert corpus.test.texts == ("NA", "007", "x")
    pd.DataFrame({"text": ["x", None], "intent": ["a", "b"]}).to_parquet(path)
    with pytest.raises(UserError, match=r'train\.parquet:2: "text" must be text, not'):
        load_corpus("mine", declared, [tmp_path])
    pd.DataFrame({"txt": ["x"], "intent": ["a"]}).to_parquet(path)
    with pytest.raises(UserError, match=r'no column "text"; did you mean "txt"'):
        load_corpus("mine", declared, [tmp_path])
    path.write_text("text,intent")
    with pytest.raises(UserError, match="this is not Parquet"):
        load_corpus("mine", declared, [tmp_path])
    pd.DataFrame({"text": ["x"], "intent": [datetime.date(2020, 1, 1)]}).to_parquet(path)
    with pytest.raises(UserError, match=r'train\.parquet:1: "intent" must be text, not 2020-01-01 \(date\)\.'):
        load_corpus("mine", declared, [tmp_path])
    days = pa.table({"text": ["x"], "intent": pa.array([2**62], pa.duration("s"))})
    pq.write_table(days, path)
    with pytest.raises(UserError, match=r"train\.parquet: a value is none that Python can have \("):
        load_corpus("mine", declared, [tmp_path])
    whole = pd.DataFrame({"text": ["x"] * 9, "intent": ["a"] * 9})
    whole.to_parquet(path)
    path.write_bytes(path.read_bytes()[:40] + bytes(20) + path.read_bytes()[60:])
    with pytest.raises(UserError, match=r"train\.parquet"):
        load_corpus("mine", declared, [tmp_path])


def test_parquet_values_are_those_of_the_file_and_not_of_a_data_frame(tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    read = partial(read_rows, path, "parquet", delimiter=",")
    pd.DataFrame({"text": ["x", "y", "z"], "intent": pd.array([7, None, 8], dtype="Int64")}).to_parquet(path)
    rows = read(text="text", intent=("intent",))
    assert next(rows).label == "7"  # and not 7.0, for the sake of the label that is missing
    with pytest.raises(UserError, match=r'a\.parquet:2: "intent" must be text, not null'):
        next(rows)
    pd.DataFrame({0: ["x"], 1: pd.Categorical(["a"])}).to_parquet(path)
    assert [row[:2] for row in read(text="0", intent=("1",))] == [("x", "a")]
    pd.DataFrame({"text": ["x"], "intent": ["a"]}).set_index("text").to_parquet(path)
    assert [row[:2] for row in read(text="text", intent=("intent",))] == [("x", "a")]
    twice = pa.table([pa.array(["x"]), pa.array(["y"]), pa.array(["a"])], names=["text", "text", "intent"])
    pq.write_table(twice, path)
    with pytest.raises(UserError, match=r'a\.parquet: 2 columns are called "text"; rename one'):
        list(read(text="text", intent=("intent",)))


TNEWS_ROWS = [("106", "house"), ("116", "game"), ("100", "story")]


def tnews(folder: Path, rows: list[dict]) -> None:
    for name in ("train.json", "dev.json"):
        path = folder / "tnews" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def load_tnews(folder: Path) -> object:
    declared = load_registry(EXPERIMENTS).datasets["tnews"]
    small = declared.model_copy(
        update={"expected": None, "validation": declared.validation.model_copy(update={"rows": 1})}
    )
    return load_corpus("tnews", small, [folder])


def test_label_ids_with_gaps_have_their_positions(tmp_path: Path) -> None:
    tnews(tmp_path, [{"label": label, "label_desc": text, "sentence": text} for label, text in TNEWS_ROWS])
    corpus = load_tnews(tmp_path)
    assert dict(zip(corpus.test.texts, corpus.test.labels.tolist(), strict=True)) == {
        "house": 5,
        "game": 14,
        "story": 0,
    }
    assert len(corpus.label_names) == 15


def test_labels_written_as_numbers_are_their_digits(tmp_path: Path) -> None:
    tnews(tmp_path, [{"label": int(label), "sentence": text} for label, text in TNEWS_ROWS])
    assert load_tnews(tmp_path).test.labels.tolist() == [5, 14, 0]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"label": "105", "sentence": "x"}, r'train\.json:4: the label "105" is not one of the 15 labels'),
        ({"sentence": "x"}, r'train\.json:4: there is no key "label"'),
        ({"label": "", "sentence": "x"}, r"train\.json:4: this row has no label"),
        ({"label": None, "sentence": "x"}, r'train\.json:4: "label" must be text, not null'),
        ({"label": "100", "sentence": 1.5}, r'train\.json:4: "sentence" must be text, not 1\.5'),
        ({"label": "100", "sentense": "x"}, r'train\.json:4: there is no key "sentence"; did you mean "sentense"\?'),
    ],
)
def test_a_wrong_row_stops_with_file_and_line(tmp_path: Path, row: dict, sentence: str) -> None:
    tnews(tmp_path, [{"label": label, "sentence": text} for label, text in TNEWS_ROWS] + [row])
    with pytest.raises(UserError, match=sentence):
        load_tnews(tmp_path)


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        (b"", r"train\.csv is empty"),
        (b"text,intent\n", r"no row in these files"),
        ("text,intent\na,b\n".encode("utf-16-le"), r"train\.csv:1: this line has zero bytes, as UTF-16 does; save the"),
        (b"txt,intent\na,b\n", r'train\.csv:1: there is no column "text"; did you mean "txt"\?'),
        (b"text;intent\na;b\n", r'separated by ","; name ";" as the delimiter'),
        (b"utterance,intent\na,b\n", r'there is no column "text"; known: intent, utterance\. Values'),
        (b"\n\ntxt,intent\na,b\n", r'train\.csv:3: there is no column "text"; did you mean "txt"\?'),
        (b"\ntext,intent\na,b\nc\n", r"train\.csv:4: 1 values where the header names 2 columns"),
        (b"sep=;\ntext;intent\na;b\n", r"train\.csv:1: this line is a spreadsheet's note of its delimiter"),
        (b"text,intent\na,b\nc\n", r"train\.csv:3: 1 values where the header names 2 columns"),
        (b"text,intent\na,b\n\"c\nd\",b,e\n", r"train\.csv:3: 3 values where"),
        (b"text,intent\na,b\nc,\n", r"train\.csv:3: this row has no label"),
        (b"text,intent\na,b\n\"open,b\n", r"train\.csv:3: a quote that a value begins with here is never closed"),
        (b"text,intent\na,b\n\"c\"d,b\n", r"train\.csv:3: this is not CSV: ',' expected after"),
        (b"text,intent\n\xe4\xf6,b\n", r"train\.csv:2: this is not UTF-8; save"),
    ],
)  # fmt: skip
def test_a_wrong_csv_stops_with_file_and_line(tmp_path: Path, train: bytes, sentence: str) -> None:
    write(tmp_path, "train.csv", train)
    write(tmp_path, "test.csv", CSV)
    with pytest.raises(UserError, match=sentence):
        load_corpus("mine", dataset(), [tmp_path])


@pytest.mark.parametrize("pattern", ["**x", "."])
def test_what_is_no_pattern_of_files_is_one_sentence(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, "train.csv", CSV)
    with pytest.raises(UserError, match=r"is no name or pattern of files|no file"):
        load_corpus("mine", dataset(train=[pattern], test=["train.csv"]), [tmp_path])


def test_a_json_line_that_is_none(tmp_path: Path) -> None:
    declared = dataset(format="json_lines", train=["train.json"], test=["train.json"])
    for content, sentence in (
        ('{"text": "a"', "train.json:1: this line is not JSON"),
        ('{"text": "a", "intent": "b"}\n[1]', "train.json:2: each line must be a JSON object"),
        ('[{"text": "a", "intent": "b"}]', "train.json: this is a JSON array; write one object a line"),
    ):
        write(tmp_path, "train.json", content)
        with pytest.raises(UserError, match=sentence):
            load_corpus("mine", declared, [tmp_path])


def test_a_test_label_that_training_lacks_is_named(tmp_path: Path) -> None:
    write(tmp_path, "train.csv", CSV)
    write(tmp_path, "test.csv", "text,intent\nfive,c\n")
    with pytest.raises(UserError, match=r'test\.csv:2: the label "c" is not one of the 2 labels'):
        load_corpus("mine", dataset(), [tmp_path])


def test_missing_files_and_wrong_sizes_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r'data set "mine" is not on this machine.*"mine/" by --data-dir'):
        load_corpus("mine", dataset(), [tmp_path])
    write(tmp_path, "train.csv", CSV)
    with pytest.raises(UserError, match=r'no file "test\.csv"'):
        load_corpus("mine", dataset(), [tmp_path])
    write(tmp_path, "test.csv", CSV)
    expected = {"train": 9, "validation": 1, "test": 4, "labels": 2}
    with pytest.raises(UserError, match=r"not the one declared: 3 train \(expected 9\)"):
        load_corpus("mine", dataset(expected=expected), [tmp_path])
    with pytest.raises(UserError, match="cannot be held out of 4 training rows"):
        load_corpus("mine", dataset(validation={"rows": 4, "seed": 0}), [tmp_path])


def test_fewer_training_rows_leave_the_other_rows_as_they_are(tmp_path: Path) -> None:
    lines = [f"text {row},{'ab'[row % 2]}" for row in range(40)]
    write(tmp_path, "train.csv", "text,intent\n" + "\n".join(lines) + "\n")
    write(tmp_path, "test.csv", CSV)
    held_out = {"rows": 5, "seed": 0}
    whole = load_corpus("mine", dataset(validation=held_out), [tmp_path])
    few, more, other = (
        load_corpus("mine", dataset(validation=held_out, train_rows={"rows": rows, "seed": seed}), [tmp_path])
        for rows, seed in ((10, 3), (20, 3), (10, 4))
    )
    assert (len(whole.train), len(few.train), len(more.train)) == (35, 10, 20)
    assert few.validation.texts == whole.validation.texts
    assert few.test.texts == whole.test.texts
    assert set(few.train.texts) < set(more.train.texts) < set(whole.train.texts)
    assert set(other.train.texts) != set(few.train.texts)
    of_the_file = [text for text in whole.train.texts if text in set(few.train.texts)]
    assert list(few.train.texts) == of_the_file  # in the order of the file, each with its own label
    assert [int(text.split()[1]) % 2 for text in few.train.texts] == few.train.labels.tolist()
    assert few.fingerprint != whole.fingerprint
    every = load_corpus("mine", dataset(validation=held_out, train_rows={"rows": 35, "seed": 3}), [tmp_path])
    assert every.fingerprint == whole.fingerprint


def test_rows_drawn_by_label_hold_repeated_texts_as_the_whole_does(tmp_path: Path) -> None:
    """A fifth of the texts stands twice or more."""
    lines = [
        f"{'twice' if row % 5 == 0 else 'once'} {row % 50 if row % 5 == 0 else row},{'ab'[row % 2]}"
        for row in range(600)
    ]
    write(tmp_path, "train.csv", "text,intent\n" + "\n".join(lines) + "\n")
    write(tmp_path, "test.csv", CSV)
    shares = []
    for seed in range(10):
        drawn = dataset(train_rows={"rows": 100, "seed": seed, "stratified": True})
        texts = load_corpus("mine", drawn, [tmp_path]).train.texts
        shares.append(sum(text.startswith("twice") for text in texts) / len(texts))
    assert 0.15 < sum(shares) / len(shares) < 0.25


def test_texts_that_stand_once_are_held_out_while_their_label_has_any(tmp_path: Path) -> None:
    """Each label has three texts that stand once, as many as are held out of it, and one that stands seven times."""
    lines = [f"{label} {number if number < 3 else 'again'},{label}" for label in "abcdef" for number in range(10)]
    write(tmp_path, "train.csv", "text,intent\n" + "\n".join(lines) + "\n")
    write(tmp_path, "test.csv", CSV)
    for seed in range(10):
        held_out = dataset(validation={"rows": 18, "seed": seed, "stratified": True})
        corpus = load_corpus("mine", held_out, [tmp_path])
        assert not [text for text in corpus.validation.texts if text.endswith("again")]


def test_training_rows_that_are_not_there_and_labels_that_would_be_lost(tmp_path: Path) -> None:
    write(tmp_path, "train.csv", CSV)
    write(tmp_path, "test.csv", CSV)
    with pytest.raises(UserError, match='"mine": train: there are not 4 training rows, but 3'):
        load_corpus("mine", dataset(train_rows={"rows": 4, "seed": 0}), [tmp_path])
    with pytest.raises(UserError, match=r'"mine": train\.rows: 1 is too few for its 2 labels'):
        load_corpus("mine", dataset(train_rows={"rows": 1, "seed": 0}), [tmp_path])
    rare = "text,intent\n" + "".join(f"text {row},{'b' if row % 20 == 7 else 'a'}\n" for row in range(40))
    write(tmp_path, "train.csv", rare)
    drawn = {"rows": 4, "seed": 0}
    with pytest.raises(
        UserError, match=r'label "b" has no row among the 4 drawn; take more rows, or draw them by label'
    ):
        load_corpus("mine", dataset(train_rows=drawn), [tmp_path])
    for seed in range(20):  # drawn by label each has a row
        by_label = dataset(train_rows={"rows": 4, "seed": seed, "stratified": True})
        counts = np.bincount(load_corpus("mine", by_label, [tmp_path]).train.labels)
        assert (counts.sum(), counts.min() >= 1) == (4, True)
    sizes = {"train": 3, "validation": 1, "test": 4, "labels": 2}
    with pytest.raises(ValidationError, match=r"expected\.train: it is the number of rows that train draws"):
        dataset(train_rows={"rows": 2, "seed": 0}, expected=sizes)
    drawn = dataset(train_rows={"rows": 2, "seed": 0}).model_dump()
    with pytest.raises(ValidationError, match="training_rows: train says already how many"):
        Dataset.model_validate(drawn | {"training_rows": 3})
    made = drawn | {"source": generated().model_dump(), "validation": None}
    with pytest.raises(ValidationError, match="train: a generated source makes it itself"):
        Dataset.model_validate(made)


def test_reading_does_not_depend_on_the_locale(tmp_path: Path) -> None:
    write(tmp_path, "train.csv", "text,intent\n怎么办,a\nfür,b\nx,a\n")
    write(tmp_path, "test.csv", CSV)
    script = (
        "from pathlib import Path; from tests.test_data import dataset; from benchmark.data import load_corpus;"
        f"print(load_corpus('mine', dataset(), [Path({str(tmp_path)!r})]).fingerprint)"
    )
    prints = set()
    for locale in ("C", "C.UTF-8", "POSIX"):
        environment = os.environ | {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        call = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=PROJECT, check=True
        )
        prints.add(call.stdout)
    assert len(prints) == 1


def test_one_byte_is_another_fingerprint(tmp_path: Path) -> None:
    write(tmp_path, "test.csv", CSV)
    fingerprints = []
    for train in (CSV, CSV.replace("three", "thref"), CSV.replace("four,b", "four,a"), CSV):
        write(tmp_path, "train.csv", train)
        fingerprints.append(load_corpus("mine", dataset(), [tmp_path]).fingerprint)
    assert fingerprints[0] == fingerprints[3]
    assert len(set(fingerprints)) == 3


def test_the_split_is_drawn_once_and_loses_no_row(tmp_path: Path) -> None:
    rows = "".join(f"text {number},{'ab'[number % 2]}\n" for number in range(50))
    write(tmp_path, "train.csv", "text,intent\n" + rows)
    write(tmp_path, "test.csv", CSV)
    declared = dataset(validation={"rows": 20, "seed": 3})
    first, second = (load_corpus("mine", declared, [tmp_path]) for _ in range(2))
    other = load_corpus("mine", dataset(validation={"rows": 20, "seed": 4}), [tmp_path])
    assert first.validation.texts == second.validation.texts != other.validation.texts
    assert len(first.validation) == 20
    assert sorted((*first.train.texts, *first.validation.texts)) == sorted(f"text {number}" for number in range(50))
    for text, label in zip(first.train.texts, first.train.labels.tolist(), strict=True):
        assert int(text.split()[1]) % 2 == label


# --- corruption -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(2, 80), st.floats(0, 1), st.integers(0, 1000))
@settings(max_examples=80, deadline=None)
def test_exactly_the_asked_share_changes_and_none_to_itself(n: int, k: int, rate: float, seed: int) -> None:
    labels = np.random.default_rng(seed + 1).integers(0, k, size=n)
    before = labels.copy()
    changed = corrupt_labels(labels, rate, k, seed)
    assert (changed != labels).sum() == round(rate * n)
    assert changed.min() >= 0
    assert changed.max() < k
    np.testing.assert_array_equal(labels, before)
    np.testing.assert_array_equal(original_labels(changed, rate, k, seed), labels)


def test_levels_nest_and_other_seeds_change_other_rows() -> None:
    labels = np.random.default_rng(0).integers(0, 15, size=1000)
    levels = {rate: corrupt_labels(labels, rate, 15, 7) for rate in (0.05, 0.1, 0.3, 0.5)}
    for low, high in ((0.05, 0.1), (0.1, 0.3), (0.3, 0.5)):
        rows = levels[low] != labels
        np.testing.assert_array_equal(levels[high][rows], levels[low][rows])
    assert (corrupt_labels(labels, 0.3, 15, 8) != levels[0.3]).any()


def test_new_labels_are_spread_over_all_others() -> None:
    labels = np.zeros(14_000, dtype=np.int64)
    counts = np.bincount(corrupt_labels(labels, 1.0, 15, 0), minlength=15)
    assert counts[0] == 0
    assert counts[1:].min() > 850


def test_which_labels_change_to_what_stays_as_it_is() -> None:
    """Results of noisy runs are of these very rows."""
    changed = [3, 1, 2, 3, 0, 1, 2, 0, 2, 1]
    assert corrupt_labels(np.arange(10) % 4, 0.3, 4, seed=7).tolist() == changed
    assert original_labels(changed, 0.3, 4, seed=7).tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize(("rate", "k"), [(-0.1, 3), (1.1, 3), (0.5, 1)])
def test_impossible_corruption_is_refused(rate: float, k: int) -> None:
    with pytest.raises(ValueError, match=r"rate|labels"):
        corrupt_labels(np.zeros(10, dtype=np.int64), rate, k, 0)
    with pytest.raises(ValueError, match=r"rate|labels"):
        original_labels(np.zeros(10, dtype=np.int64), rate, k, 0)


# --- generated corpora and checks -----------------------------------------------------------------------------------


def generated(**changes: object) -> GeneratedSource:
    source = {
        "kind": "generated",
        "labels": 5,
        "rows": {"train": 200, "validation": 50, "test": 100},
        "words_per_text": [3, 6],
        "vocabulary": 100,
        "keywords_per_label": 8,
        "keyword_share": 0.6,
        "neighbour_share": 0.1,
        "confusion": 0.0,
        "seed": 0,
    }
    return GeneratedSource.model_validate(source | changes)


def test_generated_corpora_are_the_same_for_the_same_settings() -> None:
    assert generate("x", generated()).fingerprint == generate("x", generated()).fingerprint
    assert generate("x", generated()).fingerprint != generate("x", generated(seed=1)).fingerprint


def test_generated_labels_have_their_shares_and_texts_their_lengths() -> None:
    corpus = generate("x", generated(label_shares=[1.0, 2.0, 3.0, 4.0, 0.001]))
    counts = np.bincount(corpus.train.labels, minlength=5)
    assert counts.sum() == 200
    assert counts[4] == 1  # at least one row a label
    np.testing.assert_allclose(counts[:4] / 200, np.array([1, 2, 3, 4]) / 10, atol=0.01)
    lengths = {len(text.split()) for text in corpus.train.texts}
    assert lengths == {3, 4, 5, 6}


def test_each_label_has_a_row_however_small_its_share() -> None:
    corpus = generate(
        "x", generated(label_shares=[991.0, 1.0, 1.0, 1.0, 1.0], rows={"train": 20, "validation": 5, "test": 5})
    )
    assert np.bincount(corpus.train.labels, minlength=5).tolist() == [16, 1, 1, 1, 1]


@pytest.mark.parametrize("rows", [{"train": 30, "test": 9}, {"train": 4, "validation": 9, "test": 9}])
def test_generated_rows_of_every_split_are_asked_for(rows: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="train, validation and test need at least one row a label each"):
        generated(rows=rows)


def test_confusion_bounds_what_can_be_learnt() -> None:
    """Texts of confused rows come from another label's words: a nearest-keyword reader sees it."""
    from collections import Counter, defaultdict

    def readable(confusion: float) -> float:
        corpus = generate(
            "x", generated(confusion=confusion, keyword_share=0.8, rows={"train": 2000, "validation": 5, "test": 1000})
        )
        words: dict[int, Counter] = defaultdict(Counter)
        for text, label in zip(corpus.train.texts, corpus.train.labels.tolist(), strict=True):
            words[label].update(text.split())
        hits = [
            max(words, key=lambda k: sum(words[k][word] for word in text.split())) == label
            for text, label in zip(corpus.test.texts, corpus.test.labels.tolist(), strict=True)
        ]
        return float(np.mean(hits))

    assert readable(0.0) > 0.9
    assert 0.55 < readable(0.3) < 0.72


def test_checks_count_what_they_say(tmp_path: Path) -> None:
    write(tmp_path, "train.csv", "text,intent\none,a\none,a\ntwo,a\ntwo,b\n ,b\nthree,b\n")
    write(tmp_path, "validation.csv", "text,intent\nfour,a\none,a\n")
    write(tmp_path, "test.csv", "text,intent\none,a\nfour,a\nnine,a\n")
    source = dataset().source.model_copy(update={"validation": ("validation.csv",)})
    declared = dataset().model_copy(update={"source": source, "validation": None})
    corpus = load_corpus("mine", declared, [tmp_path])
    report = check_corpus(corpus)
    assert report.rows == {"train": 6, "validation": 2, "test": 3}
    assert report.repeated_in_split == {"train": 2, "validation": 0, "test": 0}
    assert report.validation_texts_in_training == 1
    assert report.test_texts_seen_before == 2
    assert report.conflicting_texts == ("two",)
    assert report.empty_texts == 1
    assert report.labels_without_test_rows == ("b",)
    assert report.labels_without_training_rows == ()
    assert 'texts with more than one label: 1 ("two")' in report.remarks()
    too_sure = "validation texts that are training texts, too (calibrators fitted on them will be too sure): 1"
    assert too_sure in report.remarks()
    assert 'labels without a test row (they score 0 in every macro average): 1 ("b")' in report.remarks()
    assert (report.rarest_label_rows, report.commonest_label_rows) == (3, 3)


def test_labels_that_look_the_same_are_remarked_on(tmp_path: Path) -> None:
    labels = ["caf\u00e9", "cafe\u0301", "a b", "a\u200bb", "other"]
    write(tmp_path, "train.csv", "text,intent\n" + "".join(f"text {n},{label}\n" for n, label in enumerate(labels * 3)))
    write(tmp_path, "test.csv", "text,intent\nnew,other\nnewer,other\n")
    report = check_corpus(load_corpus("mine", dataset(), [tmp_path]))
    assert sorted(report.labels_nearly_alike) == sorted(labels[:4])
    assert report.sizes() == "rows: 14 / 1 / 2 (training / validation / test), 5 labels"


def test_remarks_name_the_first_of_what_they_count(tmp_path: Path) -> None:
    labels = ["Card", "card", "c ard", "CARD", "other"]
    write(tmp_path, "train.csv", "text,intent\n" + "".join(f"text {n},{label}\n" for n, label in enumerate(labels * 3)))
    write(tmp_path, "test.csv", "text,intent\nnew,card\nnewer,card\n")
    report = check_corpus(load_corpus("mine", dataset(), [tmp_path]))
    alike = "labels that differ from another only by blanks, capitals or how letters are encoded: 4"
    assert any(remark.startswith(f'{alike} ("CARD", "Card", "c ard", ...)') for remark in report.remarks())


def test_remarks_show_long_labels_whole_and_mark_what_they_cut(tmp_path: Path) -> None:
    """Labels that differ in a capital at their end were shown as the same 40 letters."""
    labels = [f"a request to change the address of an account ({kind})" for kind in ("Private", "private")]
    text = "a text that is too long to be shown " * 3
    rows = [*(f"text {n},{label}" for n, label in enumerate(labels * 6)), *(f"{text},{label}" for label in labels)]
    write(tmp_path, "train.csv", "text,intent\n" + "\n".join(rows) + "\n")
    write(tmp_path, "test.csv", f"text,intent\nnew,{labels[0]}\nnewer,{labels[1]}\n")
    remarks = check_corpus(load_corpus("mine", dataset(), [tmp_path])).remarks()
    assert any(remark.endswith(f'encoded: 2 ("{labels[0]}", "{labels[1]}")') for remark in remarks)
    assert f'texts with more than one label: 1 ("{text[:39]}…")' in remarks

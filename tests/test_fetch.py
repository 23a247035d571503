"""Fetching from publishers and the hub, against servers on this machine."""

import hashlib
import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmark.data import fetch_dataset, fetch_hub_splits, load_corpus
from benchmark.declarations import Dataset
from benchmark.errors import UserError
from tests.conftest import EXPERIMENTS

CSV = b"text,intent\none,a\ntwo,b\nthree,a\nfour,b\n"


class Publisher(ThreadingHTTPServer):
    """Serves bytes by path and remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler))
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Publisher = self.server
        server.asked.append(self.path)
        content = server.files.get(self.path)
        self.send_response(200 if content is not None else 404)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    server = Publisher()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def declared(*downloads: dict) -> Dataset:
    return Dataset.model_validate(
        {
            "label": "mine",
            "source": {
                "kind": "files",
                "folder": "mine",
                "format": "csv",
                "train": ["train/*.csv"],
                "test": ["test.csv"],
                "text": "text",
                "intent": ["intent"],
            },
            "validation": {"rows": 1, "seed": 0},
            "tokens_per_text": 4.0,
            "publisher": {"name": "P", "homepage": "-", "licence": "-", "downloads": list(downloads)},
        }
    )


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return buffer.getvalue()


def test_plain_files_and_archives_come_into_their_layout(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files = {
        "/a.zip": archive({"repo-1/x/train/a.csv": CSV, "repo-1/x/train/b.csv": CSV, "repo-1/other.txt": b"?"}),
        "/t.csv": CSV,
    }
    dataset = declared(
        {"url": f"{publisher.url}/a.zip", "members": {"*/x/train/*.csv": "train/"}},
        {"url": f"{publisher.url}/t.csv", "save_as": "test.csv", "sha256": hashlib.sha256(CSV).hexdigest()},
    )
    folder = fetch_dataset("mine", dataset, tmp_path)
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.csv")) == [
        "test.csv",
        "train/a.csv",
        "train/b.csv",
    ]
    assert len(load_corpus("mine", dataset, [tmp_path]).train) == 7
    assert list(tmp_path.iterdir()) == [folder]  # nothing half-fetched stays


def test_what_another_command_fetched_meanwhile_stays(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files = {"/t.csv": CSV}
    dataset = declared({"url": f"{publisher.url}/t.csv", "save_as": "test.csv"})
    there = tmp_path / dataset.source.folder / "test.csv"
    there.parent.mkdir(parents=True)
    there.write_text("being read")
    assert fetch_dataset("mine", dataset, tmp_path) == there.parent
    assert there.read_text() == "being read"
    assert list(tmp_path.iterdir()) == [there.parent]


def test_paths_in_an_archive_lead_nowhere(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files = {"/a.zip": archive({"../../train/evil.csv": CSV, "/abs/train/evil2.csv": CSV})}
    dataset = declared({"url": f"{publisher.url}/a.zip", "members": {"*train/*.csv": "train/"}})
    inner = tmp_path / "deep" / "cache"
    folder = fetch_dataset("mine", dataset, inner)
    assert sorted(path.name for path in folder.rglob("*.csv")) == ["evil.csv", "evil2.csv"]
    assert all(path.is_relative_to(folder) for path in tmp_path.rglob("*.csv"))


@pytest.mark.parametrize(
    ("file", "download", "sentence"),
    [
        ("/t.csv", {"save_as": "t.csv", "sha256": "0" * 64}, "not the file that was published"),
        ("/no.csv", {"save_as": "t.csv"}, "could not be fetched from http"),
        ("/a.zip", {"members": {"nothing/*.csv": "train/"}}, 'the archive holds no "nothing/'),
        ("/t.csv", {"members": {"*.csv": "train/"}}, "not a zip archive"),
    ],
)
def test_what_is_wrong_with_a_download_is_told(
    publisher: Publisher, tmp_path: Path, file: str, download: dict, sentence: str
) -> None:
    publisher.files = {"/t.csv": CSV, "/a.zip": archive({"x.csv": CSV})}
    with pytest.raises(UserError, match=sentence):
        fetch_dataset("mine", declared({"url": publisher.url + file} | download), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_publisher_that_does_not_answer_is_named(tmp_path: Path) -> None:
    dataset = declared({"url": "http://127.0.0.1:9/t.csv", "save_as": "test.csv"})
    with pytest.raises(UserError, match=r"could not be fetched from http://127\.0\.0\.1:9/t\.csv .*--data-dir"):
        fetch_dataset("mine", dataset, tmp_path)


def test_a_data_set_of_the_hub_is_saved_with_its_label_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    features = datasets.Features(
        {"utterance": datasets.Value("string"), "intent": datasets.ClassLabel(names=["a", "b"])}
    )
    asked = []

    def load(*arguments: object, **options: object) -> datasets.Dataset:
        asked.append((*arguments, options))
        return datasets.Dataset.from_dict({"utterance": ["x", "y", "z"], "intent": [1, 0, 1]}, features=features)

    monkeypatch.setattr(datasets, "load_dataset", load)
    base = declared({"url": "http://127.0.0.1:9/t.csv", "save_as": "test.csv"}).model_dump(mode="json")
    hub = [
        {"id": "org/data", "revision": "abc", "split": name, "save_as": f"{name}.parquet"} for name in ("train", "test")
    ]
    base["publisher"] = {"name": "P", "homepage": "-", "licence": "-", "hub": hub}
    base["source"] |= {"format": "parquet", "train": ["train.parquet"], "test": ["test.parquet"], "text": "utterance"}
    dataset = Dataset.model_validate(base)
    fetch_dataset("mine", dataset, tmp_path)
    assert asked[0] == ("org/data", None, {"revision": "abc", "split": "train"})
    corpus = load_corpus("mine", dataset, [tmp_path])
    assert corpus.label_names == ("a", "b")
    assert corpus.test.labels.tolist() == [1, 0, 1]


def test_whatever_the_hubs_library_raises_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def load(*arguments: object, **options: object) -> None:
        raise RuntimeError("Dataset scripts are no longer supported, but found mine.py")

    monkeypatch.setattr(datasets, "load_dataset", load)
    base = declared({"url": "http://127.0.0.1:9/t.csv", "save_as": "test.csv"}).model_dump(mode="json")
    hub = [{"id": "org/data", "revision": "abc", "split": "train", "save_as": "train.parquet"}]
    base["publisher"] = {"name": "P", "homepage": "-", "licence": "-", "hub": hub}
    with pytest.raises(UserError, match=r"from the hub .org/data.: Dataset scripts are no longer supported"):
        fetch_dataset("mine", Dataset.model_validate(base), tmp_path)


def test_without_the_hub_the_newest_revision_that_is_whole_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    class Away:
        def dataset_info(self, _: str) -> None:
            raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "HfApi", Away)
    revisions = [tmp_path / "hub" / "org--data" / name for name in ("aaa", "bbb", "ccc")]
    for age, (revision, files) in enumerate(zip(revisions, (["train", "test"], ["train"], []), strict=True)):
        revision.mkdir(parents=True)
        for name in files:
            (revision / f"{name}.parquet").write_bytes(b"")
        os.utime(revision, (age, age))
    both = fetch_hub_splits("org/data", {"train": "train", "test": "test"}, tmp_path)
    assert both == {name: revisions[0] / f"{name}.parquet" for name in ("train", "test")}
    assert fetch_hub_splits("org/data", {"train": "train"}, tmp_path) == {"train": revisions[1] / "train.parquet"}
    with pytest.raises(UserError, match=r"the hub has no such data set or cannot be reached .OSError."):
        fetch_hub_splits("org/data", {"train": "validation"}, tmp_path)


def test_what_ships_names_every_publisher() -> None:
    from benchmark.registry import load_registry

    for dataset in load_registry(EXPERIMENTS).datasets.values():
        if dataset.source.kind == "files":
            assert dataset.publisher is not None
            assert dataset.fingerprint is not None
            assert json.loads(dataset.model_dump_json())["publisher"]["downloads"]

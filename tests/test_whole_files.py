"""Files written whole: what a failure or Ctrl-C leaves, whose permissions it has, what callers say of it."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from matplotlib.figure import Figure

from benchmark.encoders import FileHashes
from benchmark.errors import UserError
from benchmark.figures.drawing.files import save_figure
from benchmark.own_data import OwnFiles, write_own_entries
from benchmark.reporting import write
from benchmark.whole_files import write_whole

FULL = OSError(28, "No space left on device")


def content_of(folder: Path) -> dict[str, bytes]:
    """All files, those among them whose names begin with a dot."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stop(monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException) -> None:
    """Let a step of writing fail: ``fsync`` once the content is out, ``replace`` when all but the name is done."""

    def failing(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(f"benchmark.whole_files.os.{step}", failing)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FULL, MemoryError()], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_what_stops_in_the_middle_leaves_the_old_content_and_nothing_beside_it(
    step: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "old.txt", b"old")
    stop(monkeypatch, step, error)
    for name in ("old.txt", "new.txt"):
        with pytest.raises(type(error)):
            write_whole(tmp_path / name, b"new" * 1000)
    assert content_of(tmp_path) == {"old.txt": b"old"}


def test_a_file_is_written_anew_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "some" / "folder" / "file.txt"
    for content in (b"first, and longer", b"second", b""):
        write_whole(path, content)
        assert content_of(path.parent) == {"file.txt": content}


def test_a_file_system_that_cannot_flush_folders_has_the_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def only_files(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112
            raise OSError(22, "Invalid argument")
        flush(descriptor)

    monkeypatch.setattr("benchmark.whole_files.os.fsync", only_files)
    write_whole(tmp_path / "file.txt", b"content")
    assert content_of(tmp_path) == {"file.txt": b"content"}


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o002])
def test_permissions_are_those_of_a_plain_open(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        for write_it in (Path.write_bytes, write_whole):
            folder = tmp_path / write_it.__name__
            folder.mkdir()
            write_it(folder / "new", b"new")
            for mode in (0o600, 0o644, 0o664, 0o755):
                kept = folder / f"{mode:o}"
                kept.touch()
                kept.chmod(mode)
                write_it(kept, b"new")
    finally:
        os.umask(before)
    modes = [{path.name: path.stat().st_mode for path in folder.iterdir()} for folder in tmp_path.iterdir()]
    assert len(modes[0]) == 5
    assert modes[0] == modes[1]


def test_a_link_is_followed_as_a_plain_open_follows_it(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    for name in ("old", "missing"):
        (here / name).symlink_to(there / name)
    (there / "old").write_bytes(b"old")
    for name in ("old", "missing"):
        write_whole(here / name, b"new")
        assert (here / name).is_symlink()
    assert content_of(there) == {"old": b"new", "missing": b"new"}


def test_the_reason_is_the_first_one(tmp_path: Path) -> None:
    """A name that is too long can neither be opened nor removed; a folder is not written over."""
    with pytest.raises(OSError, match="File name too long"):
        write_whole(tmp_path / ("a" * 300), b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def save_text(folder: Path) -> None:
    write(folder / "main.md", "a table")


def save_drawing(folder: Path) -> None:
    save_figure(Figure(), folder, "noise")


def save_hashes(folder: Path) -> None:
    (folder.parent / "weights").write_bytes(b"many")
    hashes = FileHashes(folder / "hashes.json")
    hashes.sha256(folder.parent / "weights")
    hashes.save()


def test_a_file_of_the_same_size_and_time_is_hashed_anew(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.write_bytes(b"one")
    hashes = FileHashes(tmp_path / "hashes.json")
    first, status = hashes.sha256(weights), weights.stat()
    hashes.save()
    weights.write_bytes(b"two")
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = FileHashes(tmp_path / "hashes.json").sha256(weights)
    assert again == hashlib.sha256(b"two").hexdigest() != first
    weights.write_bytes(b"one")
    copy = tmp_path / "copy"
    copy.write_bytes(b"two")
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    copy.replace(weights)
    assert FileHashes(tmp_path / "hashes.json").sha256(weights) == hashlib.sha256(b"two").hexdigest()


@pytest.mark.parametrize(("save", "name"), [(save_text, "main.md"), (save_drawing, "noise.pdf"), (save_hashes, None)])
def test_callers_leave_nothing_half_and_say_which_file(
    save: Callable[[Path], None], name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "written"
    save(folder)
    before = content_of(folder)
    assert before
    for error in (FULL, KeyboardInterrupt()):
        with monkeypatch.context() as patch:
            stop(patch, "replace", error)
            if isinstance(error, KeyboardInterrupt):
                with pytest.raises(KeyboardInterrupt):
                    save(folder)
            elif name is None:  # a cache that cannot be written only costs time
                save(folder)
            else:
                with pytest.raises(UserError) as said:
                    save(folder)
                assert str(said.value) == f"{folder / name} cannot be written: No space left on device."
    assert content_of(folder) == before


# --- own entries, which are tried after they are written -------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> OwnFiles:
    lines = [f"word{index} {'pay' if index % 2 else 'move'},{'pay' if index % 2 else 'move'}" for index in range(60)]
    (tmp_path / "desk.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return OwnFiles("desk", tmp_path / "desk.csv", None, None, "text", "label")


def write_entries(experiments: Path, own: OwnFiles, seeds: tuple[int, ...] = (0, 1, 2)) -> Path:
    return write_own_entries(experiments, own, None, "multilingual_e5_small_3_layers", seeds=seeds)[1]


def test_own_entries_that_cannot_be_written_are_as_they_were(
    own: OwnFiles, experiments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_entries(experiments, own)
    before = content_of(path.parent)
    with monkeypatch.context() as patch:
        stop(patch, "replace", FULL)
        with pytest.raises(UserError) as said:
            write_entries(experiments, own, (5, 6))
    assert str(said.value) == f"{path} cannot be written: No space left on device."
    assert content_of(path.parent) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("no")], ids=["interrupted", "refused"])
@pytest.mark.parametrize("there_before", [True, False])
def test_own_entries_that_are_not_tried_to_the_end_are_as_they_were(
    there_before: bool, error: BaseException, own: OwnFiles, experiments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = experiments / "own"
    if there_before:
        path = write_entries(experiments, own)
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as another editor, or git, may leave it
    before = content_of(folder) if there_before else {}

    def stopped(*_: object) -> NoReturn:
        assert content_of(folder) != before
        raise error

    monkeypatch.setattr("benchmark.own_data.writing.load_corpus", stopped)
    with pytest.raises(type(error)):
        write_entries(experiments, own, (5, 6))
    assert content_of(folder) == before

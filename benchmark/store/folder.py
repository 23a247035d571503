"""The folder of a profile's results: the only place that knows paths and formats. Nothing half-written ever bears a
final name.
"""

import hashlib
import io
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from benchmark.specs import RunSpec, readable_name
from benchmark.store.result import LogitsRecord, Result

RESULTS = Path(__file__).resolve().parents[2] / "results"


@dataclass(frozen=True)
class Logits:
    """Stored logits (N, K) and labels (N,) of the held-out splits: validation labels as corrupted, test labels
    clean.
    """

    validation_logits: NDArray[np.float32]
    validation_labels: NDArray[np.int64]
    test_logits: NDArray[np.float32]
    test_labels: NDArray[np.int64]


@dataclass(frozen=True)
class Unusable:
    """A file among the results that is no result, and why."""

    path: Path
    reason: str


class Damaged(Exception):
    """A parcel does not hold what it should, and why."""


@dataclass(frozen=True)
class Parcel:
    """The files of one run as bytes, on their way from one folder to another; None for one that there is not."""

    result: bytes | None
    logits: bytes | None
    log: bytes | None

    def opened(self, run: RunSpec) -> Result | None:
        """The result, of just that run and with just the logits that it names; None where the parcel holds none.

        Raises ``Damaged`` for anything else.
        """
        if self.result is None:
            return None
        try:
            result = Result.model_validate_json(self.result)
        except ValidationError as error:
            raise Damaged(f"it is no result ({error.errors()[0]['msg']})") from None
        if result.run != run:
            raise Damaged("it is the result of another run")
        if (result.logits is None) != (self.logits is None):
            raise Damaged("result and logits do not belong together")
        if result.logits is not None and self.logits is not None:
            digest = hashlib.sha256(self.logits).hexdigest()
            if result.logits.sha256 != digest or result.logits.file != _logits_name(run, digest):
                raise Damaged("its logits are not the bytes that were computed")
        return result


class ResultFolder:
    """Results of one profile: ``<name>.json`` each, ``logits/``, ``logs/``, ``claims/`` and ``set_aside/`` beside
    them.
    """

    def __init__(self, root: Path, profile: str) -> None:
        self.folder = root / profile
        self.claims = self.folder / "claims"

    def path(self, run: RunSpec) -> Path:
        """Where the result of a run stands, whether it is there or not."""
        return self.folder / f"{readable_name(run)}.json"

    def log_path(self, run: RunSpec) -> Path:
        """Where the run's log stands."""
        return self.folder / "logs" / f"{readable_name(run)}.log"

    def read(self, run: RunSpec) -> Result | None:
        """The valid result of a run; None where there is none."""
        path = self.path(run)
        if not path.is_file():
            return None
        found = _read_result(path)
        return found if isinstance(found, Result) else None

    def read_all(self) -> tuple[list[Result], list[Unusable]]:
        """Every result in the folder, by file name, and the files that are none."""
        results, unusable = [], []
        for path in sorted(self.folder.glob("*.json")):
            found = _read_result(path)
            if isinstance(found, Result):
                results.append(found)
            else:
                unusable.append(found)
        return results, unusable

    def set_aside(self, unusable: Unusable) -> Path:
        """Move a file that is no result out of the way, never over another one; returns where it went."""
        aside = self.folder / "set_aside"
        aside.mkdir(parents=True, exist_ok=True)
        for target in _numbered(aside / unusable.path.name):
            try:
                os.link(unusable.path, target)
            except FileExistsError:
                continue
            unusable.path.unlink()
            return target
        raise AssertionError("unreachable: the numbers do not end")

    def save(self, result: Result, logits: Logits | None = None) -> Path:
        """Write a result and its logits, under a name of their content."""
        if logits is None:
            return self.put(result, None)
        content = _pack(logits)
        digest = hashlib.sha256(content).hexdigest()
        record = LogitsRecord(file=_logits_name(result.run, digest), sha256=digest)
        return self.put(result.model_copy(update={"logits": record}), content)

    def put(self, result: Result, logits: bytes | None) -> Path:
        """Write a result that names its logits, whose file's bytes come first, so that the old state, logits included,
        stays whole until the new result stands under its final name.
        """
        folder, name = self.folder / "logits", readable_name(result.run)
        if logits is not None:
            assert result.logits is not None, "a result with logits names them"
            _write_atomically(folder / result.logits.file, logits)
        path = self.path(result.run)
        replaces = path.exists()
        _write_atomically(path, _to_json(result).encode("ascii"))
        if result.logits is not None and replaces:  # looking for old logits takes long where there are thousands
            for old in folder.glob(f"{name}.*npz"):
                if old.name != result.logits.file:
                    old.unlink(missing_ok=True)
        return path

    def take_out(self, run: RunSpec) -> Parcel:
        """What a run has left here, as bytes, to be stored in another folder; nothing of it stays here."""
        done = self.read(run)
        logits = None if done is None or done.logits is None else self.folder / "logits" / done.logits.file
        paths = (self.path(run), logits, self.log_path(run))
        parcel = Parcel(*(path.read_bytes() if path is not None and path.is_file() else None for path in paths))
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        return parcel

    def put_log(self, run: RunSpec, content: bytes) -> Path:
        """Write the run's log, made elsewhere; returns where it stands."""
        path = self.log_path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def has_logits(self, result: Result) -> bool:
        """Whether the result's logits are on this machine (they are not in git)."""
        return result.logits is not None and (self.folder / "logits" / Path(result.logits.file).name).is_file()

    def read_logits(self, result: Result) -> Logits | None:
        """The logits of a result; None where they are missing or not the bytes that were stored."""
        if result.logits is None:
            return None
        path = self.folder / "logits" / Path(result.logits.file).name
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content).hexdigest() != result.logits.sha256:
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return Logits(**{name: arrays[name] for name in Logits.__dataclass_fields__})


def _read_result(path: Path) -> Result | Unusable:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Unusable(path, f"it cannot be read ({error})")
    try:
        result = Result.model_validate_json(text)
    except ValidationError as error:
        if not text.strip():
            return Unusable(path, "it is empty")
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return Unusable(path, f"it does not hold what a result holds ({place + ': ' if place else ''}{first['msg']})")
    if path.stem != readable_name(result.run):
        return Unusable(path, "its name is not the name of the run that it holds")
    return result


def _to_json(result: Result) -> str:
    """Strict JSON, a line for each part, so that a change of one reads well in a diff."""
    content = result.model_dump(mode="json")
    lines = [f"{json.dumps(key)}: {_compact(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _logits_name(run: RunSpec, digest: str) -> str:
    return f"{readable_name(run)}.{digest[:12]}.npz"


def _pack(logits: Logits) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: getattr(logits, name) for name in Logits.__dataclass_fields__})
    return buffer.getvalue()


def _write_atomically(path: Path, content: bytes) -> None:
    """Write beside the final name, flush to the disk, then rename over it; a failure leaves nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _numbered(path: Path) -> Iterator[Path]:
    yield path
    number = 1
    while True:
        yield path.with_name(f"{path.name}.{number}")
        number += 1

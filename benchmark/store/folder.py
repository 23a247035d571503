"""The folder of a profile's results: the only place that knows paths and formats. Nothing half-written ever bears a
final name.
"""

import contextlib
import gc
import hashlib
import io
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from benchmark.errors import UserError
from benchmark.specs import RunSpec, readable_name
from benchmark.store.outline import Outline
from benchmark.store.result import LogitsRecord, Result

Kind = TypeVar("Kind", Result, Outline)

# Names of arrays in a file of logits; the number of passes follows the last.
_ARRAYS = ("validation_logits", "validation_labels", "test_logits", "test_labels")
_MC_DROPOUT = "mc_dropout_"

RESULTS = Path(__file__).resolve().parents[2] / "results"


@dataclass(frozen=True)
class Logits:
    """Stored logits (N, K) and labels (N,) of the held-out splits: validation labels as corrupted, test labels clean.

    ``mc_dropout`` holds, by the number of passes with dropout, the logarithm of the mean probabilities of test rows.
    """

    validation_logits: NDArray[np.float32]
    validation_labels: NDArray[np.int64]
    test_logits: NDArray[np.float32]
    test_labels: NDArray[np.int64]
    mc_dropout: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)


@dataclass(frozen=True)
class Unusable:
    """A file among the results that is no result, and why."""

    path: Path
    reason: str


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
        found = _read(path, Result)
        return found if isinstance(found, Result) else None

    def whole(self, outline: Outline) -> Result:
        """The result of an outline. Raises UserError where the file is wrong in what the outline passes over."""
        path = self.path(outline.run)
        found = _read(path, Result)
        if isinstance(found, Unusable):
            raise UserError(f"{path}: {found.reason}; delete it, and the run is made again.")
        return found

    def read_all(self) -> tuple[list[Result], list[Unusable]]:
        """Every result in the folder, by file name, and the files that are none."""
        return self._read_all(Result)

    def outlines(self) -> tuple[list[Outline], list[Unusable]]:
        """The outline of every result in the folder, by file name, and the files that are none."""
        return self._read_all(Outline)

    def _read_all(self, model: type[Kind]) -> tuple[list[Kind], list[Unusable]]:
        results, unusable = [], []
        with _nothing_collected():
            for path in sorted(self.folder.glob("*.json")):
                found = _read(path, model)
                if isinstance(found, Unusable):
                    unusable.append(found)
                else:
                    results.append(found)
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
        """Write a result, its logits first and under a name of their content, so that the old state, logits included,
        stays whole until the new result stands under its final name.
        """
        folder, name = self.folder / "logits", readable_name(result.run)
        if logits is not None:
            content = _pack(logits)
            digest = hashlib.sha256(content).hexdigest()
            target = folder / f"{name}.{digest[:12]}.npz"
            _write_atomically(target, content)
            record = LogitsRecord(file=target.name, sha256=digest, mc_dropout=sorted(logits.mc_dropout))
            result = result.model_copy(update={"logits": record})
        path = self.path(result.run)
        _write_atomically(path, _to_json(result).encode("ascii"))
        if result.logits is not None:
            for old in folder.glob(f"{name}.*npz"):
                if old.name != result.logits.file:
                    old.unlink(missing_ok=True)
        return path

    def has_logits(self, result: Result | Outline) -> bool:
        """Whether the result's logits are on this machine (they are not in git)."""
        return result.logits is not None and (self.folder / "logits" / Path(result.logits.file).name).is_file()

    def read_logits(self, result: Result | Outline) -> Logits | None:
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
            by_passes = {
                int(name.removeprefix(_MC_DROPOUT)): arrays[name] for name in arrays if name.startswith(_MC_DROPOUT)
            }
            return Logits(**{name: arrays[name] for name in _ARRAYS}, mc_dropout=by_passes)


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """No search for garbage while thousands of results are read: there is none, and each search looks at all of them,
    which takes a third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(path: Path, model: type[Kind]) -> Kind | Unusable:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Unusable(path, f"it cannot be read ({error})")
    try:
        result = model.model_validate_json(text)
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


def _pack(logits: Logits) -> bytes:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: getattr(logits, name) for name in _ARRAYS}
    arrays |= {f"{_MC_DROPOUT}{passes}": array for passes, array in sorted(logits.mc_dropout.items())}
    np.savez(buffer, **arrays)
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

"""The folder of a profile's results: the only place that knows paths and formats. Nothing half-written ever bears a
final name.
"""

import contextlib
import gc
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from benchmark.errors import UserError
from benchmark.specs import RunSpec, readable_name
from benchmark.store.claiming import require_locks
from benchmark.store.known import KnownResults
from benchmark.store.logits import Logits, logits_name, pack, unpack
from benchmark.store.outline import Outline
from benchmark.store.parcel import Parcel
from benchmark.store.result import LogitsRecord, Result
from benchmark.whole_files import write_whole

Kind = TypeVar("Kind", Result, Outline)

_CHUNK = 2**20
RESULTS = Path(__file__).resolve().parents[2] / "results"


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

    def make(self) -> None:
        """Make the folder where it is not there. Raises UserError where that cannot be, or nothing can be written or
        locked in it: better known before a training than after it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for folder in (self.folder, self.claims):
                folder.mkdir(exist_ok=True)
                with tempfile.TemporaryFile(dir=folder, prefix=".room"):
                    pass
            require_locks(self.claims)
        except FileExistsError as error:
            raise UserError(
                f"{error.filename} cannot hold results: a file, or a link that leads nowhere, stands in its place."
            ) from None
        except OSError as error:
            raise UserError(f"{self.folder} cannot hold results: {error.strerror}.") from None

    def require_room(self, size: int) -> None:
        """Raises OSError where so many bytes cannot be written here: better known before a training than after it."""
        folder = self.folder / "logits"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=".room") as file:
            for written in range(0, size, _CHUNK):
                file.write(bytes(min(_CHUNK, size - written)))
            file.flush()

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
            for path in self._files():
                found = _read(path, model)
                if isinstance(found, Unusable):
                    unusable.append(found)
                else:
                    results.append(found)
        return results, unusable

    def _files(self) -> list[Path]:
        """By name. Raises OSError where the folder is there and cannot be read, which is not the same as empty."""
        paths = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return [path for path in paths if path.suffix == ".json" and not path.name.startswith(".")]

    def set_aside(self, unusable: Unusable) -> Path | None:
        """Move a file that is no result out of the way, never over another one; returns where it went, None where it is
        a result by now, or gone.
        """
        if not isinstance(_read(unusable.path, Result), Unusable) or not (
            unusable.path.exists() or unusable.path.is_symlink()
        ):
            return None
        aside = self.folder / "set_aside"
        aside.mkdir(parents=True, exist_ok=True)
        for target in _numbered(aside / unusable.path.name):
            if target.exists():
                continue
            if unusable.path.is_dir():  # which can have no second name
                unusable.path.rename(target)
                return target
            try:
                os.link(unusable.path, target)
            except FileExistsError:
                continue
            except OSError:  # some file systems give no file a second name
                unusable.path.rename(target)
                return target
            unusable.path.unlink()
            return target
        raise AssertionError("unreachable: the numbers do not end")

    def save(self, result: Result, logits: Logits | None = None) -> Result:
        """Write a result and its logits, under a name of their content; returns the result, which now names them."""
        if logits is None:
            self.put(result, None)
            return result
        content = pack(logits)
        digest = hashlib.sha256(content).hexdigest()
        name, by_passes = logits_name(result.run, digest), sorted(logits.mc_dropout)
        record = LogitsRecord(file=name, sha256=digest, mc_dropout=by_passes)
        stored = result.model_copy(update={"logits": record})
        self.put(stored, content)
        return stored

    def save_failure(self, failed: Result) -> None:
        """Write that a run failed; a good result of it that is here stays: that of a run to be made again, or one that
        is not scored yet.
        """
        before = self.read(failed.run)
        if before is None or before.status == "failed":
            self.put(failed, None)

    def put(self, result: Result, logits: bytes | None) -> Path:
        """Write a result that names its logits, whose file's bytes come first, so that the old state, logits included,
        stays whole until the new result stands under its final name.
        """
        folder, name = self.folder / "logits", readable_name(result.run)
        if logits is not None:
            assert result.logits is not None, "a result with logits names them"
            write_whole(folder / result.logits.file, logits)
        path = self.path(result.run)
        replaces = logits is not None and path.exists()
        write_whole(path, _to_json(result).encode("ascii"))
        if result.logits is not None and replaces:  # looking for old logits takes long where there are thousands
            for old in folder.glob(f"{name}.*npz"):
                if old.name != result.logits.file:
                    old.unlink(missing_ok=True)
        return path

    def take_out(self, run: RunSpec) -> Parcel:
        """What a run has left here, as bytes, to be stored in another folder; nothing of it stays here."""
        done = self.read(run)
        logits = None if done is None else self.logits_path(done)
        paths = (self.path(run), logits, self.log_path(run))
        parcel = Parcel(*(path.read_bytes() if path is not None and path.is_file() else None for path in paths))
        for path in paths:
            if path is not None:
                path.unlink(missing_ok=True)
        return parcel

    def put_log(self, run: RunSpec, content: bytes) -> Path:
        """Write the run's log, made elsewhere; returns where it stands."""
        path = self.log_path(run)
        write_whole(path, content)
        return path

    def logits_path(self, result: Result | Outline) -> Path | None:
        """Where the result's logits stand; None of one that has none."""
        return None if result.logits is None else self.folder / "logits" / Path(result.logits.file).name

    def has_logits(self, result: Result | Outline) -> bool:
        """Whether the result's logits are on this machine (they are not in git)."""
        path = self.logits_path(result)
        return path is not None and path.is_file()

    def known(self, outlines: Iterable[Outline]) -> KnownResults[Outline]:
        """What planning looks results up in, these and which of them have their logits."""
        outlines = list(outlines)
        return KnownResults.of(outlines, [one.run_id for one in outlines if self.has_logits(one)])

    def read_logits(self, result: Result | Outline) -> Logits | None:
        """The logits of a result; None where they are missing or not the bytes that were stored."""
        path = self.logits_path(result)
        if result.logits is None or path is None:
            return None
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content).hexdigest() != result.logits.sha256:
            return None
        return unpack(content)


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """No search for garbage while thousands of results are read, nor among them later: there is none, and each search
    looks at all of them, which takes a third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _read(path: Path, model: type[Kind]) -> Kind | Unusable:
    if path.exists() and not path.is_file():  # to read a pipe is to wait for ever
        return Unusable(path, "it is no file")
    try:
        text = path.read_bytes()
    except OSError as error:
        return Unusable(path, f"it cannot be read ({error})")
    try:
        result = model.model_validate_json(text)
    except ValidationError as error:
        if not text.strip():
            return Unusable(path, "it is empty")
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return Unusable(path, f"it does not hold what a result holds ({place + ': ' if place else ''}{first['msg']})")
    if path.stem != readable_name(result.run, result.run_id):
        return Unusable(path, "its name is not the name of the run that it holds")
    if result.status == "success" and not result.views and result.logits is None:
        return Unusable(path, "it has neither scores nor logits to score")
    return result


def _to_json(result: Result) -> str:
    """Strict JSON, a line for each part, so that a change of one reads well in a diff."""
    content = result.model_dump(mode="json")
    lines = [f"{json.dumps(key)}: {_compact(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _numbered(path: Path) -> Iterator[Path]:
    yield path
    number = 1
    while True:
        yield path.with_name(f"{path.name}.{number}")
        number += 1

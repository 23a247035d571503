"""Claims: of several commands on the same results, one at a time trains a run."""

import errno
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from benchmark.errors import UserError
from benchmark.specs import RunSpec, readable_name

SCORING_PATIENCE = 60.0  # seconds to wait for another command that scores the same run, which takes it a few
HELD = "another command works on it, so it was not scored; run this again after that"


_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class CannotClaim(UserError):
    """A claim that cannot even be tried for."""


@contextmanager
def claim(folder: Path, run: RunSpec, timeout: float = 0.0) -> Iterator[bool]:
    """Try for ``timeout`` seconds to claim a run below ``folder``; yields whether it is ours.

    A claim is an operating system's lock on a file, held while the block runs. The system gives it up when its
    process ends, however that ends, so a dead holder blocks nobody, and there is no clock to disagree about. Machines
    that share a file system share the claims as far as that file system shares its locks (NFS version 4 does). The
    files hold nothing, and anybody may lock them, for a folder may be several people's. Raises CannotClaim where one
    cannot be opened.
    """
    path = folder / f"{readable_name(run)}.lock"
    lock = FileLock(path, mode=0o666)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=timeout)
    except Timeout:
        yield False
        return
    except OSError as error:
        remedy = "" if error.errno in _NO_LOCKS else "; make it yours, or delete it"
        raise CannotClaim(f"{path} cannot be locked: {error.strerror}{remedy}.") from None
    try:
        yield True
    finally:
        lock.release()


def require_locks(folder: Path) -> None:
    """Raises CannotClaim where the file system of a folder has no locks: better known before the first run."""
    path = folder / f".{secrets.token_hex(4)}.lock"
    try:
        with FileLock(path, timeout=0.0):
            pass
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise CannotClaim(
                f"The file system of {folder} has no locks ({error.strerror}); choose a folder on another one."
            ) from None
        raise
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def is_held(folder: Path, run: RunSpec) -> bool:
    """Whether somebody works on a run at this moment, as far as that can be told."""
    try:
        with claim(folder, run) as ours:
            return not ours
    except CannotClaim:
        return False

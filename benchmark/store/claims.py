"""Claims: of several schedulers on the same results, one at a time trains a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from benchmark.specs import RunSpec, readable_name


@contextmanager
def claim(folder: Path, run: RunSpec) -> Iterator[bool]:
    """Try to claim a run below ``folder``; yields at once whether it is ours.

    A claim is an operating system's lock on a file, held while the block runs. The system gives it up when its
    process ends, however that ends, so a dead holder blocks nobody, and there is no clock to disagree about. Machines
    that share a file system share the claims as far as that file system shares its locks (NFS version 4 does).
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{readable_name(run)}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()

"""Files and folders that appear whole or not at all: whoever reads one finds the old content or the new."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the final name, flush to the disk, then rename over it; makes the folder where it is not there.

    A failure, Ctrl-C among them, leaves what was there, and nothing beside it; a power cut leaves one content or the
    other. As a plain ``open`` would: a link is followed, a new file has the permissions that the umask leaves, one that
    is written anew keeps its own. Raises OSError.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            _take_permissions(file.fileno(), path)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # the first error says more
            temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # not every file system can; the file is written all the same
        _flush_folder(path.parent)


def _take_permissions(descriptor: int, path: Path) -> None:
    """Those of the file that is replaced, if there is one. Not set where they are the same, which some file systems
    refuse.
    """
    with suppress(FileNotFoundError):
        wanted = S_IMODE(path.stat().st_mode)
        if wanted != S_IMODE(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, wanted)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place_folder(made: Path, target: Path) -> None:
    """Give a folder that was made beside it its final name; where another process has done so meanwhile, what that one
    made stays, for it may be in use.
    """
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise

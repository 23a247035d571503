"""How much memory this process and those that it starts may use."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def host_memory() -> int:
    """Bytes: what the machine has, or what a container or a cluster's scheduler allows of it (Linux control groups),
    where that is less.
    """
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits()])


def _limits() -> Iterator[int]:
    """The limits of this process's control groups and of those that these are in. Source: the kernel's documentation of
    control groups, version 2 (``memory.max``) and 1 (``memory.limit_in_bytes``).
    """
    try:
        lines = _OWN_CGROUPS.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):  # a system without them
        return
    for line in lines:
        _, controllers, own = line.split(":", 2)
        version_1 = "memory" in controllers.split(",")
        if not version_1 and controllers:
            continue
        root, name = (_CGROUPS / "memory", "memory.limit_in_bytes") if version_1 else (_CGROUPS, "memory.max")
        for group in (PurePosixPath(own), *PurePosixPath(own).parents):
            try:
                limit = (root / str(group).lstrip("/") / name).read_text(encoding="ascii").strip()
            except OSError:  # in a container the group's own path is often not to be seen, its root is
                continue
            if limit.isdecimal():  # else "max"
                yield int(limit)

"""What a result was made with: code, packages, machine."""

import platform
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmark import __version__
from benchmark.store import EnvironmentRecord

_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "pydantic", "safetensors")
_PROJECT = Path(__file__).resolve().parents[1]


def describe_environment(device: str, device_uuid: str | None, threads: int) -> EnvironmentRecord:
    """The environment of this process, now."""
    commit, changed = code_state()
    return EnvironmentRecord(
        code_version=__version__,
        code_commit=commit,
        code_changed=changed,
        python=platform.python_version(),
        platform=platform.platform(),
        packages=_package_versions(),
        device=device,
        device_uuid=device_uuid,
        threads=threads,
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@lru_cache(maxsize=1)
def cpu_name() -> str:
    """The processor's own name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _package_versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


@lru_cache(maxsize=1)
def code_state() -> tuple[str | None, bool | None]:
    """The commit of the project's checkout and whether its code or registry differ from it; (None, None) without
    git.
    """
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _git("status", "--porcelain", "--", "benchmark", "experiments", "requirements.txt")
    return commit, None if changes is None else bool(changes)


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(_PROJECT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None

"""Figures to files: the same bytes each time, and never half a file."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmark.errors import UserError
from benchmark.figures.drawing.sheet import DPI

# Without the time of day, and with nothing that differs between machines.
_FORMATS: dict[str, dict[str, Any]] = {
    "pdf": {"metadata": {"CreationDate": None}},
    "png": {"dpi": DPI, "metadata": {"Software": None}},
}


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.pdf`` (lines) and ``name.png`` (dots); returns their paths. Raises UserError where that fails."""
    written = []
    for ending, options in _FORMATS.items():
        path = folder / f"{name}.{ending}"
        temporary = folder / f".{name}.{os.getpid()}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(temporary, format=ending, **options)
            os.replace(temporary, path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise UserError(f"{path} cannot be written: {error.strerror or error}.") from None
        written.append(path)
    return written


def remove_figure(folder: Path, name: str) -> None:
    """Remove what ``save_figure`` wrote under that name, if anything. Raises UserError where that fails."""
    for ending in _FORMATS:
        path = folder / f"{name}.{ending}"
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{path} shows other results and cannot be removed: {error.strerror}.") from None

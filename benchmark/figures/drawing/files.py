"""Figures to files: the same bytes each time, and never half a file."""

from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmark.errors import UserError
from benchmark.figures.drawing.measuring import DPI
from benchmark.whole_files import write_whole

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
        content = BytesIO()
        try:
            figure.savefig(content, format=ending, **options)
            write_whole(path, content.getvalue())
        except OSError as error:
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

"""From the declared figures and the results at hand to files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmark.declarations.figures import AnyFigure, F1AgainstEceFigure
from benchmark.errors import UserError
from benchmark.registry import Inputs, Registry
from benchmark.store import KnownResults, Result


def draw_figures(
    registry: Registry,
    profile_name: str,
    finished: KnownResults[Result],
    inputs: Inputs,
    seeds: Sequence[int],
    folder: Path,
) -> tuple[list[Path], list[str]]:
    """Draw every declared figure that the profile and the results at hand allow, as ``<name>.pdf`` and ``<name>.png``.

    A figure that names no data set is drawn for each of the profile, as ``<name>_<data set>``. Returns the paths
    written and, a sentence a reason, what was left out though the profile has its data; files that an earlier call made
    of what is now left out are removed, for they show other results. The same results give the same bytes. Raises
    UserError where matplotlib is not installed or a file cannot be written.
    """
    os.environ["MPLBACKEND"] = "agg"  # pictures go to files; matplotlib does not even load where another one is unknown
    try:
        from benchmark.figures.composing import Composer
        from benchmark.figures.drawing.files import remove_figure, save_figure
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise UserError("Figures need matplotlib: pip install -r requirements.txt.") from None
    composer = Composer(registry, profile_name, finished, inputs, seeds)
    written: list[Path] = []
    left_out: dict[str, list[str]] = {}
    with composer.house_style():
        for name, figure, dataset in _each(registry, profile_name):
            drawn = composer.draw(figure, dataset)
            if drawn is None or isinstance(drawn, str):
                remove_figure(folder, name)
                if drawn is not None:
                    left_out.setdefault(drawn, []).append(name)
            else:
                written += save_figure(drawn, folder, name)
    reasons = [f"{', '.join(names)} ({why})" for why, names in left_out.items()]
    sentences = [f"Figures left out: {'; '.join(reasons)}."] if reasons else []
    return written, sentences + composer.complaints()


def _each(registry: Registry, profile_name: str) -> Iterator[tuple[str, AnyFigure, str]]:
    """Name of the file, figure, role of the data set ("" where the figure shows all)."""
    for name, figure in registry.figures.items():
        if isinstance(figure, F1AgainstEceFigure):
            yield name, figure, ""
        elif figure.dataset is not None:
            yield name, figure, figure.dataset
        else:
            for dataset in registry.profile(profile_name).datasets:
                yield f"{name}_{dataset}", figure, dataset

"""The option ``--track``, and whether what it names is installed."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from benchmark.commandline import listed_names
from benchmark.errors import UserError, nearest
from benchmark.tracking.tracker import MakeTracker

REQUIREMENTS = "requirements-tracking.txt"


def add_track_option(parser: argparse.ArgumentParser) -> None:
    """Which trackers to log to."""
    parser.add_argument(
        "--track",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="log trainings to tensorboard, wandb or both, in results/<profile>/logs; nothing goes over the network "
        f"unless WANDB_MODE=online (needs {REQUIREMENTS})",
    )


def chosen_trackers(values: Sequence[str] | None) -> dict[str, MakeTracker]:
    """How to make each tracker that was asked for, by name.

    Raises UserError for an unknown name, a package that is not installed, a mode of W&B that is none.
    """
    made = {}
    for name in listed_names("--track", values) or ():
        if name not in _TRACKERS:
            raise UserError(f'--track: there is no "{name}"; {nearest(name, _TRACKERS)}')
        try:
            made[name] = _TRACKERS[name]()
        except ImportError as error:
            raise UserError(f"--track {name} needs {name}: pip install -r {REQUIREMENTS} ({error})") from error
    return made


def _tensorboard() -> MakeTracker:
    from benchmark.tracking.board import Board

    return Board


def _wandb() -> MakeTracker:
    from benchmark.tracking.weights_and_biases import WeightsAndBiases, checked_mode

    return partial(WeightsAndBiases, mode=checked_mode())


_TRACKERS: dict[str, Callable[[], MakeTracker]] = {"tensorboard": _tensorboard, "wandb": _wandb}

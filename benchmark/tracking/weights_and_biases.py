"""Runs of Weights & Biases: on this disk, unless the user wants them on the network."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from wandb import Settings, init, login

from benchmark.errors import UserError
from benchmark.tracking.tracker import TrackedRun

Mode = Literal["offline", "online", "disabled"]
_PROJECT = "confidence-calibration"  # unless WANDB_PROJECT names one
_SECONDS_FOR_THE_NETWORK = 60.0


def checked_mode() -> Mode:
    """``WANDB_MODE``, or offline where it is not set.

    Raises UserError where it is another word, or online without a key.
    """
    match os.environ.get("WANDB_MODE") or "offline":
        case "offline" | "disabled" as mode:
            return mode
        case "online":
            _log_in()
            return "online"
        case other:
            raise UserError(f'WANDB_MODE is "{other}"; --track wandb knows offline (the default), online and disabled.')


class WeightsAndBiases:
    """Keeps ``wandb/`` in a folder of logs. Every attempt at a run is a run of its own there; one that did not succeed
    is marked as failed.
    """

    def __init__(self, logs: Path, mode: Mode) -> None:
        self.logs = logs
        self.mode = mode
        os.environ["WANDB_MODE"] = mode  # an empty one, which it would refuse, is none
        if mode != "online":
            os.environ["WANDB_ERROR_REPORTING"] = "false"  # it would look for its server even when offline
        logs.mkdir(parents=True, exist_ok=True)

    def begin(self, run: TrackedRun) -> "WandbLog":
        """Start a run; others may be open."""
        return WandbLog(
            init(
                mode=self.mode,
                dir=self.logs,  # it adds wandb/ itself
                project=os.environ.get("WANDB_PROJECT", _PROJECT),
                group=run.profile,
                name=run.name,
                config=run.configuration(),
                reinit="create_new",
                settings=_settings(),
            )
        )


class WandbLog:
    """One run of W&B."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def epoch(self, done: int, numbers: Mapping[str, float]) -> None:
        self.run.log(dict(numbers), step=done, commit=True)

    def end(self, outcome: str, scores: Mapping[str, float]) -> None:
        self.run.summary.update({**scores, "outcome": outcome})
        self.run.finish(exit_code=0 if outcome == "success" else 1)


def _settings() -> Settings:
    """Silence, since the terminal is the scheduler's; and nothing of this process, which trains nothing itself."""
    return Settings(
        silent=True,
        console="off",
        x_disable_stats=True,
        disable_git=True,
        disable_code=True,
        init_timeout=_SECONDS_FOR_THE_NETWORK,
        finish_timeout=_SECONDS_FOR_THE_NETWORK,
        finish_timeout_raises=True,
    )


def _log_in() -> None:
    """Raises UserError where there is no valid key, and none is given when a terminal asks for it."""
    remedy = "set WANDB_API_KEY, or call wandb login."
    try:
        valid = login()
    except Exception as error:  # of many kinds, a network that is not there among them
        raise UserError(f"WANDB_MODE=online needs a key: {remedy} ({error})") from error
    if not valid:
        raise UserError(f"WANDB_MODE=online needs a key: {remedy}")

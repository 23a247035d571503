"""Logging of trainings for people who have TensorBoard or Weights & Biases: listeners of the scheduler, never needed by
it, which can cost no run.
"""

from benchmark.tracking.listening import Listener, listening
from benchmark.tracking.options import add_track_option, chosen_trackers
from benchmark.tracking.tracker import MakeTracker, RunLog, TrackedRun, Tracker

__all__ = [
    "Listener",
    "MakeTracker",
    "RunLog",
    "TrackedRun",
    "Tracker",
    "add_track_option",
    "chosen_trackers",
    "listening",
]

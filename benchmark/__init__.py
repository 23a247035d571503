"""A benchmark of confidence calibration methods for intent detection."""

__version__ = "0.1.0"

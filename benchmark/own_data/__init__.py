"""Data of the user's own: from a file to the entries in ``experiments/own`` by which all methods are compared on it."""

from benchmark.own_data.entries import SEEDS, own_entries
from benchmark.own_data.files import OwnFiles, own_files
from benchmark.own_data.writing import Written, declares_profile, write_own_entries

__all__ = ["SEEDS", "OwnFiles", "Written", "declares_profile", "own_entries", "own_files", "write_own_entries"]

"""The three parts of a data set, by name."""

from typing import Literal, get_args

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

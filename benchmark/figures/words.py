"""The words around a figure: its title, and below it what must be known to read it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """The title above a figure and the sentences below it."""

    title: str
    sentences: tuple[str, ...]

    @property
    def footer(self) -> str:
        return " ".join(sentence for sentence in self.sentences if sentence)


def missing_sentence(missing: Sequence[str], partial: Sequence[str]) -> str:
    """What a reader would look for in vain, and what stands on fewer seeds than the rest; "" for neither."""
    parts = []
    if missing:
        parts.append(f"Missing: {', '.join(missing)}.")
    if partial:
        parts.append(f"Fewer seeds: {', '.join(partial)}.")
    return " ".join(parts)

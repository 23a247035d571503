"""Words that tables and figures share."""

from collections.abc import Iterable, Sequence

ONE_SEED = "Where there is one seed, noise is that of the test rows only, not of how far seeds scatter."


_ENDS = (".", "!", "?", "。", "！", "？")  # captions may be Chinese


def as_sentence(text: str) -> str:
    """A caption with a full stop, so that other sentences can follow."""
    return text if text.endswith(_ENDS) else f"{text}."


def in_a_row(words: Iterable[str]) -> str:
    """``a, b and c``; nothing for none."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def seeds_in_words(seeds: Sequence[int], several: str = "") -> str:
    """How many seeds and which; ``several`` says what was made of more than one ("Mean over"); nothing for none."""
    if not seeds:
        return ""
    if len(seeds) == 1:
        return f"One seed ({seeds[0]})."
    return f"{several} n = {len(seeds)} seeds ({seed_list(seeds)}).".lstrip()


def seed_list(seeds: Sequence[int]) -> str:
    """Which seeds: ``0, 1, 2, 7``, or ``0 to 19, 40`` where more than four follow each other."""
    parts: list[str] = []
    for first, last in consecutive(seeds):
        parts += [f"{first} to {last}"] if last - first > 3 else map(str, range(first, last + 1))
    return ", ".join(parts)


def consecutive(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each stretch of ascending numbers without a gap."""
    ends: list[tuple[int, int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1] = (ends[-1][0], number)
        else:
            ends.append((number, number))
    return ends


def trained_in(precisions: Iterable[str]) -> str:
    """That numbers are compared whose trainings computed in several precisions; nothing for one."""
    names = sorted(set(precisions))
    return f"Trained in {' and '.join(names)}, which are not told apart here." if len(names) > 1 else ""


def without_rows(labels: int) -> str:
    """That macro averages have labels in them of which there is no test row; nothing for none."""
    if not labels:
        return ""
    subject = "One label has no test row and counts" if labels == 1 else f"{labels} labels have no test row and count"
    return f"{subject} as 0 in precision, recall and F1."


def left_out(labels: Sequence[str]) -> str:
    """Which rows a comparison over shared seeds leaves out; nothing for none."""
    return f"Left out, having fewer values or other seeds: {', '.join(labels)}." if labels else ""

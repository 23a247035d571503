"""What a search found as Markdown."""

from collections.abc import Iterable, Iterator

from tabulate import tabulate

from benchmark.render import markdown
from benchmark.render.text import ours_text
from benchmark.search import Choice, Tried, candidate_in_words
from benchmark.significance import share_interval
from benchmark.tables import seeds_in_words, trained_in


def search_to_markdown(name: str, about: str, choices: Iterable[Choice]) -> str:
    """A heading, what the search is about, and each of its choices."""
    parts = [f"### Search {markdown.escape(name)}", markdown.escape(about), *(_choice(choice) for choice in choices)]
    return "\n\n".join(parts) + "\n"


def _choice(choice: Choice) -> str:
    """A pipe table with a row a candidate, and a sentence that says which one the validation rows choose."""
    decided_by = choice.then_by or choice.choose_by
    rows = [
        [
            *(markdown.escape(value) for value in one.values),
            *(
                f"**{ours_text(cell)}**" if one.chosen and label == decided_by else ours_text(cell)
                for label, cell in zip(choice.metrics, one.cells, strict=True)
            ),
            _remark(one),
        ]
        for one in choice.tried
    ]
    head = [markdown.escape(text) for text in (*choice.axes, *choice.metrics)]
    alignment = [*["left"] * len(choice.axes), *["right"] * len(choice.metrics), "left"]
    table: str = tabulate(rows, [*head, ""], tablefmt="pipe", disable_numparse=True, colalign=alignment)
    title = markdown.escape(f"{choice.method}, {choice.dataset}")
    seeds = seeds_in_words(choice.seeds, "Means over")
    if not any(one.failed or _has_results(one) for one in choice.tried if not one.declared):
        return f"**{title}.** Not searched yet: no candidate other than the profile's own settings has a result."
    about = " ".join(filter(None, [_verdict(choice), seeds, trained_in(choice.precisions)]))
    return f"**{title}.** {markdown.escape(about)}\n\n{table}"


def _verdict(choice: Choice) -> str:
    chosen = next((one for one in choice.tried if one.chosen), None)
    if chosen is None:
        if all(one.failed for one in choice.tried):
            return "Nothing to choose: the training of every candidate failed."
        done = sum(_has_results(one) for one in choice.tried)
        if done == len(choice.tried):
            return f"Nothing chosen yet: no seed has {choice.choose_by} of every candidate."
        return f"Nothing chosen yet: {done} of {len(choice.tried)} candidates have results; all must, with one seed."
    return " ".join([_outcome(choice, chosen), *_cautions(choice, chosen)])


def _has_results(one: Tried) -> bool:
    return one.accuracy is not None


def _outcome(choice: Choice, chosen: Tried) -> str:
    by = choice.metrics.index(choice.then_by or choice.choose_by)
    others = [one for one in choice.tried if one is not chosen and not one.failed and one.near]
    alike = [one for one in others if one.cells[by].printed == chosen.cells[by].printed]
    same = ", or ".join(candidate_in_words(choice.axes, one.values) for one in alike)
    equal = f" (equal as printed: {same})" if alike else ""
    how = choice.choose_by
    if choice.then_by is not None:
        how = f"{choice.then_by}, of those within one standard error of the best {how} ({choice.within:.2f} points)"
    named = f"Chosen by {how}: {candidate_in_words(choice.axes, chosen.values)}{equal}"
    if chosen.declared:
        return f"{named}, which is what the profile has."
    declared = next((one for one in choice.tried if one.declared), None)
    here = "none of these" if declared is None else candidate_in_words(choice.axes, declared.values)
    return f"{named}. The profile has {here}."


def _cautions(choice: Choice, chosen: Tried) -> Iterator[str]:
    for axis in choice.at_edge:
        yield f"It lies at the edge of the values of {axis}."
    if choice.left_out:
        left_out = ", ".join(str(seed) for seed in choice.left_out)
        yield f"Left out: seed{'s' if len(choice.left_out) > 1 else ''} {left_out}, which not every candidate has."
    if choice.rows and chosen.accuracy is not None:
        low, high = (100 * end for end in share_interval(chosen.accuracy, choice.rows))
        accuracy = f"an accuracy of {100 * chosen.accuracy:.1f} %"
        yield f"On {choice.rows:,} rows {accuracy} has a 95 % interval of {low:.1f} to {high:.1f} % (Wilson's)."


def _remark(one: Tried) -> str:
    words = {"chosen": one.chosen, "the profile's": one.declared, "failed": one.failed}
    return ", ".join(word for word, holds in words.items() if holds)

"""Ranks under several measures as Markdown."""

from tabulate import tabulate

from benchmark.ranking import Ranking
from benchmark.render import markdown
from benchmark.render.text import signed
from benchmark.tables import left_out, seeds_in_words, trained_in


def ranking_to_markdown(ranking: Ranking) -> str:
    """Over which seeds, and a pipe table with a row a method, in the order of ECE, and the agreement of each measure
    with ECE below.
    """
    rows = [
        [markdown.escape(method), *(str(rank) for rank in ranks)]
        for method, ranks in zip(ranking.methods, ranking.ranks, strict=True)
    ]
    rows.append(["*agreement with ECE*", *(signed(value, 2) for value in ranking.agreement)])
    head = [markdown.escape(ranking.dataset), *(markdown.escape(measure) for measure in ranking.measures)]
    alignment = ["left", *["right"] * len(ranking.measures)]
    text: str = tabulate(rows, head, tablefmt="pipe", disable_numparse=True, colalign=alignment)
    at_bound = f"Left out, because no temperature was found: {', '.join(ranking.without_optimum)}."
    notes = [
        seeds_in_words(ranking.seeds, "Means over"),
        left_out(ranking.short),
        trained_in(ranking.precisions),
        at_bound if ranking.without_optimum else "",
    ]
    return f"{markdown.escape(' '.join(filter(None, notes)))}\n\n{text}"

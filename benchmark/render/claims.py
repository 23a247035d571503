"""Verdicts on the paper's claims as Markdown and LaTeX."""

from collections.abc import Sequence

from tabulate import tabulate

from benchmark.claims import OF_TESTED, Judgement, counted, tested_first
from benchmark.render import latex, markdown
from benchmark.render.text import signed


def claims_summary(judgements: Sequence[Judgement]) -> str:
    """How many claims could be tested, with which verdicts, and how many not; in one or two sentences."""
    counts = counted(judgements)
    n_tested = sum(counts.values())
    n_others = len(judgements) - n_tested
    if not n_tested:
        return f"None of the {n_others} claims can be tested: runs are missing."
    verdicts = ", ".join(f"{count} {OF_TESTED.get(verdict, verdict)}" for verdict, count in counts.items() if count)
    tested = f"{n_tested} of {len(judgements)} claims can be tested with the runs at hand: {verdicts}."
    return f"{tested} The other {n_others} need runs that are not at hand." if n_others else tested


def claims_to_markdown(judgements: Sequence[Judgement], note: str) -> str:
    """A heading, the counts, and a pipe table with a row a claim."""
    rows = [[markdown.escape(cell) for cell in row] for row in _rows(tested_first(judgements))]
    table = tabulate(rows, _HEAD, tablefmt="pipe", disable_numparse=True)
    return f"### Claims of the paper\n\n{markdown.escape(_lead(judgements, note))}\n\n{table}\n"


def claims_to_latex(judgements: Sequence[Judgement], note: str) -> str:
    """A ``table*`` that needs the package booktabs."""
    lines = [latex.table_row([latex.escape(cell) for cell in row]) for row in _rows(tested_first(judgements))]
    head = " & ".join(_HEAD) + r" \\"
    return "\n".join(
        [
            r"\begin{table*}[ht]",
            r"\centering\scriptsize",
            rf"\caption{{{latex.escape(_lead(judgements, note))}}}",
            r"\label{tab:claims}",
            r"\begin{tabular}{p{0.36\textwidth}p{0.11\textwidth}rrp{0.24\textwidth}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table*}",
            "",
        ]
    )


_HEAD = ["Claim", "Verdict", "Ours", "Paper", "Decided by"]


def _lead(judgements: Sequence[Judgement], note: str) -> str:
    return (
        f"{claims_summary(judgements)} {note} Ours and Paper: the difference, in points, between the row that the "
        "claim is about and the other one that decides (the one that says most against the claim or, where one row "
        "ahead is enough, most for it), of the unrounded means, with the 95 % interval of a paired bootstrap over test "
        "rows and, from two seeds on, the spread over seeds; not corrected for the number of claims."
    )


def _rows(judgements: Sequence[Judgement]) -> list[list[str]]:
    most = max((len(item.seeds) for item in judgements), default=0)
    return [
        [item.says, item.verdict if item.tested else "not tested", _ours(item, most), signed(item.paper, 2), item.why]
        for item in judgements
    ]


def _ours(item: Judgement, most: int) -> str:
    """The difference and its interval, and the number of seeds where others have more."""
    text = signed(item.ours, 2)
    if item.interval is None:
        return text
    fewer = f" (n={len(item.seeds)})" if len(item.seeds) < most else ""
    return f"{text} [{signed(item.interval[0], 2)}, {signed(item.interval[1], 2)}]{fewer}"

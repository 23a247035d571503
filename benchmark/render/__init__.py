"""Grids and verdicts as Markdown and LaTeX, scores as CSV."""

from benchmark.render.claims import claims_summary, claims_to_latex, claims_to_markdown
from benchmark.render.latex import differences_to_latex, to_document, to_latex
from benchmark.render.markdown import differences_to_markdown, to_markdown
from benchmark.render.ranking import ranking_to_markdown
from benchmark.render.scores_csv import to_csv
from benchmark.render.search import search_to_markdown

__all__ = [
    "claims_summary",
    "claims_to_latex",
    "claims_to_markdown",
    "differences_to_latex",
    "differences_to_markdown",
    "ranking_to_markdown",
    "search_to_markdown",
    "to_csv",
    "to_document",
    "to_latex",
    "to_markdown",
]

"""Grids as Markdown."""

import re

from tabulate import tabulate

from benchmark.render.text import TextCell, caption, lines
from benchmark.tables import Grid

# An underscore within a word is left as it is, for no markup begins or ends there.
_SPECIAL = re.compile(r"([\\`*{}\[\]#|~$^]|(?<![^\W_])_|_(?![^\W_]))")


def to_markdown(grid: Grid, compare: bool = False) -> str:
    """A heading, the caption and a pipe table; headings of column groups stand before each metric."""
    head = ["Model"] + ([""] if compare else [])
    head += [f"{column.label} {metric}" for column in grid.columns for metric in column.metrics]
    body = []
    for group in grid.groups:
        for row in group:
            for line in lines(row, compare):
                first = [escape(line.label)] + ([line.what or ""] if compare else [])
                body.append(first + [_cell(cell) for cell in line.cells])
    alignment = ["left"] * (2 if compare else 1) + ["right"] * (len(head) - (2 if compare else 1))
    table = tabulate(body, [escape(text) for text in head], tablefmt="pipe", colalign=alignment, disable_numparse=True)
    return f"### Table {escape(grid.number)} ({escape(grid.name)})\n\n{escape(caption(grid))}\n\n{table}\n"


def escape(text: str) -> str:
    """Text as itself in Markdown: neither markup nor HTML nor a cell border."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ").replace("\r", " ")


def _cell(cell: TextCell) -> str:
    return (f"**{cell.text}**" if cell.bold else cell.text) + cell.mark

"""Grids as Markdown."""

import re

from tabulate import tabulate

from benchmark.render.sheet import Sheet, sheet, sheet_of_differences
from benchmark.render.text import TextCell
from benchmark.tables import DifferenceTable, Grid

# An underscore within a word is left as it is, for no markup begins or ends there.
_SPECIAL = re.compile(r"([\\`*{}\[\]#|~$^]|(?<![^\W_])_|_(?![^\W_]))")


def to_markdown(grid: Grid, compare: bool = False) -> str:
    """A heading, the caption and a pipe table; headings of column groups stand before each metric."""
    return _marked_up(sheet(grid, compare))


def differences_to_markdown(table: DifferenceTable, compare: bool = False) -> str:
    """The same of a table's differences."""
    return _marked_up(sheet_of_differences(table, compare))


def _marked_up(table: Sheet) -> str:
    head = ["Model"] + ([""] if table.says_what else [])
    n_first = len(head)
    head += [f"{column.label} {metric}" for column in table.columns for metric in column.metrics]
    body = [
        [escape(line.label)] + ([line.what or ""] if table.says_what else []) + [_cell(cell) for cell in line.cells]
        for group in table.groups
        for line in group
    ]
    alignment = ["left"] * n_first + ["right"] * (len(head) - n_first)
    grid = tabulate(body, [escape(text) for text in head], tablefmt="pipe", colalign=alignment, disable_numparse=True)
    return f"### {escape(table.title)}\n\n{escape(table.caption)}\n\n{grid}\n"


def escape(text: str) -> str:
    """Text as itself in Markdown: neither markup nor HTML nor a cell border."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ").replace("\r", " ")


def _cell(cell: TextCell) -> str:
    return (f"**{cell.text}**" if cell.bold else cell.text) + cell.mark

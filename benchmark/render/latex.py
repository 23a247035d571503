"""Grids as LaTeX: booktabs rules, multirow and cmidrule headings, everything escaped."""

import re

from benchmark.render.sheet import Sheet, sheet, sheet_of_differences
from benchmark.render.text import (
    MINUS,
    MISSING,
    NOT_TESTED,
    PLUS_MINUS,
    WITHIN_NOISE,
    WITHOUT_OPTIMUM,
    WORSE,
    TextCell,
)
from benchmark.tables import DifferenceTable, Grid, GridColumn

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    PLUS_MINUS: r"$\pm$",
    MINUS: r"$-$",
    MISSING: "--",
    WITHIN_NOISE: r"$^{\circ}$",
    NOT_TESTED: r"$^{\ddagger}$",
    WITHOUT_OPTIMUM: r"\S{}",
    WORSE: r"$^{\dagger}$",
    "⇒": r"$\Rightarrow$",
    "\n": " ",
    "\r": " ",
}

# Between what TeX would draw as one: -- as a dash, '' as a quotation mark.
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")

_ENGINES = r"""\documentclass[10pt,landscape]{article}
\usepackage{iftex}
\ifPDFTeX
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\else
\usepackage{fontspec}
"""
_PACKAGES = r"""\fi
\usepackage[margin=15mm]{geometry}
\usepackage{booktabs,graphicx,multirow}
\begin{document}
"""
_END = "\\end{document}\n"
# For letters that the engines' own font lacks: the first of these that the machine has, in engines that know its fonts.
_FONTS = ("Noto Serif CJK SC", "Noto Sans CJK SC", "DejaVu Serif", "FreeSerif")
_LAST_LATIN = "\u024f"
_PUNCTUATION = ("\u2010", "\u2027")  # dashes, quotation marks and dots, which they have


def to_latex(grid: Grid, compare: bool = False) -> str:
    """A ``table*`` that needs the packages booktabs, multirow and graphicx; at most as wide as the text."""
    return _marked_up(sheet(grid, compare))


def differences_to_latex(table: DifferenceTable, compare: bool = False) -> str:
    """The same of a table's differences."""
    return _marked_up(sheet_of_differences(table, compare))


def _marked_up(table: Sheet) -> str:
    n_first = 2 if table.says_what else 1
    n_columns = sum(len(column.metrics) for column in table.columns)
    parts = [
        r"\begin{table*}[ht]",
        r"\centering",
        rf"\caption{{{escape(table.caption)}}}",
        rf"\label{{tab:{table.label.replace('_', '-')}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{'l' * n_first}{'r' * n_columns}}}",
        r"\toprule",
        *_head(table.columns, n_first),
    ]
    for group in table.groups:
        parts.append(r"\midrule")
        for line in group:
            first = [escape(line.label)] + ([line.what or ""] if table.says_what else [])
            parts.append(table_row(first + [_cell(cell) for cell in line.cells]))
    parts += [r"\bottomrule", r"\end{tabular}}", r"\end{table*}"]
    return "\n".join(parts) + "\n"


def to_document(tables: list[str]) -> str:
    """A whole document of tables, a page each, ready for a TeX engine: any where all letters are Latin, else XeLaTeX or
    LuaLaTeX.
    """
    content = "\\clearpage\n".join(tables)
    first, last = _PUNCTUATION
    beyond = any(character > _LAST_LATIN and not first <= character <= last for character in content)
    return _ENGINES + (_font() if beyond else "") + _PACKAGES + content + _END


def _font() -> str:
    choice = ""
    for name in reversed(_FONTS):
        choice = rf"\IfFontExistsTF{{{name}}}{{\setmainfont{{{name}}}}}{{{choice}}}"
    return f"{choice}\n"


def table_row(cells: list[str]) -> str:
    """A line of a table, its cells already escaped; one that begins as an option of the line before it is kept from
    being taken for that.
    """
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return start + " & ".join(cells) + r" \\"


def escape(text: str) -> str:
    """Text as itself in LaTeX."""
    parts = _LIGATURE.split(text)
    return "{}".join("".join(_ESCAPES.get(character, character) for character in part) for part in parts)


def _head(columns: tuple[GridColumn, ...], n_first: int) -> list[str]:
    blank = " &" * (n_first - 1)
    groups, rules, position = [], [], n_first + 1
    for column in columns:
        width = len(column.metrics)
        groups.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(column.label)}}}")
        rules.append(rf"\cmidrule(lr){{{position}-{position + width - 1}}}")
        position += width
    metrics = [rf"\multicolumn{{1}}{{c}}{{{escape(metric)}}}" for column in columns for metric in column.metrics]
    return [
        rf"\multirow{{2}}{{*}}{{Model}}{blank} & " + " & ".join(groups) + r" \\",
        " ".join(rules),
        f"{blank} & " + " & ".join(metrics) + r" \\",
    ]


def _cell(cell: TextCell) -> str:
    text = escape(cell.text)
    return (rf"\textbf{{{text}}}" if cell.bold else text) + escape(cell.mark)

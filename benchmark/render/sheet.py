"""A whole table as text, before any markup: shared by Markdown and LaTeX."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmark.render.notes import notes, notes_on_differences
from benchmark.render.text import WITHOUT_OPTIMUM, Line, TextCell, gap_with_interval, lines, signed
from benchmark.tables import DifferenceTable, GapRow, Grid, GridColumn, as_sentence, in_a_row


@dataclass(frozen=True)
class Sheet:
    """A table's lines below its columns; ``title`` and ``label`` tell it from others, before readers and in LaTeX's
    references.
    """

    title: str
    label: str
    caption: str
    columns: tuple[GridColumn, ...]
    groups: tuple[tuple[Line, ...], ...]

    @property
    def says_what(self) -> bool:
        """Whether its lines say what they show, in a column of their own."""
        return any(line.what is not None for group in self.groups for line in group)


def sheet(grid: Grid, compare: bool) -> Sheet:
    """The grid's numbers, with ``compare`` beside the paper's."""
    groups = tuple(tuple(line for row in group for line in lines(row, compare)) for group in grid.groups)
    return Sheet(f"Table {grid.number} ({grid.name})", grid.name, _caption(grid, notes(grid)), grid.columns, groups)


def sheet_of_differences(table: DifferenceTable, compare: bool) -> Sheet:
    """The values of each reference, and how far the other rows are from them; with ``compare`` beside the paper's."""
    grid = table.grid
    keys = dict.fromkeys(row.key.replace(" ", "-") for row in table.references)
    return Sheet(
        title=f"Table {grid.number} ({grid.name}), differences from {in_a_row(table.reference_labels)}",
        label=f"{grid.name}-less-{'-'.join(keys)}",
        caption=_caption(grid, notes_on_differences(table, compare)),
        columns=grid.columns,
        groups=tuple(tuple(line for row in group for line in _gap_lines(row, compare)) for group in table.groups),
    )


def _caption(grid: Grid, sentences: Iterable[str]) -> str:
    """The caption and all that must be known to read the numbers."""
    return " ".join([as_sentence(grid.caption), *([grid.note] if grid.note else []), *sentences])


def _gap_lines(row: GapRow, compare: bool) -> list[Line]:
    """A reference's values, which are best in nothing here, or the differences from them."""
    if not row.gaps:
        values = lines(row.row, compare)[: 2 if compare else 1]
        return [replace(line, cells=tuple(map(_as_it_is, line.cells))) for line in values]
    ours = Line(row.row.label, "ours" if compare else None, tuple(map(gap_with_interval, row.gaps)))
    papers = Line("", "paper", tuple(TextCell(signed(gap.paper, gap.cell.decimals)) for gap in row.gaps))
    return [ours, papers] if compare else [ours]


def _as_it_is(cell: TextCell) -> TextCell:
    return TextCell(cell.text, mark=WITHOUT_OPTIMUM if cell.mark == WITHOUT_OPTIMUM else "")

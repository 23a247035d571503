"""Texts and files of a report: tables, claims, advice, figures and the page of one profile, from a grid builder."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmark.claims import judge_all, size_rule
from benchmark.declarations import Table
from benchmark.errors import UserError
from benchmark.figures import draw_figures
from benchmark.page import to_page
from benchmark.ranking import rank_methods
from benchmark.recommendation import recommend, rule_in_words
from benchmark.registry import row_key
from benchmark.render import (
    claims_to_latex,
    claims_to_markdown,
    differences_to_latex,
    differences_to_markdown,
    markdown,
    ranking_to_markdown,
    search_to_markdown,
    to_document,
    to_latex,
    to_markdown,
)
from benchmark.search import choices
from benchmark.tables import (
    ONE_SEED,
    Grid,
    GridBuilder,
    differences,
    idle_in_words,
    in_a_row,
    seeds_in_words,
    trained_in,
)
from benchmark.whole_files import write_whole

_TOO_FEW = (
    "on no whole data set with clean labels, which alone it is about, do two methods of these tables, the first one "
    "among them, have results with the same seeds{}."
)
_TOO_FEW_FOR_RANKS = (
    "on no whole data set with clean labels, which alone they are about, do two methods of these tables have all "
    "measures with the same seeds{}."
)
_ABOUT_RANKS = (
    "1 is the best; methods whose printed numbers are equal share a rank. Last row: Kendall's tau-b of a measure's "
    "ranks with those of ECE, 1 for the same order, 0 for no relation, -1 for the opposite one."
)


def tables_in(grids: list[Grid], markup: str, compare: bool) -> dict[str, str]:
    """File names and contents; LaTeX has a whole document beside the single tables."""
    ending = ".compare" if compare else ""
    if markup == "markdown":
        return {f"{grid.name}{ending}.md": to_markdown(grid, compare) for grid in grids}
    texts = {f"{grid.name}{ending}.tex": to_latex(grid, compare) for grid in grids}
    return texts | {f"tables{ending}.tex": to_document(list(texts.values()))}


def differences_in(
    tables: Mapping[str, Table], grids: list[Grid], markup: str, compare: bool, method: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """How far the rows of each table are from one of them, the first or that of a method: file names and contents; and
    why there are none of a table, by its name.
    """
    ending = f".differences{f'_from_{method}' if method else ''}{'.compare' if compare else ''}"
    found, without = {}, {}
    for grid, table in zip(grids, tables.values(), strict=True):
        rows = {row_key(row.method, row.encoder) for row in table.every_row if method in (None, row.method)}
        made = differences(grid, rows, per_group=table.best_in == "row_group")
        if not made.gaps:
            without[grid.name] = f"no row of {method} and another one" if method else "no two rows to compare"
        elif all(gap.estimate is None for gap in made.gaps):
            rows_of = in_a_row(made.reference_labels)
            why = _in_brackets(gap.missing for gap in made.gaps)
            without[grid.name] = f"no results of {rows_of} and another row with the same seeds{why}"
        else:
            found[grid.name] = made
    if markup == "markdown":
        return {f"{name}{ending}.md": differences_to_markdown(made, compare) for name, made in found.items()}, without
    texts = {f"{name}{ending}.tex": differences_to_latex(made, compare) for name, made in found.items()}
    return texts | ({f"tables{ending}.tex": to_document(list(texts.values()))} if texts else {}), without


def _built(builder: GridBuilder, tables: Mapping[str, Table]) -> list[Grid]:
    return [builder.build(name, table) for name, table in tables.items()]


def _missing_in(grids: list[Grid]) -> str:
    """In brackets, why cells of tables are missing, if any are."""
    return _in_brackets(cell.why_missing for grid in grids for cell in grid.cells if cell.mean is None)


def _in_brackets(why_missing: Iterable[str | None]) -> str:
    found = "; ".join(filter(None, dict.fromkeys(why_missing)))
    return f" (missing: {found})" if found else ""


def claims_in(builder: GridBuilder, markup: str) -> dict[str, str]:
    """The verdicts, from the whole tables, also those of which the profile has a part."""
    judgements = judge_all(builder)
    rule = f"A size is reproduced where {size_rule(builder.registry.tolerance)}."
    tested = [judgement for judgement in judgements if judgement.tested]
    seeds = tuple(sorted(set().union(*(judgement.seeds for judgement in tested))))
    one_seed = ONE_SEED if any(judgement.fewest_seeds == 1 for judgement in tested) else ""
    mixed = trained_in(precision for judgement in tested for precision in judgement.mixed)
    idle = idle_in_words(place for judgement in tested for place in judgement.idle)
    note = " ".join(filter(None, [builder.profile.note, seeds_in_words(seeds), one_seed, mixed, idle, rule]))
    if markup == "latex":
        return {"claims.tex": claims_to_latex(judgements, note)}
    return {"claims.md": claims_to_markdown(judgements, note)}


def advice_in(builder: GridBuilder, tables: Mapping[str, Table], of: str = "", by: str = "ece") -> dict[str, str]:
    """Which method to use on each data set by a measure, in words: the answer, then what else to know, a point each.
    ``of``: whose advice it is, in the file's name, where it is that of some tables only.
    """
    title = "Recommendation" if by == "ece" else f"Recommendation by {builder.registry.metrics[by].label}"
    name = f"recommendation{of}{'' if by == 'ece' else f'.by_{by}'}.md"
    found = recommend(builder, tables.values(), by)
    if not found:
        why = markdown.escape(_TOO_FEW.format(_missing_in(_built(builder, tables))))
        return {name: f"### {markdown.escape(title)}\n\nNone: {why}\n"}
    paragraphs = []
    for item in found:
        answer, *more = (markdown.escape(sentence) for sentence in item.sentences)
        paragraphs.append(
            "\n".join([f"**{markdown.escape(item.dataset)}.** {answer}", "", *(f"- {one}" for one in more)])
        )
    note = [markdown.escape(builder.profile.note)] if builder.profile.note else []
    last = " ".join([rule_in_words(builder.registry, by), *([ONE_SEED] if len(builder.seeds) == 1 else [])])
    return {name: "\n\n".join([f"### {markdown.escape(title)}", *note, *paragraphs, markdown.escape(last)]) + "\n"}


def ranking_in(builder: GridBuilder, tables: Mapping[str, Table], of: str = "") -> dict[str, str]:
    """The methods' ranks under every measure, a table for each data set; ``of`` as for the advice."""
    name = f"ranking{of}.md"
    found = rank_methods(builder, tables.values())
    if not found:
        why = markdown.escape(_TOO_FEW_FOR_RANKS.format(_missing_in(_built(builder, tables))))
        return {name: f"### Ranks under every measure\n\nNone: {why}\n"}
    note = [markdown.escape(builder.profile.note)] if builder.profile.note else []
    text = ["### Ranks under every measure", *note, _ABOUT_RANKS, *(ranking_to_markdown(one) for one in found)]
    return {name: "\n\n".join(text) + "\n"}


def searches_in(builder: GridBuilder, searches: Mapping[str, Table]) -> dict[str, str]:
    """What searches found, as ``select_searches`` gives them: a file each."""
    finder = builder.finder
    texts = {}
    for name, table in searches.items():
        found = choices(
            builder.registry, finder.profile_name, name, table, finder.finished, finder.inputs, builder.seeds
        )
        about = [table.caption.rstrip(".") + ".", builder.profile.note, "Scores are those of the validation rows."]
        texts[f"search_{name}.md"] = search_to_markdown(name, " ".join(filter(None, about)), found)
    return texts


def page_in(builder: GridBuilder, tables: Mapping[str, Table], grids: list[Grid]) -> dict[str, str]:
    """The page; the paper's claims are on it where any of its tables has numbers of the paper's."""
    claims = judge_all(builder) if any(grid.has_paper for grid in grids) else []
    return {"report.html": to_page(builder, tables, grids, claims)}


def write_all(builder: GridBuilder, tables: Mapping[str, Table], folder: Path) -> tuple[dict[str, str], list[str]]:
    """Tables in Markdown and LaTeX, differences from their first rows, figures, the page and the advice of a profile,
    into a folder; returns the texts and what figures had to leave out, a sentence a reason.

    Raises UserError where a file cannot be written or matplotlib is not installed.
    """
    grids = [builder.build(name, table) for name, table in tables.items()]
    texts = tables_in(grids, "markdown", compare=False) | tables_in(grids, "latex", compare=False)
    texts |= differences_in(tables, grids, "markdown", compare=False, method=None)[0]
    texts |= advice_in(builder, tables) | page_in(builder, tables, grids)
    for name, text in texts.items():
        write(folder / name, text)
    finder = builder.finder
    _, remarks = draw_figures(
        builder.registry, finder.profile_name, finder.finished, finder.inputs, builder.seeds, folder / "figures"
    )
    return texts, remarks


def write(path: Path, text: str) -> Path:
    """Write a text file, whole or not at all."""
    try:
        write_whole(path, text.encode("utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None
    return path

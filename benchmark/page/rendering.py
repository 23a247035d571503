"""The page as text: one file that holds its styles, scripts and data, and asks no network for anything."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.claims import OF_TESTED, Judgement, counted, size_rule
from benchmark.declarations import Table
from benchmark.page.about import DATASET_HEADINGS, ENCODER_HEADINGS, METHOD_HEADINGS, describe
from benchmark.page.details import DIFFERENCE, GAP, PAPER
from benchmark.page.reliability import diagram_data
from benchmark.page.table_view import TableView, view_table
from benchmark.recommendation import recommend, rule_in_words
from benchmark.render import claims_summary
from benchmark.render.text import MARKS, signed
from benchmark.specs import readable_name
from benchmark.tables import ONE_SEED, Grid, GridBuilder

_HERE = Path(__file__).parent


def to_page(
    builder: GridBuilder, tables: Mapping[str, Table], grids: Sequence[Grid], judgements: Sequence[Judgement] = ()
) -> str:
    """One HTML document with the tables of a profile, as ``builder`` made them, and the verdicts on the paper's claims.

    The same results give the same document, byte by byte.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    advice = recommend(builder, tables.values())
    environment.filters["signed"] = signed
    files = {run_id: f"{readable_name(result.run)}.json" for run_id, result in builder.finder.finished.by_run.items()}
    has_paper = any(grid.has_paper for grid in grids)
    views = [view_table(grid, tables[grid.name], files) for grid in grids]
    scripts = [_bokeh(), *(_asset(name) for name in ("page.js", "diagram.js"))]
    return environment.get_template("report.html.j2").render(
        profile=builder.profile,
        profile_name=builder.finder.profile_name,
        about=describe(builder, tables),
        headings={"methods": METHOD_HEADINGS, "datasets": DATASET_HEADINGS, "encoders": ENCODER_HEADINGS},
        advice=advice,
        claims_summary=claims_summary(judgements),
        verdicts=counted(judgements),
        of_tested=OF_TESTED,
        marks=MARKS,
        judgements=judgements,
        tested=[judgement for judgement in judgements if judgement.tested],
        untested=[judgement for judgement in judgements if not judgement.tested],
        most_seeds=max((len(item.seeds) for item in judgements), default=0),
        one_seed=ONE_SEED if 1 in {len(builder.seeds), *(item.fewest_seeds for item in judgements)} else "",
        rule=rule_in_words(builder.registry) if advice else "",
        first_where={PAPER: "paper", DIFFERENCE: "difference", GAP: "gap"},
        size_rule=size_rule(builder.registry.tolerance),
        tables=views,
        shown=_shown(has_paper, views),
        has_paper=has_paper,
        ece_bins=builder.registry.scoring.ece_bins,
        diagrams=diagram_data(builder, tables, builder.seeds),
        style=_asset("page.css"),
        scripts=scripts,
        policy=_policy(scripts),
    )


def _shown(has_paper: bool, views: Sequence[TableView]) -> dict[str, str]:
    """Which numbers the tables can show, each with what the page calls it."""
    papers = {"paper": "Paper", "difference": "Ours − paper"} if has_paper else {}
    gaps = {"gap": "Ours − first row"} if any(view.has_gaps for view in views) else {}
    return {"ours": "Ours", **papers, **gaps}


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _bokeh() -> str:
    """BokehJS with its plotting interface, and none of its widgets."""
    from bokeh.resources import Resources

    bundles = Resources("inline", components=["bokeh", "bokeh-api"]).js_raw
    return "\n".join(bundles[:2])  # what follows them only says to the console what is logged


def _policy(scripts: list[str]) -> str:
    """A content security policy under which only these scripts run and nothing is fetched. BokehJS writes styles."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )

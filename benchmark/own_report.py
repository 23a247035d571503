"""What a comparison on the user's own data ends with: everything that a report can say, of all that has been made."""

from collections.abc import Collection
from pathlib import Path

from rich.console import Console

from benchmark.inputs import Places, find_table_inputs
from benchmark.registry import Registry, select_tables
from benchmark.reporting import write_all
from benchmark.shown_inputs import not_shown
from benchmark.store import KnownResults, ResultFolder
from benchmark.tables import GridBuilder, is_about, of_tables, seeds_at_hand


def report_comparison(
    console: Console,
    registry: Registry,
    profile_name: str,
    asked: Collection[str],
    folder: ResultFolder,
    where: Places,
    tables_dir: Path,
) -> None:
    """Write tables, figures, the page and the recommendation of a profile into its folder below ``tables_dir``, and
    print what is text of it.

    They are whole and of all seeds at hand, whatever part of them a command was for, lest it take out of them what
    others have made. ``asked`` are the names of its tables, some of which may be optional ones.
    """
    results, unusable = folder.read_all()
    for problem in unusable:
        console.print(f"{problem.path}: not counted, because {problem.reason}; delete it, and the run is made again")
    ours = of_tables(registry, profile_name, results)
    if not seeds_at_hand(ours):
        console.print("\nno tables and no recommendation: no run has succeeded")
        return
    tables = select_tables(registry, profile_name, ["all", *asked])
    inputs = find_table_inputs(registry, profile_name, tables.values(), where).inputs
    seeds = seeds_at_hand(result for result in ours if is_about(result.run, inputs))
    if not seeds:
        console.print(
            "\nno tables and no recommendation: the results at hand are of other data, or another encoder, than is "
            "here; what was written of them before stays"
        )
        return
    for sentence in not_shown(ours, inputs):
        console.print(f"\n{sentence}")
    builder = GridBuilder(registry, profile_name, KnownResults.of(results), inputs, seeds)
    target = tables_dir / profile_name
    texts, remarks = write_all(builder, tables, target)
    for name, text in texts.items():
        if name.endswith(".md"):
            console.print(f"\n{text.strip()}")
    for remark in remarks:
        console.print(f"\n{remark}")
    console.print(f"\nTables, figures and the page (open {target / 'report.html'} in a browser): {target}")

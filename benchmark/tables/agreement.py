"""Which contents and seeds the results at hand are about."""

from collections.abc import Iterable, Mapping

from benchmark.errors import UserError
from benchmark.registry import Inputs, Registry, is_offered, run_if_whole, table_subjects
from benchmark.specs import RunSpec, recipe
from benchmark.store import Outline, Result


def agreed_inputs(results: Iterable[Result | Outline], at_hand: Inputs, pinned: Mapping[str, str | None]) -> Inputs:
    """Which content of each data set and encoder to show, where results of several are at hand. Runs that failed have
    no number to show, and count only where none succeeded.

    One content only: that one. Several: the one on this machine, else the data set's declared fingerprint. Raises
    UserError where neither tells, because rows of different data may not stand in one table.
    """
    datasets: dict[str, set[str | None]] = {}
    encoders: dict[str, set[str | None]] = {}
    results = list(results)
    succeeded = [result.run for result in results if result.status == "success"]
    for run in succeeded or [result.run for result in results]:
        datasets.setdefault(run.data.dataset, set()).add(run.data.fingerprint)
        encoders.setdefault(run.encoder.encoder, set()).add(run.encoder.fingerprint)
    return Inputs(
        {
            name: _agreed("data set", name, known, at_hand.datasets.get(name), pinned.get(name))
            for name, known in datasets.items()
        },
        {name: _agreed("encoder", name, known, at_hand.encoders.get(name), None) for name, known in encoders.items()},
    )


def _agreed(what: str, name: str, known: set[str | None], at_hand: str | None, pinned: str | None) -> str | None:
    if len(known) == 1:
        return next(iter(known))
    for choice in (at_hand, pinned):
        if choice in known:
            return choice
    itself, remedy = ("is not", "name its folder") if at_hand is None else ("holds another one", "run benchmark.run")
    raise UserError(
        f'Results from {len(known)} different contents of {what} "{name}" are at hand, and the {what} itself {itself}, '
        f"so it cannot be told which to show; {remedy}, or move the other results away."
    )


def of_tables(registry: Registry, profile_name: str, results: Iterable[Result]) -> list[Result]:
    """Those of the results that a table of the registry asks for in a profile, whatever their seed and content: not a
    search's candidates, nor what was trained before the settings were others. A method whose settings do not go
    together has none, and keeps nobody from the others'.
    """
    profile = registry.profile(profile_name)
    subjects = {subject for table in registry.tables.values() for subject in table_subjects(registry, table)}
    runs = [run_if_whole(registry, profile_name, one, 0, Inputs()) for one in subjects if is_offered(profile, one)]
    asked = {_seedless(run) for run in runs if run is not None}
    return [result for result in results if _seedless(result.run) in asked]


def is_about(run: RunSpec, inputs: Inputs) -> bool:
    """Whether a run saw the very content that is shown; of what is not known, any will do."""
    dataset, encoder = inputs.datasets.get(run.data.dataset), inputs.encoders.get(run.encoder.encoder)
    return dataset in (None, run.data.fingerprint) and encoder in (None, run.encoder.fingerprint)


def _seedless(run: RunSpec) -> RunSpec:
    """What a run does, without its seed and the content of its inputs."""
    return recipe(run).model_copy(update={"seed": 0})


def seeds_at_hand(results: Iterable[Result]) -> list[int]:
    """All seeds that any successful result has."""
    return sorted({result.run.seed for result in results if result.status == "success"})

"""Which contents and seeds the results at hand are about."""

from collections.abc import Iterable, Mapping

from benchmark.errors import UserError
from benchmark.registry import Inputs
from benchmark.store import Result


def agreed_inputs(results: Iterable[Result], at_hand: Inputs, pinned: Mapping[str, str | None]) -> Inputs:
    """Which content of each data set and encoder to show, where results of several are at hand.

    One content only: that one. Several: the one on this machine, else the data set's declared fingerprint. Raises
    UserError where neither tells, because rows of different data may not stand in one table.
    """
    datasets: dict[str, set[str | None]] = {}
    encoders: dict[str, set[str | None]] = {}
    for result in results:
        datasets.setdefault(result.run.data.dataset, set()).add(result.run.data.fingerprint)
        encoders.setdefault(result.run.encoder.encoder, set()).add(result.run.encoder.fingerprint)
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
    raise UserError(
        f'Results from {len(known)} different contents of {what} "{name}" are at hand, and the {what} itself is not, '
        "so it cannot be told which to show; name its folder, or move the other results away."
    )


def seeds_at_hand(results: Iterable[Result]) -> list[int]:
    """All seeds that any result at hand has."""
    return sorted({result.run.seed for result in results})

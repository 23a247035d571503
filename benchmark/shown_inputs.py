"""Which content of each data set and encoder results are shown of, where those at hand are of several."""

import contextlib
from collections import Counter
from collections.abc import Iterable

from benchmark.errors import UserError
from benchmark.inputs import Places, find_inputs
from benchmark.registry import Inputs, Registry
from benchmark.store import Outline, Result
from benchmark.tables import agreed_inputs, is_about


def shown_inputs(registry: Registry, results: Iterable[Result | Outline], where: Places) -> Inputs:
    """The content to show; only where results disagree are the inputs on this machine looked at, for that takes time.
    Raises UserError where neither those nor the registry tell.
    """
    pinned = {name: dataset.fingerprint for name, dataset in registry.datasets.items()}
    known = [
        result
        for result in results
        if result.run.data.dataset in registry.datasets and result.run.encoder.encoder in registry.encoders
    ]
    try:
        return agreed_inputs(known, Inputs(), {})
    except UserError:
        datasets: dict[str, str | None] = {}
        encoders: dict[str, str | None] = {}
        for name in {result.run.data.dataset for result in known}:
            with contextlib.suppress(UserError):  # a file that cannot be read is not at hand
                datasets |= find_inputs(registry, [name], [], where).inputs.datasets
        for name in {result.run.encoder.encoder for result in known}:
            with contextlib.suppress(UserError):
                encoders |= find_inputs(registry, [], [name], where).inputs.encoders
        return agreed_inputs(known, Inputs(datasets, encoders), pinned)


def not_shown(results: Iterable[Result], inputs: Inputs) -> list[str]:
    """A sentence for each data set of which there are results that have no place beside those that are shown: of other
    content of it, or of the encoder.
    """
    others = Counter(
        result.run.data.dataset for result in results if result.status == "success" and not is_about(result.run, inputs)
    )
    return [
        f'not shown: {count} result{"s" if count > 1 else ""} of data set "{name}", made of other content of it, or of '
        "the encoder, than the results shown"
        for name, count in others.items()
    ]

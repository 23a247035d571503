"""The identity of a description: a hash of its canonical form, and what follows from it: names, seeds."""

import hashlib
import json
from functools import lru_cache
from typing import TypeVar

from benchmark.specs.declared import Declared, OwnFunction
from benchmark.specs.training import LossTerm, OwnTerm, RunSpec

Part = TypeVar("Part", bound=Declared)

_LONGEST_NAME = 180  # file systems take 255 bytes, and logits, locks and parts being written have endings


def canonical(spec: Declared) -> str:
    """The one JSON text of a description: sorted keys, no blanks, shortest floats, ASCII."""
    return _canonical(spec.model_dump(mode="json"))


def _canonical(content: object) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def identity(spec: Declared) -> str:
    """The SHA-256 of a description's canonical form, in hexadecimal."""
    return _identity_of(spec.__pydantic_serializer__.to_json(spec))


@lru_cache(maxsize=2**16)
def _identity_of(text: bytes) -> str:
    """Of any JSON text of a description; planning and reading ask for the same ones many times."""
    return hashlib.sha256(_canonical(json.loads(text)).encode()).hexdigest()


def recipe_identity(run: RunSpec) -> str:
    """The identity of a run with its inputs' contents left open: what to do, whatever exactly the rows and weights
    are.
    """
    return identity(recipe(run))


def recipe(run: RunSpec) -> RunSpec:
    """A run with its inputs' contents left open."""
    return run.model_copy(
        update={
            "data": run.data.model_copy(update={"fingerprint": None}),
            "encoder": run.encoder.model_copy(update={"fingerprint": None}),
        }
    )


def own_functions(run: RunSpec) -> list[OwnFunction]:
    """What of a run the user wrote."""
    return [part for part in (run.head, *run.loss) if isinstance(part, OwnFunction)]


def without_sources(run: RunSpec) -> RunSpec:
    """A run's recipe with the sources of the user's own functions left open, too."""

    def opened(part: Part) -> Part:
        return part.model_copy(update={"sha256": None}) if isinstance(part, OwnFunction) else part

    return recipe(run).model_copy(update={"head": opened(run.head), "loss": tuple(map(opened, run.loss))})


def readable_name(run: RunSpec, run_id: str | None = None) -> str:
    """A file name, without ending, that a person can read and that no other run has: it ends in the identity, given by
    who knows it already. What stands before that is cut where it is long.
    """
    terms = "+".join(term_name(term) for term in run.loss)
    noise = f"noise{run.data.corruption:g}" if run.data.corruption else "clean"
    parts = [run.data.dataset, noise, run.encoder.encoder, run.head.kind, terms, f"seed{run.seed}"]
    return f"{'.'.join(parts)[:_LONGEST_NAME]}.{(run_id or identity(run))[:12]}"


def sub_seed(seed: int, *purpose: str) -> int:
    """A seed of its own for each purpose ("head", "order", ...), in [0, 2**63).

    It depends on the run's seed and the purpose only, so two methods of the same seed see the same batches and the same
    changed labels, and one purpose drawing more numbers moves no other.
    """
    text = json.dumps([seed, *purpose], separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def term_name(term: LossTerm) -> str:
    """What a loss term is called: its kind, or the user's function."""
    return term.function_name if isinstance(term, OwnTerm) else term.term

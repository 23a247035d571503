"""The candidates of a search: the registry as it would be with other settings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from pydantic import ValidationError

from benchmark.declarations import Search, TrainingRule, Value
from benchmark.errors import UserError
from benchmark.registry.contents import Registry
from benchmark.specs import OwnFunction

_WHAT_IT_IS = {"kind", "term", "function", "sha256"}  # another one would be another entry
MOST_CANDIDATES = 1000


@dataclass(frozen=True)
class Candidate:
    """One value for each axis of a search, and the registry with them in place of what is declared."""

    values: tuple[Value, ...]
    registry: Registry


def candidates(registry: Registry, profile_name: str, search: Search) -> list[Candidate]:
    """Every combination of the axes' values, the last axis varying fastest.

    Raises UserError, in words, for a value that its setting does not take, alone or beside the others.
    """
    found = []
    for values in product(*(axis.to for axis in search.axes)):
        settings = {name: value for axis, value in zip(search.axes, values, strict=True) for name in axis.set}
        found.append(Candidate(values, with_settings(registry, profile_name, settings)))
    return found


def with_settings(registry: Registry, profile_name: str, settings: Mapping[str, Value]) -> Registry:
    """The registry with some settings changed, each by its dotted name: ``training.learning_rate`` (of the profile, for
    all its runs), ``losses.rau.start``, ``heads.linear.dropout``.

    Raises UserError, in words, for a value that its setting does not take. Names must be known.
    """
    changes: dict[str, dict[str, Value]] = {}
    for name, value in settings.items():
        owner, setting = owner_and_setting(name)
        changes.setdefault(owner, {})[setting] = value
    for owner, values in changes.items():
        registry = _changed(registry, profile_name, owner, values)
    return registry


def known_settings(registry: Registry, owner: str) -> list[str]:
    """What can be varied of ``training``, or of a loss or head by its dotted name; of a function of the user's own,
    each of its settings.
    """
    if owner == "training":
        return sorted(TrainingRule.model_fields.keys() - TrainingRule.conditions)
    kind, _, name = owner.partition(".")
    entry = getattr(registry.methods, kind)[name]
    known = type(entry).model_fields.keys() - _WHAT_IT_IS
    if isinstance(entry, OwnFunction):
        known = known - {"settings"} | {f"settings.{setting}" for setting in entry.settings}
    return sorted(known)


def owner_and_setting(name: str) -> tuple[str, str]:
    """The owner and the setting in a dotted name: ``losses.rau`` and ``start``, ``losses.mine`` and
    ``settings.above``.
    """
    parts = name.split(".")
    owner = 1 if parts[0] == "training" else 2
    return ".".join(parts[:owner]), ".".join(parts[owner:])


def _changed(registry: Registry, profile_name: str, owner: str, values: dict[str, Value]) -> Registry:
    if owner == "training":
        rule = _valid(owner, TrainingRule, values)
        profile = registry.profile(profile_name)
        changed = profile.model_copy(update={"training": (*profile.training, rule)})
        return replace(registry, profiles=registry.profiles | {profile_name: changed})
    kind, _, name = owner.partition(".")
    entries = getattr(registry.methods, kind)
    declared = entries[name].model_dump()
    given = {setting.partition(".")[2]: value for setting, value in values.items() if "." in setting}
    if given:
        declared["settings"] = declared["settings"] | given
    plain = {setting: value for setting, value in values.items() if "." not in setting}
    entry = _valid(owner, type(entries[name]), declared | plain)
    return replace(registry, methods=registry.methods.model_copy(update={kind: entries | {name: entry}}))


def _valid(owner: str, model: type[Any], values: Mapping[str, Any]) -> Any:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        mistake = error.errors()[0]
        at = ".".join([owner, *(str(part) for part in mistake["loc"][:1])])
        given = f", not {mistake['input']!r}" if mistake["loc"] else ""
        raise UserError(f"{at}: {mistake['msg'][0].lower()}{mistake['msg'][1:]}{given}") from None

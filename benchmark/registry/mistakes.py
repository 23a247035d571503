"""What validation finds wrong in a registry file, in the words of whoever wrote it: one mistake, one sentence."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from benchmark.errors import nearest
from benchmark.registry.yaml_files import Key, Lines

Path = tuple[Key, ...]

# What validation says in words of Python, in those of YAML.
_EXPECTED = {"tuple_type": "a list", "list_type": "a list", "dict_type": "a mapping", "model_type": "a mapping"}
# ... and those that say that a value is of another kind than a form of it.
_OTHER_KIND = re.compile(r"literal_error|\w+_(type|parsing)")


def explained(errors: list[Any], lines: Lines) -> list[tuple[Path, str]]:
    """Where each mistake is (with the missing key, where one is) and what is wrong, from pydantic's errors and the line
    of each key in the file.

    A value that may have one of several forms is refused by each. Of those, the ones count that it comes nearest to;
    of equally near ones, one sentence says all that would do. An error that only follows from another is left out.
    """
    found: dict[Path, list[Any]] = defaultdict(list)
    for item in _nearest_forms(_causes(errors), lines):
        found[_place(item, lines)].append(item)
    return [(at, _message(items)) for at, items in found.items()]


def written(at: Path, lines: Lines) -> Path:
    """The parts of a validation path that the author wrote; the tags of unions are not among them."""
    found: Path = ()
    for part in at:
        if (*found, part) in lines:
            found = (*found, part)
    return found


def _place(item: Any, lines: Lines) -> Path:
    at = written(item["loc"], lines)
    if item["type"] == "unknown_key":
        return (*at, item["ctx"]["key"])
    if item["type"] == "missing":
        return (*at, item["loc"][-1])
    if item["type"] == "union_tag_invalid":
        return (*at, _unquoted(item["ctx"]["discriminator"]))
    return at


def _message(items: list[Any]) -> str:
    if items[0]["type"] == "unknown_key":
        known = {name for item in items for name in item["ctx"]["hint"].known}
        return f'unknown key "{items[0]["ctx"]["key"]}"; {nearest(items[0]["ctx"]["key"], known)}'
    expected = list(dict.fromkeys(_expectation(item) for item in items))
    given = items[0]["input"]
    ending = "" if isinstance(given, dict | list) else f", not {given!r}"
    if len(expected) > 1:
        return f"input should be {', '.join(expected[:-1])} or {expected[-1]}{ending}"
    return _alone(items[0], ending)


def _alone(item: Any, ending: str) -> str:
    context = item.get("ctx", {})
    match item["type"]:
        case "union_tag_not_found":
            return f"the key {_unquoted(context['discriminator'])} is missing"
        case "union_tag_invalid":
            known = re.findall(r"'([^']*)'", context["expected_tags"])
            return f'"{context["tag"]}" is unknown; {nearest(context["tag"], known)}'
        case "missing":
            last = item["loc"][-1]
            return f"item {last + 1} of the list is missing" if isinstance(last, int) else f"the key {last} is missing"
        case "too_short":
            return f"at least {context['min_length']} is needed"
        case "too_long":
            return f"at most {context['max_length']} can be given, not {context['actual_length']}"
        case "string_type" if not isinstance(item["input"], dict | list):
            return f"a text is expected, but YAML reads this as {item['input']}; put quotes around it"
        case kind if kind in _EXPECTED:
            return f"{_EXPECTED[kind]} is expected{ending}"
    return f"{item['msg'][0].lower()}{item['msg'][1:]}{ending}"


def _unquoted(name: str) -> str:
    return name.strip("'")


def _expectation(item: Any) -> str:
    return _EXPECTED.get(item["type"]) or item["msg"].removeprefix("Input should be ")


def _causes(errors: list[Any]) -> list[Any]:
    """Errors without those that only say that a list is too short because what is wrong was left out of it."""
    places = [error["loc"] for error in errors]

    def follows(at: Path) -> bool:
        return any(len(place) > len(at) and place[: len(at)] == at for place in places)

    return [error for error in errors if error["type"] != "too_short" or not follows(error["loc"])]


def _nearest_forms(errors: list[Any], lines: Lines) -> list[Any]:
    """Errors without those of forms to which another form of the same value is nearer."""
    nearness: dict[Path, dict[Key, int]] = defaultdict(dict)
    for item in errors:
        for value, form in _forms(item, lines):
            forms = nearness[value]
            forms[form] = min(_nearness(item, value, lines), forms.get(form, 2))
    return [
        item
        for item in errors
        if all(nearness[value][form] == max(nearness[value].values()) for value, form in _forms(item, lines))
    ]


def _forms(item: Any, lines: Lines) -> Iterator[tuple[Path, Key]]:
    """Each value on an error's path that may have several forms, and the form in which it was tried."""
    found: Path = ()
    for part in item["loc"][: -1 if item["type"] == "missing" else None]:
        if (*found, part) in lines:
            found = (*found, part)
        else:
            yield found, part


def _nearness(item: Any, value: Path, lines: Lines) -> int:
    """0: of another kind, such as a text for a number; 1: a mapping with a key that this form has not; 2: nearer."""
    if item["type"] == "unknown_key":
        return 1
    return 0 if written(item["loc"], lines) == value and _OTHER_KIND.fullmatch(item["type"]) else 2

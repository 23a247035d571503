"""YAML files to plain values, each value's line remembered, and nothing silently taken for something else."""

import re
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from benchmark.errors import UserError, first_line

# Written in C where PyYAML was built so, as it mostly is: thirteen times as fast, which every command waits for.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Key = str | int
Lines = dict[tuple[Key, ...], int]

# PyYAML follows YAML 1.1, where a 0 in front makes an octal number, and colons one of base 60.
_NUMBER_READ_AS_ANOTHER = re.compile(r"[-+]?(0[0-9_]+|[0-9][0-9_]*(:[0-9]+)+(\.[0-9_]*)?)")
# ... and an exponent without a decimal point makes a text.
_NUMBER_READ_AS_TEXT = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+")

# It ends a line, which a text without quotes would go on after.
_NEXT_LINE = "\x85"


def read_yaml(path: Path) -> tuple[dict[str, Any], Lines]:
    """The mapping that a YAML file holds, and the line of each key or item by its path.

    Raises UserError, naming file and line, for a file that cannot be read, is not YAML, is not a mapping, says a key
    twice, without a value or so that YAML does not read it as a name (``no``, ``2020``), or writes a number so that
    YAML reads it as text (``2e-5``) or as another one (``010``, ``1:30``).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path} is not there; it belongs to the experiments folder.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}: this is not YAML: {error.problem}.") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: this is not YAML: {error}.") from None
    except RecursionError:
        raise UserError(f"{path}: this is not YAML that can be read: it is nested too deeply.") from None
    lines: Lines = {}
    if not isinstance(node, yaml.MappingNode):
        raise UserError(f"{path}: a mapping of names to settings is expected at the top.")
    try:
        return _value(path, node, (), lines), lines
    except RecursionError:
        raise UserError(
            f"{path}: an alias (*) leads back into what it stands in, or it is nested too deeply."
        ) from None


def to_yaml(values: dict[str, Any]) -> str:
    """Plain values as YAML that ``read_yaml`` reads as the very same: a text that looks like a number has quotes."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


class _Dumper(yaml.SafeDumper):
    """PyYAML's own, but for texts that ``read_yaml`` would not take without quotes."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "'" if _NUMBER_READ_AS_TEXT.fullmatch(text) else '"' if _NEXT_LINE in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _value(path: Path, node: yaml.Node, at: tuple[Key, ...], lines: Lines) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(at, line)
    if isinstance(node, yaml.MappingNode):
        return _mapping(path, node, at, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_value(path, item, (*at, index), lines) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode), "a node that is no collection is a scalar"
    if node.tag == "tag:yaml.org,2002:str" and not node.style and _NUMBER_READ_AS_TEXT.fullmatch(node.value):
        mantissa, _, exponent = node.value.lower().partition("e")
        point = mantissa if "." in mantissa else f"{mantissa}.0"
        sign = exponent if exponent[0] in "+-" else f"+{exponent}"
        raise UserError(
            f"{path}:{line}: {dotted(at)}: YAML reads {node.value} as text, not as a number; write {point}e{sign}."
        )
    value = _plain(path, node, at)
    if isinstance(value, int | float) and not node.style and _NUMBER_READ_AS_ANOTHER.fullmatch(node.value):
        raise UserError(
            f"{path}:{line}: {dotted(at)}: YAML reads {node.value} as the number {value}; write it in decimals, or put "
            "quotes around a text."
        )
    return value


def _plain(path: Path, node: yaml.ScalarNode, at: tuple[Key, ...]) -> Any:
    try:
        return SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # a date that is none, a number of 5,000 digits
        line = node.start_mark.line + 1
        quoted = node.value if len(node.value) <= 40 else f"{node.value[:40]}..."
        raise UserError(
            f'{path}:{line}: {dotted(at)}: YAML cannot read "{quoted}" ({first_line(error)}); put quotes around a text.'
        ) from None


def _mapping(path: Path, node: yaml.MappingNode, at: tuple[Key, ...], lines: Lines) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise UserError(f"{path}:{line}: {dotted(at)}: a key must be a plain name.")
        if key_node.tag == "tag:yaml.org,2002:merge":
            raise UserError(f"{path}:{line}: {dotted(at)}: settings cannot be merged in by <<; write them out.")
        key = _plain(path, key_node, at)
        if not isinstance(key, str):
            raise UserError(
                f"{path}:{line}: {dotted(at)}: YAML reads the key {key_node.value} as {key}, not as a name; put quotes "
                "around it."
            )
        if key in result:
            raise UserError(f"{path}:{line}: {dotted((*at, key))} is said twice; keep one of the two.")
        if isinstance(value_node, yaml.ScalarNode) and not value_node.value and not value_node.style:
            raise UserError(f"{path}:{line}: {dotted((*at, key))} has nothing after it; give a value, or leave it out.")
        lines[(*at, key)] = line
        result[key] = _value(path, value_node, (*at, key), lines)
    return result


def dotted(at: tuple[Key, ...]) -> str:
    """A path as a person reads it: ``methods.hs_rau.loss.1``."""
    return ".".join(str(part) for part in at) or "(top)"

"""The shape of searches in ``experiments/``."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from benchmark.declarations.texts import Text
from benchmark.specs import Declared, Items, Name, written_as

_SETTING = re.compile(r"(training|(losses|heads)\.[a-z][a-z0-9_]*(\.settings)?)\.\w+")
_PLAIN = (bool, int, float, str)

Plain = bool | int | float | str


def _value(value: object) -> object:
    parts: list[object] = [value]
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)
    if not parts or not all(isinstance(part, _PLAIN) for part in parts):
        raise PydanticCustomError("value", "a number, a word, or a list or mapping of them is expected")
    return tuple(parts) if isinstance(value, list) else value


def _refuse_twice(values: Sequence[object], where: str = "") -> None:
    for place, value in enumerate(values):
        if value in values[:place]:
            sentence = "{where}{value} is said twice; keep one of the two"
            raise PydanticCustomError("twice", sentence, {"where": where, "value": str(value)})


def _setting(name: str) -> str:
    if not _SETTING.fullmatch(name):
        raise PydanticCustomError("setting", "write training.SETTING, losses.NAME.SETTING or heads.NAME.SETTING")
    return name


# What a setting may be set to; a rule is a mapping.
Value = Annotated[Plain | tuple[Plain, ...] | dict[str, Plain], PlainValidator(_value)]
Setting = Annotated[str, AfterValidator(_setting)]


class Axis(Declared):
    """Settings that are varied together: all of ``set`` take the same one of the values ``to``."""

    label: Annotated[Text, written_as(r"[^\n]+", "a label of one line")]
    set: Items[Setting] = Field(min_length=1)
    to: Items[Value] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_value_once(self) -> "Axis":
        _refuse_twice(self.to, "to: ")
        return self


class Search(Declared):
    """Settings that are chosen on the validation rows, never on the test rows: every combination of the axes' values is
    a candidate, each method and data set has its own choice, the best by ``choose_by``. With ``then_by``, of those
    within one standard error of that one the best by this (the one-standard-error rule of Breiman et al., 1984).
    ``datasets`` and ``profiles`` that it is meant for: all where none are named.
    """

    description: Text
    methods: Items[Name] = Field(min_length=1)
    axes: Items[Axis] = Field(min_length=1)
    choose_by: Name
    then_by: Name | None = Field(default=None)
    metrics: Items[Name] = Field(min_length=1)
    datasets: Items[Name] = Field(default=())
    profiles: Items[Name] = Field(default=())

    @model_validator(mode="after")
    def _each_name_once(self) -> "Search":
        labels = tuple(axis.label for axis in self.axes)
        for names in (self.methods, self.datasets, self.metrics, self.profiles, labels):
            _refuse_twice(names)
        return self

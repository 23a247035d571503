"""The shape of searches in ``experiments/``."""

from typing import Annotated

from pydantic import Field

from benchmark.declarations.texts import Text
from benchmark.specs import Declared, Items, Name

# What a setting may be set to: a number, a word, or a rule of several numbers and words.
Value = bool | int | float | str | dict[str, bool | int | float | str]
# training.<setting>, or losses.<name>.<setting>, heads.<name>.<setting>
Setting = Annotated[str, Field(pattern=r"^(training|(losses|heads)\.[a-z][a-z0-9_]*)\.[a-z_]+$")]


class Axis(Declared):
    """Settings that are varied together: all of ``set`` take the same one of the values ``to``."""

    label: Text
    set: Items[Setting] = Field(min_length=1)
    to: Items[Value] = Field(min_length=1)


class Search(Declared):
    """Settings that are chosen on the validation rows, never on the test rows: every combination of the axes' values is
    a candidate, each method and data set has its own choice, the best by ``choose_by``. ``datasets`` and
    ``profiles`` that it is meant for: all where none are named.
    """

    description: Text
    methods: Items[Name] = Field(min_length=1)
    axes: Items[Axis] = Field(min_length=1)
    choose_by: Name
    metrics: Items[Name] = Field(min_length=1)
    datasets: Items[Name] = Field(default=())
    profiles: Items[Name] = Field(default=())

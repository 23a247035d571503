"""The shape of the entries in ``experiments/figures.yaml``: what each kind of figure shows."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from benchmark.declarations.texts import Text
from benchmark.specs import Declared, Items, Name

NoiseLevel = Annotated[float, Field(gt=0, le=1)]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise PydanticCustomError("twice", 'the method "{name}" is said twice; keep one of the two', {"name": name})
    return names


def _rising(levels: tuple[float, ...]) -> tuple[float, ...]:
    if list(levels) != sorted(set(levels)):
        raise PydanticCustomError("rising", "noise levels must rise, each said once")
    return levels


Methods = Annotated[Items[Name], AfterValidator(_each_once)]
Levels = Annotated[Items[NoiseLevel], AfterValidator(_rising)]


class DatasetFigure(Declared):
    """A figure about one data set, by its role; made once for each data set of the profile where none is named."""

    caption: Text
    dataset: Name | None = None
    encoder: Name = "base"


class ConfidenceFigure(DatasetFigure):
    """How sure one method is (a histogram of right and wrong rows), and how right it is where it is that sure."""

    kind: Literal["confidence"]
    method: Name


class ReliabilityFigure(DatasetFigure):
    """Reliability diagrams, a panel a method."""

    kind: Literal["reliability"]
    methods: Methods = Field(min_length=1, max_length=6)


class NoiseFigure(DatasetFigure):
    """F1 and ECE against the share of noisy labels, a line a method; 0 comes from the clean runs."""

    kind: Literal["noise"]
    methods: Methods = Field(min_length=1, max_length=8)
    levels: Levels = Field(min_length=1)


class PerLabelFigure(DatasetFigure):
    """Class-wise ECE of each label, the labels in the order of their training rows."""

    kind: Literal["per_label"]
    methods: Methods = Field(min_length=1, max_length=6)


class TrainingFigure(DatasetFigure):
    """Loss terms, training accuracy and entropy by epoch, a column a method."""

    kind: Literal["training"]
    methods: Methods = Field(min_length=1, max_length=4)


class F1AgainstEceFigure(Declared):
    """F1 against ECE of a table's rows, a panel a data set, the paper's numbers beside ours."""

    kind: Literal["f1_against_ece"]
    caption: Text
    table: Name


AnyFigure = ConfidenceFigure | ReliabilityFigure | NoiseFigure | PerLabelFigure | TrainingFigure | F1AgainstEceFigure
Figure = Annotated[AnyFigure, Field(discriminator="kind")]

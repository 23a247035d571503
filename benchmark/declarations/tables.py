"""The shape of tables and profiles in ``experiments/``."""

from itertools import chain
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from benchmark.declarations.texts import Text
from benchmark.specs import Count, Decay, Declared, Items, Name, NotNegative, Pair, Positive, Seed, Share


class TableRow(Declared):
    """One row: a method, on the encoder of a role (the base encoder unless said)."""

    method: Name
    encoder: Name = "base"
    label: Text | None = None


class TableColumn(Declared):
    """A group of columns: what is looked at, and by which metrics; or the mean over other groups, named by label."""

    label: Text
    metrics: Items[Name] = Field(min_length=1)
    dataset: Name | None = None
    corruption: Share = 0.0
    rarest: Count | None = None  # the label of that rank by training count, 1 the rarest
    mean_over: Items[Text] = Field(default=())
    decimals: dict[Name, Annotated[int, Field(ge=0, le=6)]] = Field(default={})

    @model_validator(mode="after")
    def _one_kind(self) -> "TableColumn":
        if (self.dataset is None) == (not self.mean_over):
            raise PydanticCustomError("column", 'say either "dataset" or "mean_over" (labels of other columns)')
        if self.mean_over and (self.corruption or self.rarest):
            raise PydanticCustomError(
                "column", "mean_over: corruption and rarest are those of the columns; leave them out"
            )
        for name in ("metrics", "mean_over"):
            if len(set(getattr(self, name))) < len(getattr(self, name)):
                raise PydanticCustomError("column", "{name}: one is named twice; name it once", {"name": name})
        return self


class Table(Declared):
    """Rows in groups (a rule between them), columns in groups. ``best_in``: where the best value is looked for.
    ``optional``: "all" leaves it out; it is made where it is asked for by name.
    """

    number: Text  # in the paper
    caption: Text
    rows: Items[Annotated[Items[TableRow], Field(min_length=1)]] = Field(min_length=1)
    columns: Items[TableColumn] = Field(min_length=1)
    best_in: Literal["column", "row_group"] = "column"
    optional: bool = False

    @property
    def every_row(self) -> tuple[TableRow, ...]:
        """The rows, whatever group they are in."""
        return tuple(row for group in self.rows for row in group)


class TrainingRule(Declared):
    """Settings for the runs that it names; what it does not name it holds for; a later rule has the last word."""

    conditions: ClassVar[frozenset[str]] = frozenset({"dataset", "encoder", "method", "corruption"})

    dataset: Name | None = None
    encoder: Name | None = None
    method: Name | None = None
    corruption: Share | None = None
    max_length: Annotated[int, Field(ge=3)] | None = None
    learning_rate: Positive | None = None
    weight_decay: NotNegative | None = None
    betas: Pair[Decay] | None = Field(default=None)
    epsilon: Positive | None = None
    batch_size: Count | None = None
    epochs: Count | None = None
    warmup_share: Share | None = None
    decay: Literal["linear", "none"] | None = None
    max_gradient_norm: Positive | Literal["none"] | None = None
    precision: Literal["auto", "float32", "bfloat16"] | None = None

    @model_validator(mode="after")
    def _gives_what_it_names(self) -> "TrainingRule":
        for name in sorted(self.model_fields_set - self.conditions):
            if getattr(self, name) is None:
                hint = "write none, the word" if name == "max_gradient_norm" else "give a value, or leave the key out"
                raise PydanticCustomError("nothing", "{name}: nothing is given; {hint}", {"name": name, "hint": hint})
        return self


class Profile(Declared):
    """Which data sets, encoders and settings stand behind the tables' names. ``note`` goes into every caption."""

    description: Text
    note: Text | None = None
    seeds: Items[Seed] = Field(min_length=1)
    datasets: dict[Name, Name] = Field(min_length=1)
    encoders: dict[Name, Name | dict[Name, Name]]  # role: encoder, or role: {data set: encoder}
    training: Items[TrainingRule] = Field(min_length=1)

    @property
    def encoder_names(self) -> list[str]:
        """Every encoder that it uses, in its order, once."""
        choices = [[choice] if isinstance(choice, str) else choice.values() for choice in self.encoders.values()]
        return list(dict.fromkeys(chain.from_iterable(choices)))

"""The shape of encoders in ``experiments/``."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from benchmark.declarations.texts import Below, HubId, Text
from benchmark.specs import Count, Declared, Items, Seed


class PretrainedSource(Declared):
    """A model of the hub, or folders of those names in the encoder folder, which are looked for first."""

    kind: Literal["pretrained"]
    id: HubId
    revision: Text
    folders: Items[Below] = Field(default=())
    tokenizer_class: Literal["BertTokenizer", "XLNetTokenizer", "AlbertTokenizer"] | None = None


class BuiltSource(Declared):
    """A tiny encoder with random weights, built on the spot for generated corpora."""

    kind: Literal["built"]
    architecture: Literal["bert", "albert", "xlnet", "electra", "roberta"]
    hidden: Count
    intermediate: Count
    heads: Count
    vocabulary: Count
    seed: Seed

    @model_validator(mode="after")
    def _heads_divide(self) -> "BuiltSource":
        if self.hidden % self.heads:
            raise PydanticCustomError("heads", "heads: the hidden size must be a multiple of their number")
        return self


class EncoderSize(Declared):
    """For time estimates before anything is loaded."""

    layers: Count
    hidden: Count
    intermediate: Count


class Encoder(Declared):
    """A text encoder; ``layers`` keeps only so many, counted from below."""

    label: Text
    source: Annotated[PretrainedSource | BuiltSource, Field(discriminator="kind")]
    layers: Count | None = None
    size: EncoderSize

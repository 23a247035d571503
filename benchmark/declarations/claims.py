"""The shape of the paper's claims in ``experiments/``."""

from typing import Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from benchmark.declarations.texts import Text
from benchmark.specs import Declared, Items, Name, NotNegative, Positive, Share


class Comparison(Declared):
    """Rows of a table, by key, held against each other in one of its cells."""

    row: Text
    against: Items[Text] = Field(min_length=1)
    column: Text  # a column's label
    metric: Literal["f1", "ece"]  # of which every result has resampled scores, so that noise can be told


class Claim(Declared):
    """What the paper says in words. ``holds``: the row is the best of all, the worst of all, or not the best, in every
    comparison; ``by``: how far it is from the nearest other row (for "not_best": from the best), as printed.
    """

    says: Text
    place: Text
    table: Name
    holds: Literal["best", "worst", "not_best"]
    comparisons: Items[Comparison] = Field(min_length=1)
    by: Positive | None = None

    @model_validator(mode="after")
    def _one_size(self) -> "Claim":
        if self.by is not None and len(self.comparisons) > 1:
            raise PydanticCustomError("by", 'a size ("by") needs exactly one comparison')
        return self


class Tolerance(Declared):
    """A size is reproduced if it is off by at most a share of the paper's or by so many points, whichever is more."""

    share: Share
    points: NotNegative


class ClaimsFile(Declared):
    """What the paper says in words, and how near its sizes a result must come."""

    tolerance: Tolerance
    claims: dict[Name, Claim]

"""What every description is: strict, frozen, of values with a range."""

import re
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from benchmark.errors import nearest

Item = TypeVar("Item")
# A sequence, written as a list in YAML and JSON. (Strict validation would take tuples only.)
Items = Annotated[tuple[Item, ...], Strict(False)]
Pair = Annotated[tuple[Item, Item], Strict(False)]


def written_as(pattern: str, meaning: str) -> AfterValidator:
    """Demands of a text that the whole of it matches a regular expression; ``meaning`` says in words what it should be,
    for whoever wrote another.
    """

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise PydanticCustomError("written_as", "{meaning} is expected", {"meaning": meaning})
        return text

    return AfterValidator(checked)


# Names become parts of file names, so no letter of theirs may leave a folder.
Name = Annotated[
    str, Field(max_length=60), written_as(r"[a-z][a-z0-9_]*", "a name of small letters, digits and _, a letter first,")
]
Sha256 = Annotated[str, written_as(r"[0-9a-f]{64}", "a SHA-256, 64 of the digits 0-9 and a-f,")]
Share = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]  # of a running mean: how much of it stays with each step
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class _Hint:
    """What leads to the right name, looked for only where the mistake is shown: a description that may have one of
    several forms is tried in each, and most of what is found wrong is never shown.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return nearest(self.name, self.known)


class Declared(BaseModel):
    """A strict, frozen description: no unknown key, no silent conversion (an integer may stand for a float)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _name_unknown_keys(cls, value: object) -> object:
        if isinstance(value, dict):
            known = cls.model_fields
            for key in value:
                if key not in known:
                    hint = _Hint(str(key), tuple(known))
                    raise PydanticCustomError("unknown_key", 'unknown key "{key}"; {hint}', {"key": key, "hint": hint})
        return value


class OwnFunction(Declared):
    """A function of the user's own: where it is, what it is called with beside its arrays, and the SHA-256 of its
    source, which loading fills in.
    """

    n_arrays: ClassVar[int] = 2
    function: Annotated[
        str, Field(max_length=100), written_as(r"[a-z_][\w.]*:[A-Za-z_]\w*", 'a function as "module:function"')
    ]
    settings: dict[str, bool | int | Annotated[float, Field(allow_inf_nan=False)] | str] = {}
    sha256: Sha256 | None = None

    @property
    def function_name(self) -> str:
        """The function's name, without its module's."""
        return self.function.rpartition(":")[2]

    def __eq__(self, other: object) -> bool:
        """Settings of another type are others, though Python has 1 == 1.0 == True: the identity tells them apart."""
        return isinstance(other, OwnFunction) and super().__eq__(other) and self._types() == other._types()

    def __hash__(self) -> int:
        return hash((self.function, tuple(sorted(self.settings)), self.sha256))

    def _types(self) -> dict[str, type]:
        return {name: type(value) for name, value in self.settings.items()}

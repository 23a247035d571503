"""Lists of numbers in a result, which are most of it: how they are written, held and looked at."""

import base64
import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, GetCoreSchemaHandler, PlainSerializer
from pydantic_core import CoreSchema, core_schema

Number = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0)]

# In order of their bits: zero, all numbers above it, infinity, what is no number, all numbers below zero.
_INFINITY = np.uint32(0x7F80_0000)


def require_scores(*draws: Any) -> None:
    """Raises ValueError where any number of these ``Draws`` is negative or not finite. All are looked at together,
    which is ten lists of them at the cost of one.
    """
    content = b"".join(draws)
    if content and np.maximum.reduce(np.frombuffer(content, np.uint32)) >= _INFINITY:
        raise ValueError("a score that is negative or not finite")


def _held(values: Iterable[float]) -> "array[float]":
    try:
        return array("f", values)
    except (TypeError, OverflowError):
        raise ValueError("a list of numbers is expected") from None


def _turned(content: bytes) -> "array[float]":
    held = array("f", content)
    held.byteswap()
    return held


# Of the bytes in a file, little end first. No function of Python's in between, of which reading thousands of results
# would call a hundred thousand.
_from_bytes = partial(array, "f") if sys.byteorder == "little" else _turned


class _InBase64:
    """In a file, a text, which the parser of JSON decodes; elsewhere, any numbers."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.no_info_after_validator_function(_from_bytes, core_schema.bytes_schema(strict=True))
        return core_schema.json_or_python_schema(text, core_schema.no_info_plain_validator_function(_held))


def _text(draws: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(draws, dtype="<f4").tobytes()).decode("ascii")


# Finite and not negative, at full precision; as machine numbers they take a quarter of the memory of a list.
Numbers = Annotated[Sequence[NotNegative], AfterValidator(partial(array, "d")), PlainSerializer(list, list[float])]

# As numbers of 32 bits, seven digits and far below the noise that they measure. A file has them in base64, little end
# first: they are two thirds of a result, nobody reads them one by one, and as decimal numbers they took longer to read
# than all the rest. What holds them reads bytes as base64 (``val_json_bytes``) and asks ``require_scores``.
Draws = Annotated[Sequence[float], _InBase64(), PlainSerializer(_text, str)]

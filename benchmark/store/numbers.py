"""Lists of numbers in a result, which are most of it: how they are written, held and looked at."""

import base64
import binascii
import sys
from array import array
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer, PlainValidator

# In order of their bits: zero, all numbers above it, infinity, what is no number, all numbers below zero.
_INFINITY = {"d": (np.uint64, 0x7FF0_0000_0000_0000), "f": (np.uint32, 0x7F80_0000)}


def _held(values: Sequence[float]) -> "array[float]":
    try:
        return _looked_at(array("d", values))
    except (TypeError, OverflowError):
        raise ValueError("a list of numbers is expected") from None


def _held_draws(values: Sequence[float] | str) -> "array[float]":
    """From the text in a file, or from numbers."""
    if not isinstance(values, str):
        return array("f", _held(values))
    held = array("f")
    try:
        held.frombytes(binascii.a2b_base64(values, strict_mode=True))
    except ValueError:
        raise ValueError("numbers of 32 bits in base64 are expected") from None
    if sys.byteorder == "big":
        held.byteswap()
    return _looked_at(held)


def _looked_at(held: "array[float]") -> "array[float]":
    """The numbers, once they are known to be finite and not negative: all together, which is a hundred at the cost of
    one.
    """
    bits, infinity = _INFINITY[held.typecode]
    if held and np.frombuffer(held, bits).max() >= infinity:
        raise ValueError("a score that is negative or not finite")
    return held


def _text(draws: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(draws, dtype="<f4").tobytes()).decode("ascii")


# Finite and not negative, at full precision; as machine numbers they take a quarter of the memory of a list.
Numbers = Annotated[Sequence[float], PlainValidator(_held), PlainSerializer(list, list[float])]

# The same, as numbers of 32 bits, seven digits and far below the noise that they measure. A file has them in base64,
# little end first: they are two thirds of a result, nobody reads them one by one, and as decimal numbers they took
# longer to read than all the rest.
Draws = Annotated[Sequence[float], PlainValidator(_held_draws), PlainSerializer(_text, str)]

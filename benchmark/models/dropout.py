"""Dropout as torch has it, at a quarter of its cost on a CPU."""

import math

import torch
from torch import Tensor
from torch.nn import functional

_LEVELS = 2**16


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """Each entry dropped with probability ``rate``, the others scaled so that the mean stays.

    On a CPU torch draws a number for each entry, which costs a step of training a fifth of its time; here four entries
    share one of 64 bits. The rate is then a multiple of 1/65,536 (0.1 is 0.10001), and the scale is that of this rate.
    Random numbers come from torch's default generator.
    """
    if not training or rate == 0.0:
        return states
    dropped = round(rate * _LEVELS)
    if states.device.type != "cpu" or dropped >= _LEVELS:
        return functional.dropout(states, rate)
    count = math.prod(states.shape)
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:count]
    kept = torch.ge(bits, dropped - _LEVELS // 2, out=torch.empty(count, dtype=states.dtype))
    return states * kept.mul_(_LEVELS / (_LEVELS - dropped)).view(states.shape)

"""The precision of the encoder's arithmetic."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

Autocast = Callable[[], AbstractContextManager[Any]]


def supports_bfloat16(device: torch.device) -> bool:
    """Whether the hardware computes in bfloat16 (and does not merely emulate it)."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") or capabilities.get("bf16"))
    return False


def autocast(precision: str, device: torch.device) -> tuple[Autocast, str]:
    """The context to compute an encoder in, and its precision, which for "auto" is the device's best."""
    if precision == "auto":
        precision = "bfloat16" if supports_bfloat16(device) else "float32"
    if precision == "bfloat16":
        return lambda: torch.autocast(device.type, torch.bfloat16), precision
    return nullcontext, precision

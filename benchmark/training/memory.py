"""Computing on less memory where there is too little."""

import re
from collections.abc import Callable
from typing import TypeVar

import torch

from benchmark.errors import first_line

Value = TypeVar("Value")

# What torch says, in errors of several kinds, where memory ran out on a CPU, on a GPU, in a library on a GPU (cuBLAS,
# which has no room for itself either); and on a part of a GPU (MIG) or without the right to ask NVML, where it fails
# over the sentence that would say so.
_MEMORY_RAN_OUT = re.compile(
    "can't allocate memory|out of memory|ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED when calling `?cublasCreate"
    "|NVML_SUCCESS == r INTERNAL ASSERT FAILED"
)


def ran_out_of_memory(error: Exception) -> bool:
    """Whether that is why a computation failed."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or bool(_MEMORY_RAN_OUT.search(first_line(error)))


def halving(function: Callable[[int], Value], batch_size: int) -> Value:
    """``function(batch_size)``, or where memory runs out over it, with half of that, and so on down to 1: what went
    before is not lost for the want of memory for one large batch.
    """
    while True:
        try:
            return function(batch_size)
        except Exception as error:
            if batch_size == 1 or not ran_out_of_memory(error):
                raise
        batch_size //= 2  # only here, where the error, and the tensors of the frames that it holds, are gone

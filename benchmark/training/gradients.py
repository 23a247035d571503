"""The gradient of a batch, in one piece or in several."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.training.objective import Objective
from benchmark.training.prediction import Model


def backward(model: Model, objective: Objective, batch: NDArray[np.int64], labels: Tensor, pieces: int = 1) -> Tensor:
    """Add the gradient of the batch's loss to the parameters; returns the logits (B, K).

    In one piece that is the plain backward pass. In several, the logits of all pieces are computed first without
    gradients, the loss is taken once over all of them (RAU, AVUC and PosCal are losses of the whole batch), and its
    gradient is sent back piece by piece, each computed again with the same dropout. Source: Gao et al., 2021 (gradient
    caching).
    """
    if pieces == 1:
        logits = model(batch)
        torch.autograd.backward(objective(logits, labels))
        return logits
    parts = [part for part in np.array_split(batch, pieces) if len(part)]
    states = []
    with torch.no_grad():
        computed = []
        for part in parts:
            states.append(_random_state(model.device))
            computed.append(model(part))
    logits = torch.cat(computed).requires_grad_()
    torch.autograd.backward(objective(logits, labels))
    assert logits.grad is not None, "the loss depends on the logits"
    after = _random_state(model.device)
    gradients = torch.split(logits.grad, [len(part) for part in parts])
    for part, state, gradient in zip(parts, states, gradients, strict=True):
        _set_random_state(model.device, state)
        torch.autograd.backward(model(part), gradient)
    _set_random_state(model.device, after)
    return logits


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Of the host, from which a user's own head may draw wherever it is computed, and of the device."""
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def _set_random_state(device: torch.device, state: tuple[Tensor, Tensor | None]) -> None:
    of_host, of_device = state
    torch.set_rng_state(of_host)
    if of_device is not None:
        torch.cuda.set_rng_state(of_device, device)

"""The optimiser and its learning rate."""

from itertools import compress
from operator import not_

import torch
from torch import nn

from benchmark.specs import Optimisation


def build_optimiser(
    settings: Optimisation, encoder: nn.Module, head: nn.Module, device: torch.device
) -> tuple[torch.optim.Optimizer, list[nn.Parameter]]:
    """AdamW; weight decay on matrices only, not on biases (those of XLNet's attention have two dimensions) and layer
    norms, as BERT was trained.
    """
    named = [
        (name, parameter)
        for module in (encoder, head)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad
    ]
    decayed = [parameter.ndim >= 2 and not name.endswith("bias") for name, parameter in named]
    parameters = [parameter for _, parameter in named]
    groups = [
        {"params": list(compress(parameters, decayed)), "weight_decay": settings.weight_decay},
        {"params": list(compress(parameters, map(not_, decayed))), "weight_decay": 0.0},
    ]
    fused = device.type in ("cpu", "cuda")
    optimiser = torch.optim.AdamW(
        groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.epsilon, fused=fused
    )
    return optimiser, parameters


def set_learning_rate(optimiser: torch.optim.Optimizer, settings: Optimisation, step: int, total: int) -> None:
    """Linear warm-up to the full rate, then linear decay to 0 after the last step, or none."""
    warmup = settings.warmup_share * total
    factor = 1.0
    if step + 1 < warmup:
        factor = (step + 1) / warmup
    elif settings.decay == "linear":
        factor = (total - step) / max(total - warmup, 1.0)
    for group in optimiser.param_groups:
        group["lr"] = settings.learning_rate * min(factor, 1.0)

"""The optimiser and its learning rate."""

import torch
from torch import nn

from benchmark.specs import Optimisation


def build_optimiser(
    settings: Optimisation, encoder: nn.Module, head: nn.Module, device: torch.device
) -> tuple[torch.optim.Optimizer, list[nn.Parameter]]:
    """AdamW; weight decay on matrices only, not on biases and layer norms, as BERT was trained."""
    parameters = [
        parameter for module in (encoder, head) for parameter in module.parameters() if parameter.requires_grad
    ]
    groups = [
        {
            "params": [parameter for parameter in parameters if parameter.ndim >= 2],
            "weight_decay": settings.weight_decay,
        },
        {"params": [parameter for parameter in parameters if parameter.ndim < 2], "weight_decay": 0.0},
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

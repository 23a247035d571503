"""The training loop. It knows tensors, not files: a run and its data in, logits and a history out."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmark.models import LaidOut, TextEncoder, TextsOnDevice, TokenisedTexts, build_head, lay_out
from benchmark.specs import Optimisation, RunSpec, sub_seed
from benchmark.training.objective import Objective

_EVALUATION_BATCH = 1024


@dataclass(frozen=True)
class LabelledTexts:
    """Tokenised texts and the labels to train on or to score against, (N,)."""

    texts: TokenisedTexts
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class TrainingData:
    """What one run sees: labels of ``train`` and ``validation`` already changed where the run says so."""

    train: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    n_labels: int


@dataclass
class Trained:
    """What a training leaves: logits (N, K) in float32 of both held-out splits, and how it went."""

    validation_logits: NDArray[np.float32]
    test_logits: NDArray[np.float32]
    epochs: list[dict[str, Any]] = field(default_factory=list)
    precision: str = "float32"
    train_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    train_tokens: int = 0
    steps: int = 0


EpochListener = Callable[[int, float], None]


def train(
    run: RunSpec,
    data: TrainingData,
    encoder: TextEncoder,
    device: torch.device,
    on_epoch: EpochListener = lambda epochs_done, seconds: None,
) -> Trained:
    """Fine-tune ``encoder`` (already on ``device``, its pretrained weights in place) and a fresh head; score both
    held-out splits.

    ``on_epoch`` is called after each epoch with the number done and the seconds since the start. Everything random
    follows from the run's seed. Raises ``Diverged`` where the loss is not finite, and ``torch.OutOfMemoryError`` as
    torch does.
    """
    settings = run.optimisation
    autocast, precision = _autocast(settings.precision, device)
    torch.manual_seed(sub_seed(run.seed, "dropout"))
    head_generator = torch.Generator().manual_seed(sub_seed(run.seed, "head"))
    head = build_head(run.head, encoder.hidden, data.n_labels, head_generator).to(device)
    optimiser, parameters = _optimiser(settings, encoder, head, device)
    n_train = len(data.train.labels)
    steps_per_epoch = -(-n_train // settings.batch_size)
    total_steps = steps_per_epoch * settings.epochs
    objective = Objective(run.loss, data.n_labels, settings.epochs, steps_per_epoch, device)
    on_device = TextsOnDevice.of(data.train.texts, encoder.padding, device)
    labels_on_device = torch.from_numpy(data.train.labels).to(device)
    order = np.random.default_rng(sub_seed(run.seed, "order"))

    result = Trained(np.empty(0, np.float32), np.empty(0, np.float32), precision=precision)
    encoder.train()
    head.train()
    started = time.monotonic()
    for epoch in range(settings.epochs):
        for step, batch in enumerate(_batches(order.permutation(n_train), settings.batch_size)):
            _set_learning_rate(optimiser, settings, result.steps, total_steps)
            rows = _on(device, lay_out(data.train.texts, batch, encoder.packed))
            labels = labels_on_device[torch.from_numpy(batch).to(device, non_blocking=True)]
            with autocast():
                encoded = encoder(on_device, rows)
            logits = head(encoded)
            loss = objective(logits, labels)
            loss.backward()  # type: ignore[no-untyped-call]
            if settings.max_gradient_norm is not None:
                nn.utils.clip_grad_norm_(parameters, settings.max_gradient_norm, foreach=True)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            objective.after_step(logits, labels, step)
            result.steps += 1
        result.epochs.append(_epoch_entry(objective))
        on_epoch(epoch + 1, time.monotonic() - started)
    result.train_seconds = time.monotonic() - started
    result.train_tokens = int(data.train.texts.lengths.sum()) * settings.epochs

    started = time.monotonic()
    result.validation_logits = predict(encoder, head, data.validation.texts, device, autocast)
    result.test_logits = predict(encoder, head, data.test.texts, device, autocast)
    result.evaluation_seconds = time.monotonic() - started
    return result


@torch.inference_mode()
def predict(
    encoder: TextEncoder,
    head: nn.Module,
    texts: TokenisedTexts,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]],
) -> NDArray[np.float32]:
    """Logits (N, K) of every text in order, dropout off; leaves both modules in evaluation mode."""
    encoder.eval()
    head.eval()
    on_device = TextsOnDevice.of(texts, encoder.padding, device)
    parts = []
    for batch in _batches(np.arange(len(texts)), _EVALUATION_BATCH):
        rows = _on(device, lay_out(texts, batch, encoder.packed))
        with autocast():
            encoded = encoder(on_device, rows)
        parts.append(head(encoded))
    return torch.cat(parts).float().cpu().numpy()


def supports_bfloat16(device: torch.device) -> bool:
    """Whether the hardware computes in bfloat16 (and does not merely emulate it)."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") or capabilities.get("bf16"))
    return False


def _autocast(precision: str, device: torch.device) -> tuple[Callable[[], AbstractContextManager[Any]], str]:
    if precision == "auto":
        precision = "bfloat16" if supports_bfloat16(device) else "float32"
    if precision == "bfloat16":
        return lambda: torch.autocast(device.type, torch.bfloat16), precision
    return nullcontext, precision


def _optimiser(
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


def _set_learning_rate(optimiser: torch.optim.Optimizer, settings: Optimisation, step: int, total: int) -> None:
    """Linear warm-up to the full rate, then linear decay to 0 after the last step, or none."""
    warmup = settings.warmup_share * total
    factor = 1.0
    if step + 1 < warmup:
        factor = (step + 1) / warmup
    elif settings.decay == "linear":
        factor = (total - step) / max(total - warmup, 1.0)
    for group in optimiser.param_groups:
        group["lr"] = settings.learning_rate * min(factor, 1.0)


def _batches(order: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Consecutive parts of ``order``; the last may be short."""
    return (order[start : start + size] for start in range(0, len(order), size))


def _on(device: torch.device, batch: LaidOut) -> LaidOut:
    return LaidOut(tuple(rows.to(device) for rows in batch.pieces), batch.order)


def _epoch_entry(objective: Objective) -> dict[str, Any]:
    record = objective.after_epoch()
    return {
        "loss": record.loss,
        "terms": list(record.terms),
        "entropy": record.entropy,
        "accuracy": record.accuracy,
        "joined": record.events,
    }

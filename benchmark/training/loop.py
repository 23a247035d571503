"""The training loop. It knows tensors, not files: a run and its data in, logits and a history out."""

import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmark.models import TextEncoder, TextsOnDevice, TokenisedTexts, build_head, copied, lay_out
from benchmark.specs import Optimisation, RunSpec, sub_seed
from benchmark.training.memory import halving
from benchmark.training.objective import Diverged, Epoch, Objective

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


Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Trained:
    """What a training leaves: logits (N, K) in float32 of both held-out splits, for the test rows the logarithm of the
    mean probabilities by number of passes with dropout, and how it went.
    """

    validation_logits: Logits
    test_logits: Logits
    mc_dropout: dict[int, Logits]
    epochs: list[Epoch]
    precision: str
    train_seconds: float
    evaluation_seconds: float
    train_tokens: int
    steps: int


EpochListener = Callable[[int, float, Epoch], None]
Autocast = Callable[[], AbstractContextManager[Any]]


def train(
    run: RunSpec,
    data: TrainingData,
    encoder: TextEncoder,
    device: torch.device,
    on_epoch: EpochListener = lambda epochs_done, seconds, recorded: None,
    pieces: int = 1,
    mc_dropout: Collection[int] = (),
) -> Trained:
    """Fine-tune ``encoder`` (already on ``device``, its pretrained weights in place) and a fresh head; score both
    held-out splits.

    ``on_epoch`` is called after each epoch with the number done, the seconds since the start, and what ``epochs`` of
    the result holds of it. Everything random follows from the run's seed. ``pieces`` above 1 computes each batch in so
    many parts, for less memory and more time; the loss still sees the whole batch. ``mc_dropout`` asks for so many
    passes over the test rows with dropout on. Raises ``Diverged`` where the loss or a logit of the trained model is not
    finite, and ``torch.OutOfMemoryError`` as torch does.
    """
    settings = run.optimisation
    # cuDNN's attention, which torch would choose on recent GPUs, plans anew for each shape, and packed rows have many
    torch.backends.cuda.enable_cudnn_sdp(False)
    autocast, precision = _autocast(settings.precision, device)
    head = _fresh_head(run, encoder.hidden, data.n_labels).to(device)
    torch.manual_seed(sub_seed(run.seed, "dropout"))  # after the head, whatever it drew
    optimiser, parameters = _optimiser(settings, encoder, head, device)
    n_train = len(data.train.labels)
    steps_per_epoch = -(-n_train // settings.batch_size)
    total_steps = steps_per_epoch * settings.epochs
    objective = Objective(run.loss, data.n_labels, settings.epochs, steps_per_epoch, device, run.seed)
    model = Model(encoder, head, data.train.texts, device, autocast)
    labels_on_device = torch.from_numpy(data.train.labels).to(device)
    order = np.random.default_rng(sub_seed(run.seed, "order"))

    encoder.train()
    head.train()
    epochs: list[Epoch] = []
    started = time.monotonic()
    for epoch in range(settings.epochs):
        for step, batch in enumerate(_batches(order.permutation(n_train), settings.batch_size)):
            _set_learning_rate(optimiser, settings, epoch * steps_per_epoch + step, total_steps)
            labels = labels_on_device[copied(torch.from_numpy(batch), device)]
            logits = backward(model, objective, batch, labels, pieces)
            if settings.max_gradient_norm is not None:
                nn.utils.clip_grad_norm_(parameters, settings.max_gradient_norm, foreach=True)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            objective.after_step(logits, labels, step)
        epochs.append(objective.after_epoch())
        on_epoch(epoch + 1, time.monotonic() - started, epochs[-1])
    trained_at = time.monotonic()
    validation, test = (Model(encoder, head, split.texts, device, autocast) for split in (data.validation, data.test))
    return Trained(
        *_evaluate(validation, test, pieces, run.seed, mc_dropout),
        epochs=epochs,
        precision=precision,
        train_seconds=trained_at - started,
        evaluation_seconds=time.monotonic() - trained_at,
        train_tokens=int(data.train.texts.lengths.sum()) * settings.epochs,
        steps=total_steps,
    )


def _fresh_head(run: RunSpec, hidden: int, n_labels: int) -> nn.Module:
    # a user's own head may draw from torch's generator, too, and functions of theirs from Python's and numpy's
    torch.manual_seed(sub_seed(run.seed, "head", "modules"))
    random.seed(sub_seed(run.seed, "own", "python"))
    np.random.seed(sub_seed(run.seed, "own", "numpy") % 2**32)
    return build_head(run.head, hidden, n_labels, torch.Generator().manual_seed(sub_seed(run.seed, "head")))


def _evaluate(
    validation: "Model", test: "Model", pieces: int, seed: int, mc_dropout: Collection[int]
) -> tuple[Logits, Logits, dict[int, Logits]]:
    """The logits that ``Trained`` begins with; in smaller batches where memory runs out. Raises ``Diverged`` where a
    logit is not finite: the last step's weights have been in no loss.
    """
    batch_size = max(_EVALUATION_BATCH // pieces, 1)
    validation_logits, test_logits = (halving(partial(predict, model), batch_size) for model in (validation, test))
    if not (np.isfinite(validation_logits).all() and np.isfinite(test_logits).all()):
        raise Diverged("after the last step the logits were not finite")
    drawn = {passes: halving(partial(_drawn, test, passes, seed), batch_size) for passes in mc_dropout}
    return validation_logits, test_logits, drawn


def _drawn(test: "Model", passes: int, seed: int, batch_size: int) -> Logits:
    """With the same dropout however often it is begun."""
    torch.manual_seed(sub_seed(seed, "mc_dropout"))
    return predict_with_dropout(test, passes, batch_size)


class Model:
    """Encoder and head over the texts of one split, on a device: indices of texts in, logits out."""

    def __init__(
        self, encoder: TextEncoder, head: nn.Module, texts: TokenisedTexts, device: torch.device, autocast: Autocast
    ) -> None:
        self.encoder = encoder
        self.head = head
        self.texts = texts
        self.device = device
        self.autocast = autocast
        self.on_device = TextsOnDevice.of(texts, encoder.padding, device)

    def __call__(self, batch: NDArray[np.int64]) -> Tensor:
        """Logits (B, K) in float32 of the texts with those indices, in that order."""
        laid_out = lay_out(self.texts, batch, self.encoder.packed).to(self.device)
        with self.autocast():
            encoded = self.encoder(self.on_device, laid_out)
        logits: Tensor = self.head(encoded)
        return logits


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


@torch.inference_mode()
def predict(model: Model, batch_size: int = _EVALUATION_BATCH) -> Logits:
    """Logits (N, K) of every text in order, dropout off; leaves encoder and head in evaluation mode."""
    model.encoder.eval()
    model.head.eval()
    return _all_logits(model, batch_size).float().cpu().numpy()


@torch.inference_mode()
def predict_with_dropout(model: Model, passes: int, batch_size: int = _EVALUATION_BATCH) -> Logits:
    """Monte Carlo dropout: the logarithm of the mean over ``passes`` of the probabilities (N, K) of every text, dropout
    on; leaves encoder and head in training mode. Source: Gal and Ghahramani, 2016.
    """
    model.encoder.train()
    model.head.train()
    total = torch.zeros((), device=model.device)
    for _ in range(passes):
        total = total + _all_logits(model, batch_size).float().softmax(dim=1)
    smallest = torch.finfo(torch.float32).tiny
    return (total / passes).clamp_min(smallest).log().cpu().numpy()


def _all_logits(model: Model, batch_size: int) -> Tensor:
    return torch.cat([model(batch) for batch in _batches(np.arange(len(model.texts)), batch_size)])


def supports_bfloat16(device: torch.device) -> bool:
    """Whether the hardware computes in bfloat16 (and does not merely emulate it)."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") or capabilities.get("bf16"))
    return False


def _autocast(precision: str, device: torch.device) -> tuple[Autocast, str]:
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


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Of the host, from which a user's own head may draw wherever it is computed, and of the device."""
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def _set_random_state(device: torch.device, state: tuple[Tensor, Tensor | None]) -> None:
    of_host, of_device = state
    torch.set_rng_state(of_host)
    if of_device is not None:
        torch.cuda.set_rng_state(of_device, device)

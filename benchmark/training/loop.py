"""The training loop. It knows tensors, not files: a run and its data in, logits and a history out."""

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmark.models import TextEncoder, TokenisedTexts, build_head, copied
from benchmark.specs import RunSpec, sub_seed
from benchmark.training.gradients import backward
from benchmark.training.objective import Epoch, Objective
from benchmark.training.optimiser import build_optimiser, set_learning_rate
from benchmark.training.precision import autocast
from benchmark.training.prediction import Logits, Model, batches, evaluate


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
    context, precision = autocast(settings.precision, device)
    head = _fresh_head(run, encoder.hidden, data.n_labels).to(device)
    torch.manual_seed(sub_seed(run.seed, "dropout"))  # after the head, whatever it drew
    optimiser, parameters = build_optimiser(settings, encoder, head, device)
    n_train = len(data.train.labels)
    steps_per_epoch = -(-n_train // settings.batch_size)
    total_steps = steps_per_epoch * settings.epochs
    objective = Objective(run.loss, data.n_labels, settings.epochs, steps_per_epoch, device, run.seed)
    model = Model(encoder, head, data.train.texts, device, context)
    labels_on_device = torch.from_numpy(data.train.labels).to(device)
    order = np.random.default_rng(sub_seed(run.seed, "order"))

    encoder.train()
    head.train()
    epochs: list[Epoch] = []
    started = time.monotonic()
    for epoch in range(settings.epochs):
        for step, batch in enumerate(batches(order.permutation(n_train), settings.batch_size)):
            set_learning_rate(optimiser, settings, epoch * steps_per_epoch + step, total_steps)
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
    validation, test = (Model(encoder, head, split.texts, device, context) for split in (data.validation, data.test))
    return Trained(
        *evaluate(validation, test, pieces, run.seed, mc_dropout),
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

"""From the texts of a split to logits: encoder and head together, and what they say of every text."""

from collections.abc import Collection, Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmark.models import TextEncoder, TextsOnDevice, TokenisedTexts, lay_out
from benchmark.specs import sub_seed
from benchmark.training.memory import halving
from benchmark.training.objective import Diverged
from benchmark.training.precision import Autocast

_EVALUATION_BATCH = 1024

Logits = NDArray[np.float32]


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


def batches(order: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Consecutive parts of ``order``; the last may be short."""
    return (order[start : start + size] for start in range(0, len(order), size))


def evaluate(
    validation: Model, test: Model, pieces: int, seed: int, mc_dropout: Collection[int]
) -> tuple[Logits, Logits, dict[int, Logits]]:
    """Logits of the validation and the test rows, and by number of passes the test rows' with dropout; in smaller
    batches where memory runs out. Raises ``Diverged`` where a logit is not finite: the last step's weights have been in
    no loss.
    """
    batch_size = max(_EVALUATION_BATCH // pieces, 1)
    validation_logits, test_logits = (halving(partial(predict, model), batch_size) for model in (validation, test))
    if not (np.isfinite(validation_logits).all() and np.isfinite(test_logits).all()):
        raise Diverged("after the last step the logits were not finite")
    drawn = {passes: halving(partial(_drawn, test, passes, seed), batch_size) for passes in mc_dropout}
    return validation_logits, test_logits, drawn


def _drawn(test: Model, passes: int, seed: int, batch_size: int) -> Logits:
    """With the same dropout however often it is begun."""
    torch.manual_seed(sub_seed(seed, "mc_dropout"))
    return predict_with_dropout(test, passes, batch_size)


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
    return torch.cat([model(batch) for batch in batches(np.arange(len(model.texts)), batch_size)])

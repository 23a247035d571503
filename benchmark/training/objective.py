"""A method's loss: its terms, weighted and summed. What a step adds up stays on the device; the host reads it once an
epoch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmark.losses import predictive_entropy
from benchmark.specs import LossTerm, term_name
from benchmark.training.terms import live_term


@dataclass
class EpochSums:
    """Sums over the samples of an epoch, on the device."""

    terms: Tensor
    loss: Tensor
    entropy: Tensor
    right: Tensor
    finite: Tensor
    term_samples: list[int]  # on which each term acted
    samples: int = 0


@dataclass(frozen=True)
class Epoch:
    """Means over the training samples of one epoch, dropout on; of a term over those that it acted on, None where it
    had not joined. ``joined``: what each term that joined after it says of itself.
    """

    loss: float
    terms: list[float | None]
    entropy: float
    accuracy: float
    joined: dict[str, dict[str, float]]


class Diverged(Exception):
    """The loss, or a logit of the trained model, was not finite."""


class Objective:
    """The loss of a run: call it with a batch's logits, then ``after_step``; once an epoch, ``after_epoch``."""

    def __init__(
        self,
        specs: tuple[LossTerm, ...],
        n_labels: int,
        n_epochs: int,
        steps_per_epoch: int,
        device: torch.device,
        seed: int,
    ) -> None:
        self.specs = specs
        self.terms = [live_term(spec, n_labels, n_epochs, steps_per_epoch, device, seed) for spec in specs]
        self.device = device
        self.epochs_done = 0
        self.sums = self._zeros()

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The weighted sum of the terms that have joined, a scalar to send back."""
        total = logits.new_zeros(())
        values = []
        for index, (spec, term) in enumerate(zip(self.specs, self.terms, strict=True)):
            value = term.value(logits, labels)
            if value is not None:
                total = total + spec.weight * value
                self.sums.term_samples[index] += len(labels)
            values.append(total.new_zeros(()) if value is None else value.detach())
        self._add(torch.stack(values), total.detach(), logits.detach(), labels)
        return total

    def after_step(self, logits: Tensor, labels: Tensor, step_in_epoch: int) -> None:
        """Let the terms note a batch that has been trained on."""
        for term in self.terms:
            term.after_step(logits.detach(), labels, step_in_epoch)

    def after_epoch(self) -> Epoch:
        """Read the epoch's sums (the one wait for the device), let terms join, start anew.

        Raises Diverged, in words, where a loss of the epoch was not finite.
        """
        self.epochs_done += 1
        sums, count = self.sums, self.sums.samples
        numbers = torch.cat([sums.terms, torch.stack([sums.loss, sums.entropy, sums.right, sums.finite])]).tolist()
        *terms, loss, entropy, right, finite = numbers
        if not finite:
            raise Diverged(f"the loss was not finite in epoch {self.epochs_done}")
        mean_entropy = entropy / count
        joined: dict[str, dict[str, float]] = {}
        for spec, term in zip(self.specs, self.terms, strict=True):
            if event := term.after_epoch(self.epochs_done, mean_entropy):
                joined[term_name(spec)] = event
        epoch = Epoch(
            loss=loss / count,
            terms=[value / acted if acted else None for value, acted in zip(terms, sums.term_samples, strict=True)],
            entropy=mean_entropy,
            accuracy=right / count,
            joined=joined,
        )
        self.sums = self._zeros()
        return epoch

    def _add(self, values: Tensor, total: Tensor, logits: Tensor, labels: Tensor) -> None:
        sums, size = self.sums, len(labels)
        sums.terms += values * size
        sums.loss += total * size
        sums.entropy += predictive_entropy(logits).sum()
        sums.right += (logits.argmax(dim=1) == labels).sum()
        sums.finite *= torch.isfinite(total)
        sums.samples += size

    def _zeros(self) -> EpochSums:
        zero = torch.zeros((), device=self.device)
        terms = torch.zeros(len(self.specs), device=self.device)
        counts = [0] * len(self.specs)
        return EpochSums(terms, zero.clone(), zero.clone(), zero.clone(), torch.ones_like(zero), counts)

"""The loss terms of a method while it trains, and what some of them carry from step to step, all on the device."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmark import own_code
from benchmark.errors import UserError
from benchmark.losses import (
    avuc_loss,
    brier_loss,
    confidence_penalty,
    cross_entropy,
    focal_loss,
    gamma_by_probability,
    mixup_cross_entropy,
    mmce_loss,
    poscal_loss,
    poscal_reverse_loss,
    probability_bins,
    rau_loss,
)
from benchmark.models import copied
from benchmark.specs import (
    BrierTerm,
    ConfidencePenaltyTerm,
    CrossEntropyTerm,
    FocalTerm,
    GammaByProbability,
    LossTerm,
    MixupTerm,
    MmceTerm,
    OwnTerm,
    PoscalTerm,
    Start,
    StartByEpoch,
    UncertaintyTerm,
    sub_seed,
)


class LiveTerm(ABC):
    """A loss term during training. Most are functions of a batch alone, and take note of nothing."""

    @abstractmethod
    def value(self, logits: Tensor, labels: Tensor) -> Tensor | None:
        """The unweighted term for a batch, or None while it has not joined."""

    def after_step(self, logits: Tensor, labels: Tensor, step_in_epoch: int) -> None:  # noqa: B027
        """Take note of a batch's logits (detached)."""

    def after_epoch(self, epochs_done: int, mean_entropy: float) -> dict[str, float]:
        """Get ready for the next epoch; returns what is worth recording, by name."""
        return {}


class _OfTheBatch(LiveTerm):
    """A term that is a function of the batch alone and has joined from the start."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.function = function

    def value(self, logits: Tensor, labels: Tensor) -> Tensor | None:
        return self.function(logits, labels)


class _Mixup(LiveTerm):
    """Mixup of a batch with itself in another order; order and share are drawn anew for each batch."""

    def __init__(self, spec: MixupTerm, seed: int) -> None:
        self.alpha = spec.alpha
        self.random = np.random.default_rng(sub_seed(seed, "mixup"))

    def value(self, logits: Tensor, labels: Tensor) -> Tensor | None:
        share = float(self.random.beta(self.alpha, self.alpha))
        partners = copied(torch.from_numpy(self.random.permutation(len(labels))), logits.device)
        return mixup_cross_entropy(logits, labels, partners, share)


class _Starter:
    """When a term joins."""

    def __init__(self, rule: Start, n_labels: int, n_epochs: int) -> None:
        self.rule = rule
        self.half_of_chance = math.log(n_labels) / 2
        self.n_epochs = n_epochs
        self.joined = isinstance(rule, StartByEpoch) and rule.after_epochs == 0

    def join_if_due(self, epochs_done: int, mean_entropy: float) -> bool:
        """Whether the term joins now; there is no joining after the last epoch, which would only be recorded."""
        if self.joined or epochs_done >= self.n_epochs:
            return False
        self.joined = self._has_come(epochs_done, mean_entropy)
        return self.joined

    def _has_come(self, epochs_done: int, mean_entropy: float) -> bool:
        if isinstance(self.rule, StartByEpoch):
            return epochs_done >= self.rule.after_epochs
        if epochs_done < self.rule.at_least_epochs:
            return False
        latest = max(math.floor(self.rule.at_most_share * self.n_epochs), self.rule.at_least_epochs)
        return mean_entropy <= min(self.rule.until_entropy, self.half_of_chance) or epochs_done >= latest


class _Uncertainty(LiveTerm):
    """RAU or AVUC: joins when its start rule says so, with the threshold that it finds then."""

    def __init__(self, spec: UncertaintyTerm, n_labels: int, n_epochs: int, device: torch.device) -> None:
        self.spec = spec
        self.loss = rau_loss if spec.term == "rau" else avuc_loss
        self.starter = _Starter(spec.start, n_labels, n_epochs)
        fixed = spec.threshold if isinstance(spec.threshold, float) else 0.0
        self.threshold = torch.tensor(fixed, device=device)

    def value(self, logits: Tensor, labels: Tensor) -> Tensor | None:
        return self.loss(logits, labels, self.threshold) if self.starter.joined else None

    def after_epoch(self, epochs_done: int, mean_entropy: float) -> dict[str, float]:
        if not self.starter.join_if_due(epochs_done, mean_entropy):
            return {}
        if self.spec.threshold == "mean_entropy":
            self.threshold.fill_(min(max(mean_entropy, 0.0), 1.0))
        return {"after_epochs": epochs_done, "threshold": float(self.threshold)}


class _Poscal(LiveTerm):
    """The divergence of prediction and empirical posterior; the table is made anew a fixed number of times an epoch
    from the batches since then.
    """

    def __init__(
        self, spec: PoscalTerm, n_labels: int, n_epochs: int, steps_per_epoch: int, device: torch.device
    ) -> None:
        self.spec = spec
        self.loss = poscal_loss if spec.divergence == "forward" else poscal_reverse_loss
        self.starter = _Starter(spec.start, n_labels, n_epochs)
        self.n_labels = n_labels
        self.table: Tensor | None = None
        self.seen = torch.zeros(spec.bins * n_labels, device=device)
        self.borne = torch.zeros(spec.bins * n_labels, device=device)
        self.label_index = torch.arange(n_labels, device=device)
        self.middles = (torch.arange(spec.bins, device=device)[:, None] + 0.5) / spec.bins
        updates = min(spec.updates_per_epoch, steps_per_epoch)
        if n_epochs == 1 and updates == 1:
            raise UserError(
                "The only table of poscal would be made after the last step, so it would never act: train for more "
                "epochs, or in smaller batches."
            )
        self.update_after = {steps_per_epoch * (number + 1) // updates - 1 for number in range(updates)}

    def value(self, logits: Tensor, labels: Tensor) -> Tensor | None:
        if self.table is None or not self.starter.joined:
            return None
        return self.loss(logits, self.table)

    def after_step(self, logits: Tensor, labels: Tensor, step_in_epoch: int) -> None:
        bins = probability_bins(logits.float().softmax(dim=1), self.spec.bins)
        cells = bins * self.n_labels + self.label_index
        self.seen.scatter_add_(0, cells.reshape(-1), torch.ones_like(cells, dtype=torch.float32).reshape(-1))
        right = cells.gather(1, labels[:, None]).squeeze(1)
        self.borne.scatter_add_(0, right, torch.ones_like(right, dtype=torch.float32))
        if step_in_epoch in self.update_after:
            self._make_table()

    def _make_table(self) -> None:
        borne, seen = (part.reshape(self.spec.bins, self.n_labels) for part in (self.borne, self.seen))
        if self.spec.empty_bin == "prior_row":
            self.table = (borne + self.middles) / (seen + 1)
        else:
            table = borne / seen  # 0/0, an empty bin, is NaN
            self.table = table.nan_to_num(nan=0.0) if self.spec.empty_bin == "zero" else table
        self.seen.zero_()
        self.borne.zero_()

    def after_epoch(self, epochs_done: int, mean_entropy: float) -> dict[str, float]:
        return {"after_epochs": epochs_done} if self.starter.join_if_due(epochs_done, mean_entropy) else {}


def live_term(
    spec: LossTerm, n_labels: int, n_epochs: int, steps_per_epoch: int, device: torch.device, seed: int
) -> LiveTerm:
    """The term that a run declares, at its start; ``seed`` is the run's."""
    if isinstance(spec, UncertaintyTerm):
        return _Uncertainty(spec, n_labels, n_epochs, device)
    if isinstance(spec, PoscalTerm):
        return _Poscal(spec, n_labels, n_epochs, steps_per_epoch, device)
    if isinstance(spec, MixupTerm):
        return _Mixup(spec, seed)
    return _OfTheBatch(_function(spec))


def _function(
    spec: CrossEntropyTerm | FocalTerm | BrierTerm | ConfidencePenaltyTerm | MmceTerm | OwnTerm,
) -> Callable[[Tensor, Tensor], Tensor]:
    if isinstance(spec, CrossEntropyTerm):
        return partial(cross_entropy, smoothing=spec.smoothing)
    if isinstance(spec, OwnTerm):
        return partial(_own_term, spec, own_code.tried(spec.function, own_code.load, spec.function, spec.sha256))
    if isinstance(spec, BrierTerm):
        return brier_loss
    if isinstance(spec, ConfidencePenaltyTerm):
        return lambda logits, labels: confidence_penalty(logits)
    if isinstance(spec, MmceTerm):
        return partial(mmce_loss, width=spec.width)
    gamma = spec.gamma
    if isinstance(gamma, GammaByProbability):
        chosen = partial(gamma_by_probability, until=gamma.until, low=gamma.low, high=gamma.high)
        return lambda logits, labels: focal_loss(logits, labels, chosen(logits, labels))
    return partial(focal_loss, gamma=gamma)


def _own_term(spec: OwnTerm, function: Callable[..., Any], logits: Tensor, labels: Tensor) -> Tensor:
    # copies: what it writes into them must not reach the other terms
    value = own_code.tried(spec.function, function, logits.clone(), labels.clone(), **spec.settings)
    if not isinstance(value, Tensor) or value.ndim:
        found = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise UserError(f"{spec.function} must give a scalar tensor, not {found}.")
    if value.device != logits.device:
        raise UserError(f"{spec.function} must give its value on the device of the logits, {logits.device}.")
    if logits.requires_grad and not value.requires_grad:
        raise UserError(
            f"{spec.function} gives a value that does not hang on the logits (a tensor made anew, detached, counted), "
            "so nothing can be trained by it; compute it from them."
        )
    return value

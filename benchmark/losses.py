"""The loss terms, each a pure function of logits; all in float32, whatever the encoder computed in.

``logits`` has shape (B, K), ``labels`` (B,) in [0, K); each function returns a scalar, the mean over the batch or a
loss of the batch as a whole. Terms of a batch (``rau_loss``, ``avuc_loss``) must see all its logits at once.
"""

import torch
from torch import Tensor
from torch.nn import functional

# Where probabilities enter a logarithm or a divisor can be 0.
SMALLEST_SHARE = 1e-8


def cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """(1 - e) * CE + e * the mean of -log p over the K - 1 other labels; e = ``smoothing`` in [0, 1).

    With e = 0 it is plain cross-entropy. Source: Szegedy et al., 2016; Mueller et al., 2019; spread over the *other*
    labels, as the paper describes it ("the none ground-truth labels").
    """
    log_p = functional.log_softmax(logits.float(), dim=1)
    right = -log_p.gather(1, labels[:, None]).squeeze(1)
    if smoothing == 0.0:
        return right.mean()
    others = (-log_p.sum(dim=1) - right) / (log_p.shape[1] - 1)
    return ((1 - smoothing) * right + smoothing * others).mean()


def mixup_cross_entropy(logits: Tensor, labels: Tensor, partners: Tensor, share: float | Tensor) -> Tensor:
    """share * CE(mixed, labels) + (1 - share) * CE(mixed, labels of the partners), mixed = share * logits + (1 - share)
    * logits of the partners; ``partners`` (B,) points into the batch.

    With a linear head the mixed logits are those of the mixed encoded vectors, each after its own dropout. Source:
    Zhang et al., 2018 (mixup); on a text's encoded vector Guo et al., 2019; for calibration Thulasidasan et al., 2019.
    """
    mixed = share * logits + (1 - share) * logits[partners]
    log_p = functional.log_softmax(mixed.float(), dim=1)
    wanted = torch.stack([labels, labels[partners]], dim=1)
    own, partner = -log_p.gather(1, wanted).mean(dim=0)
    loss: Tensor = share * own + (1 - share) * partner
    return loss


def predictive_entropy(logits: Tensor) -> Tensor:
    """u = -sum_k p_k log p_k of each sample in nats, shape (B,), in [0, log K] (the paper's eq. for u_i)."""
    log_p = functional.log_softmax(logits.float(), dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


def rau_loss(logits: Tensor, labels: Tensor, threshold: float | Tensor) -> Tensor:
    """Rebalanced accuracy-uncertainty loss: log(1 + n_AU / (n_AC + n_AU) + n_IC / (n_IC + n_IU)).

    ``threshold`` is u_theta in nats: a sample is certain where its entropy is at or below it. The paper prints tan(u);
    tanh is meant, as in AVUC (u reaches log K > pi/2, where tan changes sign). An empty pair of groups counts 0.
    Where every sample of the batch is uncertain, or every one certain, its gradient is 0 and it is log 2 (0 where, in
    the first case, none is right, in the second none wrong). Source: HS-RAU (AAAI 2022), section "Rebalanced
    Accuracy-Uncertainty Loss".
    """
    n_ac, n_au, n_ic, n_iu = _accuracy_uncertainty_groups(logits, labels, threshold)
    return torch.log1p(_share(n_au, n_ac) + _share(n_ic, n_iu))


def avuc_loss(logits: Tensor, labels: Tensor, threshold: float | Tensor) -> Tensor:
    """Accuracy versus uncertainty calibration loss: log(1 + (n_AU + n_IC) / (n_AC + n_IU)).

    ``threshold`` as in ``rau_loss``. Where n_AC + n_IU is 0 the ratio is held finite by dividing by at least 1e-8.
    Source: Krishnan and Tickoo, 2020 (eq. 3 and 4).
    """
    n_ac, n_au, n_ic, n_iu = _accuracy_uncertainty_groups(logits, labels, threshold)
    return torch.log1p((n_au + n_ic) / (n_ac + n_iu).clamp_min(SMALLEST_SHARE))


def poscal_loss(logits: Tensor, posterior_table: Tensor) -> Tensor:
    """Mean over the batch and over the K labels of q log(q / p): the KL divergence of the prediction p from the
    empirical posterior q, divided by K.

    q is looked up per sample and label in ``posterior_table`` of shape (bins, K): ``posterior_table[b, k]`` is the
    share of label k among the training samples whose probability of k fell in bin b (bins (a, b], see
    ``probability_bins``); where it is 0, or NaN for a bin where no probability fell, the term is 0. q need not sum to 1
    over labels, so the loss can be below 0. No gradient runs through q. Source: Jung et al., 2020 (PosCal), whose
    published code has this direction and divisor (PyTorch's KLDivLoss, "batchmean", of flattened tensors).
    """
    log_p = functional.log_softmax(logits.float(), dim=1)
    q = _empirical_posterior(log_p, posterior_table).nan_to_num(nan=0.0)
    return (torch.xlogy(q, q) - q * log_p).mean()


def poscal_reverse_loss(logits: Tensor, posterior_table: Tensor) -> Tensor:
    """Mean over the batch of KL(p || q), summed over labels, with q as in ``poscal_loss``.

    Where q is NaN the table says nothing: the term is 0 and has no gradient. Elsewhere q is held at or above 1e-8, so a
    probability p in a bin whose share is 0 costs up to 18 p nats. Source: Jung et al., 2020 (PosCal), in the other
    direction than their published code; HS-RAU's paper, which adds "the KL loss between predicted probability and
    empirical probability", names none.
    """
    log_p = functional.log_softmax(logits.float(), dim=1)
    q = _empirical_posterior(log_p, posterior_table)
    known = ~torch.isnan(q)
    log_q = torch.where(known, q, torch.ones_like(q)).clamp_min(SMALLEST_SHARE).log()
    return torch.where(known, log_p.exp() * (log_p - log_q), torch.zeros_like(q)).sum(dim=1).mean()


def _empirical_posterior(log_p: Tensor, table: Tensor) -> Tensor:
    """What the table of shape (bins, K) says to each probability, shape (B, K)."""
    return table.detach().gather(0, probability_bins(log_p.detach().exp(), table.shape[0]))


def focal_loss(logits: Tensor, labels: Tensor, gamma: float | Tensor) -> Tensor:
    """Mean of -(1 - p)^gamma log p, p the probability of the right label; ``gamma`` >= 0 for all, or of shape (B,).

    With gamma 0 it is cross-entropy. Source: Lin et al., 2017 (eq. 4, without its class weights).
    """
    log_p = functional.log_softmax(logits.float(), dim=1).gather(1, labels[:, None]).squeeze(1)
    missing = -torch.expm1(log_p)  # 1 - p, exact also where p is near 1
    return -(missing.clamp_min(SMALLEST_SHARE) ** gamma * log_p).mean()


def gamma_by_probability(logits: Tensor, labels: Tensor, until: float, low: float, high: float) -> Tensor:
    """The focusing parameter of each sample, shape (B,): ``low`` where the right label's probability is below
    ``until``, else ``high``; no gradient. Source: Mukhoti et al., 2020 (FLSD-53: 5 below 0.2, else 3).
    """
    p = functional.softmax(logits.detach().float(), dim=1).gather(1, labels[:, None]).squeeze(1)
    return torch.where(p < until, low, high)


def brier_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the batch of the sum over labels of (p_k - y_k)^2, in [0, 2]. Source: Brier, 1950."""
    p = functional.softmax(logits.float(), dim=1)
    right = p.gather(1, labels[:, None]).squeeze(1)
    return ((p**2).sum(dim=1) - 2 * right + 1).mean()


def confidence_penalty(logits: Tensor) -> Tensor:
    """Minus the mean predictive entropy in nats, to be added to cross-entropy. Source: Pereyra et al., 2017."""
    return -predictive_entropy(logits).mean()


def mmce_loss(logits: Tensor, labels: Tensor, width: float) -> Tensor:
    """Maximum mean calibration error of the batch: the root of the mean over all pairs i, j of
    (a_i - c_i) (a_j - c_j) exp(-|c_i - c_j| / width), a being 1 where the prediction is right, c the confidence.
    Right and wrong rows count alike (the paper has a reweighted form, too).

    No gradient runs through a. The mean is held at or above 1e-8, so the term at or above 1e-4: the root has no slope
    at 0. Source: Kumar et al., 2018 (eq. 3, the Laplacian kernel of their experiments).
    """
    confidence, predictions = functional.softmax(logits.float(), dim=1).max(dim=1)
    gap = (predictions == labels).float() - confidence
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / width)
    return (gap[:, None] * gap[None, :] * kernel).mean().clamp_min(SMALLEST_SHARE).sqrt()


def probability_bins(probabilities: Tensor, n_bins: int) -> Tensor:
    """The bin in [0, n_bins) of each probability, for equal bins (a, b] whose first is closed on the left.

    In float32, so a probability within rounding of an edge may fall on either side; ``metrics`` decides it exactly.
    """
    return (probabilities * n_bins).ceil().long().sub_(1).clamp_(0, n_bins - 1)


def _accuracy_uncertainty_groups(
    logits: Tensor, labels: Tensor, threshold: float | Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """n_AC, n_AU, n_IC, n_IU: the soft sizes of the four groups (accurate or not, certain or not)."""
    confidence, predictions = functional.softmax(logits.float(), dim=1).max(dim=1)
    uncertainty = predictive_entropy(logits)
    right = predictions == labels
    certain = uncertainty.detach() <= threshold
    weight = torch.where(right, confidence, 1 - confidence)  # the paper's a_i
    certainty = 1 - torch.tanh(uncertainty)
    uncertain_part = weight * torch.tanh(uncertainty)
    certain_part = weight * certainty
    return (
        (certain_part * (right & certain)).sum(),
        (uncertain_part * (right & ~certain)).sum(),
        (certain_part * (~right & certain)).sum(),
        (uncertain_part * (~right & ~certain)).sum(),
    )


def _share(part: Tensor, other: Tensor) -> Tensor:
    """part / (part + other), and 0 with a gradient of 0 where both are 0."""
    whole = part + other
    return torch.where(whole > 0, part / whole.clamp_min(SMALLEST_SHARE), torch.zeros_like(whole))

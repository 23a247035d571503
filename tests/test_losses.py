"""Loss terms against hand-worked values, independent formulas and ugly batches."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

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
    predictive_entropy,
    probability_bins,
    rau_loss,
)
from benchmark.metrics import brier_score


def batch(seed: int = 0, n: int = 12, k: int = 5, scale: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(n, k, generator=generator)
    return logits.requires_grad_(), torch.randint(0, k, (n,), generator=generator)


def groups_by_hand(logits: torch.Tensor, labels: torch.Tensor, threshold: float) -> dict[str, float]:
    sizes = dict.fromkeys(("AC", "AU", "IC", "IU"), 0.0)
    for row, label in zip(logits.detach().double().tolist(), labels.tolist(), strict=True):
        powers = [math.exp(value - max(row)) for value in row]
        p = [power / sum(powers) for power in powers]
        u = -sum(value * math.log(value) for value in p if value > 0)
        right = p.index(max(p)) == label
        a = max(p) if right else 1 - max(p)
        certain = u <= threshold
        sizes[("A" if right else "I") + ("C" if certain else "U")] += a * (
            (1 - math.tanh(u)) if certain else math.tanh(u)
        )
    return sizes


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9, 1.3, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_rau_and_avuc_are_their_formulas(seed: int, threshold: float) -> None:
    logits, labels = batch(seed)
    n = groups_by_hand(logits, labels, threshold)
    pairs = [(n["AU"], n["AC"]), (n["IC"], n["IU"])]
    rau = math.log(1 + sum(part / (part + other) if part + other else 0.0 for part, other in pairs))
    assert rau_loss(logits, labels, threshold).item() == pytest.approx(rau, rel=1e-5)
    if n["AC"] + n["IU"]:
        avuc = math.log(1 + (n["AU"] + n["IC"]) / (n["AC"] + n["IU"]))
        assert avuc_loss(logits, labels, threshold).item() == pytest.approx(avuc, rel=1e-5)


UGLY = {
    "all right": (torch.eye(4) * 5, torch.arange(4)),
    "all wrong": (torch.eye(4) * 5, (torch.arange(4) + 1) % 4),
    "all certain": (torch.eye(4) * 200, torch.tensor([0, 1, 2, 2])),
    "all certain and wrong": (torch.eye(4) * 200, (torch.arange(4) + 1) % 4),
    "all uncertain": (torch.zeros(4, 4), torch.arange(4)),
    "one row, right": (torch.tensor([[3.0, 0.0, 0.0, 0.0]]), torch.tensor([0])),
    "one row, wrong": (torch.tensor([[3.0, 0.0, 0.0, 0.0]]), torch.tensor([1])),
    "huge": (torch.tensor([[1e30, 0.0, 0.0, 0.0], [0.0, -1e30, 0.0, 0.0]]), torch.tensor([1, 1])),
}


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("loss", [rau_loss, avuc_loss])
def test_ugly_batches_have_finite_losses_and_gradients(loss, name: str, threshold: float) -> None:
    logits, labels = UGLY[name]
    logits = logits.clone().requires_grad_()
    value = loss(logits, labels, torch.tensor(threshold))
    value.backward()
    assert torch.isfinite(value)
    assert value >= 0
    assert torch.isfinite(logits.grad).all()


def test_rau_is_zero_for_right_and_certain_and_for_wrong_and_uncertain() -> None:
    certain_right = (torch.eye(3) * 50, torch.arange(3))
    uncertain_wrong = (torch.tensor([[0.1, 0.0, 0.0]] * 3), torch.tensor([1, 1, 2]))
    assert float(rau_loss(*certain_right, 0.5)) == pytest.approx(0, abs=1e-6)
    assert float(rau_loss(*uncertain_wrong, 0.5)) == pytest.approx(0, abs=1e-6)


def test_losses_of_a_batch_are_not_means_of_its_parts() -> None:
    """Why the batch must never be split before the loss."""
    logits, labels = batch(1)
    halves = (rau_loss(logits[:6], labels[:6], 0.9) + rau_loss(logits[6:], labels[6:], 0.9)) / 2
    assert abs((halves - rau_loss(logits, labels, 0.9)).item()) > 1e-3


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_smoothing_spreads_over_the_other_labels(smoothing: float) -> None:
    logits, labels = batch(2)
    k = logits.shape[1]
    target = torch.full_like(logits, smoothing / (k - 1))
    target[torch.arange(len(labels)), labels] = 1 - smoothing
    expected = functional.cross_entropy(logits, target)
    assert cross_entropy(logits, labels, smoothing).item() == pytest.approx(expected.item(), rel=1e-6)


def test_entropy_is_scipys_in_nats() -> None:
    from scipy.stats import entropy

    logits, _ = batch(4)
    expected = entropy(torch.softmax(logits.detach().double(), dim=1).numpy(), axis=1)
    np.testing.assert_allclose(predictive_entropy(logits).detach().numpy(), expected, rtol=1e-5)
    assert float(predictive_entropy(torch.zeros(1, 8))) == pytest.approx(math.log(8))


def reverse_by_hand(logits: torch.Tensor, table: torch.Tensor) -> float:
    p = torch.softmax(logits.detach().double(), dim=1).numpy()
    n_bins = len(table)
    total = 0.0
    for row in p:
        for label, value in enumerate(row):
            q = float(table[min(max(math.ceil(value * n_bins) - 1, 0), n_bins - 1), label])
            if not math.isnan(q):
                total += value * (math.log(value) - math.log(max(q, 1e-8)))
    return total / len(p)


def shares(generator_seed: int = 1) -> torch.Tensor:
    """A table with empty bins and with a share of 0."""
    table = torch.rand(20, 5, generator=torch.Generator().manual_seed(generator_seed))
    table[3:9] = float("nan")
    table[0, 2] = 0.0
    return table


def test_poscal_is_torchs_divergence_of_flattened_tensors_as_its_published_code_has_it() -> None:
    logits, _ = batch(5)
    table = shares()
    p = torch.softmax(logits.detach(), dim=1)
    q = table.gather(0, probability_bins(p, 20)).nan_to_num(nan=0.0)
    expected = torch.nn.KLDivLoss(reduction="batchmean")(p.log().view(-1), q.view(-1))
    assert poscal_loss(logits, table).item() == pytest.approx(expected.item(), rel=1e-5)
    assert (q == 0).any()


def test_poscal_worked_by_hand() -> None:
    """p = (0.9, 0.1), q = (0.5, 0): half of 0.5 log(0.5 / 0.9). A share of 0 costs nothing, though p is not 0."""
    logits = torch.tensor([[0.9, 0.1]]).log()
    table = torch.zeros(20, 2)
    table[17, 0] = 0.5
    assert poscal_loss(logits, table).item() == pytest.approx(0.25 * math.log(0.5 / 0.9))
    assert poscal_loss(logits, torch.zeros(20, 2)).item() == 0
    reverse = 0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 1e-8)
    assert poscal_reverse_loss(logits, table).item() == pytest.approx(reverse, rel=1e-5)


def test_the_reverse_divergence_is_the_formula_and_skips_empty_bins() -> None:
    logits, _ = batch(5)
    assert poscal_reverse_loss(logits, shares()).item() == pytest.approx(reverse_by_hand(logits, shares()), rel=1e-4)


@pytest.mark.parametrize("loss", [poscal_loss, poscal_reverse_loss])
def test_an_empty_table_says_nothing(loss) -> None:
    logits, _ = batch(6)
    value = loss(logits, torch.full((20, 5), float("nan")))
    value.backward()
    assert value.item() == 0
    assert torch.count_nonzero(logits.grad) == 0


@pytest.mark.parametrize("loss", [poscal_loss, poscal_reverse_loss])
def test_an_empty_bin_has_no_gradient_but_the_others_have(loss) -> None:
    logits = torch.tensor([[2.0, 0.0]], requires_grad=True)  # p = 0.88, 0.12
    table = torch.full((10, 2), float("nan"))
    table[8, 0] = 0.5
    loss(logits, table).backward()
    assert torch.isfinite(logits.grad).all()
    assert torch.count_nonzero(logits.grad) == 2  # through p_0 alone, which depends on both logits


@pytest.mark.parametrize("loss", [poscal_loss, poscal_reverse_loss])
def test_no_gradient_runs_through_the_table(loss) -> None:
    logits, _ = batch(7)
    logits.requires_grad_()
    table = torch.full((20, 5), 0.2, requires_grad=True)
    loss(logits, table).backward()
    assert table.grad is None
    assert logits.grad.abs().sum() > 0


@pytest.mark.parametrize("loss", [poscal_loss, poscal_reverse_loss])
def test_a_probability_of_nothing_and_a_table_of_nothing_stay_finite(loss) -> None:
    logits = torch.tensor([[300.0, -300.0, 0.0]], requires_grad=True)
    table = torch.tensor([[0.0, 0.3, 1.0]]).repeat(20, 1)
    value = loss(logits, table)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


def test_bins_of_tensors_are_bins_of_arrays() -> None:
    from benchmark.metrics import bin_indices

    values = torch.rand(1000, generator=torch.Generator().manual_seed(0))
    ours = probability_bins(values, 20).numpy()
    np.testing.assert_array_equal(ours, bin_indices(values.double().numpy(), 20))
    assert probability_bins(torch.tensor([0.0, 1.0]), 20).tolist() == [0, 19]


@pytest.mark.parametrize("loss", [cross_entropy, lambda x, y: rau_loss(x, y, 0.7), lambda x, y: avuc_loss(x, y, 0.7)])
def test_gradients_are_those_of_finite_differences(loss) -> None:
    generator = torch.Generator().manual_seed(8)
    base = torch.randn(6, 4, generator=generator)
    labels = torch.randint(0, 4, (6,), generator=generator)
    logits = base.clone().requires_grad_()
    loss(logits, labels).backward()
    direction = torch.randn(6, 4, generator=generator)
    step = 1e-3
    slope = (loss(base + step * direction, labels) - loss(base - step * direction, labels)) / (2 * step)
    assert float((logits.grad * direction).sum()) == pytest.approx(float(slope), rel=2e-2, abs=1e-3)


def test_losses_are_float32_whatever_comes_in() -> None:
    logits, labels = batch(9)
    half = logits.detach().bfloat16()
    for value in (cross_entropy(half, labels), rau_loss(half, labels, 0.5), avuc_loss(half, labels, 0.5)):
        assert value.dtype == torch.float32


# --- beyond the paper ------------------------------------------------------------------------------------------------

TWO = (torch.log(torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1]])), torch.tensor([0, 0]))  # right with 0.7, wrong


def test_focal_loss_by_hand() -> None:
    logits, labels = TWO
    wanted = -(0.3**3 * math.log(0.7) + 0.7**3 * math.log(0.3)) / 2
    assert focal_loss(logits, labels, 3.0).item() == pytest.approx(wanted, rel=1e-5)
    assert focal_loss(*batch(3), 0.0).item() == pytest.approx(functional.cross_entropy(*batch(3)).item(), rel=1e-6)


def test_focal_loss_with_a_gamma_for_each_sample() -> None:
    logits, labels = TWO
    gamma = gamma_by_probability(logits, labels, until=0.5, low=5.0, high=3.0)
    assert gamma.tolist() == [3.0, 5.0]
    assert gamma_by_probability(logits, labels, until=0.29, low=5.0, high=3.0).tolist() == [3.0, 3.0]
    wanted = -(0.3**3 * math.log(0.7) + 0.7**5 * math.log(0.3)) / 2
    assert focal_loss(logits, labels, gamma).item() == pytest.approx(wanted, rel=1e-5)


def test_brier_loss_by_hand_and_as_the_metric() -> None:
    logits, labels = TWO
    wanted = ((0.3**2 + 0.2**2 + 0.1**2) + (0.7**2 + 0.6**2 + 0.1**2)) / 2
    assert brier_loss(logits, labels).item() == pytest.approx(wanted, rel=1e-5)
    logits, labels = batch(5)
    probabilities = functional.softmax(logits.detach().double(), dim=1).numpy()
    assert brier_loss(logits, labels).item() == pytest.approx(brier_score(probabilities, labels.numpy()), rel=1e-5)


def test_the_confidence_penalty_is_minus_the_entropy() -> None:
    logits, _ = TWO
    entropies = [-sum(p * math.log(p) for p in row) for row in ([0.7, 0.2, 0.1], [0.3, 0.6, 0.1])]
    assert confidence_penalty(logits).item() == pytest.approx(-sum(entropies) / 2, rel=1e-5)


def test_mmce_by_hand_over_all_pairs() -> None:
    logits, labels = batch(2)
    confidence = functional.softmax(logits.detach().double(), dim=1).max(dim=1)
    gaps = (confidence.indices == labels).double() - confidence.values
    total = 0.0
    for gap, sure in zip(gaps.tolist(), confidence.values.tolist(), strict=True):
        for other, other_sure in zip(gaps.tolist(), confidence.values.tolist(), strict=True):
            total += gap * other * math.exp(-abs(sure - other_sure) / 0.2)
    assert mmce_loss(logits, labels, 0.2).item() == pytest.approx(math.sqrt(total / len(labels) ** 2), rel=1e-4)
    logits, labels = TWO
    pairs = [0.3**2, 0.6**2, 2 * 0.3 * -0.6 * math.exp(-0.1 / 0.2)]
    assert mmce_loss(logits, labels, 0.2).item() == pytest.approx(math.sqrt(sum(pairs) / 4), rel=1e-4)


BEYOND = {
    "focal": lambda logits, labels: focal_loss(logits, labels, 3.0),
    "focal by probability": lambda logits, labels: focal_loss(
        logits, labels, gamma_by_probability(logits, labels, 0.2, 5.0, 3.0)
    ),
    "brier": brier_loss,
    "confidence penalty": lambda logits, labels: confidence_penalty(logits),
    "mmce": lambda logits, labels: mmce_loss(logits, labels, 0.2),
    "mixup": lambda logits, labels: mixup_cross_entropy(logits, labels, torch.arange(len(labels)).flip(0), 0.3),
}


def test_mixup_is_cross_entropy_of_mixed_vectors_with_mixed_labels() -> None:
    """Against torch's cross-entropy with label shares, through a linear head on explicitly mixed encoded vectors."""
    generator = torch.Generator().manual_seed(4)
    encoded, labels = torch.randn(9, 5, generator=generator), torch.randint(0, 4, (9,), generator=generator)
    partners, share = torch.randperm(9, generator=generator), 0.35
    head = torch.nn.Linear(5, 4)
    one_hot = torch.nn.functional.one_hot(labels, 4).float()
    mixed = head(share * encoded + (1 - share) * encoded[partners])
    expected = torch.nn.functional.cross_entropy(mixed, share * one_hot + (1 - share) * one_hot[partners])
    found = mixup_cross_entropy(head(encoded), labels, partners, share)
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)


def test_mixup_by_hand() -> None:
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1])
    # mixed: [1.5, 0] and [0.5, 0]; at a lead of d the first label costs log(1 + exp(-d)), the other d more
    first, second = math.log1p(math.exp(-1.5)), math.log1p(math.exp(-0.5))
    expected = (first + 0.25 * 1.5 + second + 0.75 * 0.5) / 2
    found = mixup_cross_entropy(logits, labels, torch.tensor([1, 0]), 0.75)
    assert found.item() == pytest.approx(expected, abs=1e-6)
    assert mixup_cross_entropy(logits, labels, torch.tensor([1, 0]), 1.0).item() == pytest.approx(
        cross_entropy(logits, labels).item()
    )


@pytest.mark.parametrize("loss", BEYOND.values(), ids=BEYOND)
@pytest.mark.parametrize("name", UGLY)
def test_ugly_batches_are_finite_beyond_the_paper_too(loss, name: str) -> None:
    logits, labels = (tensor.clone() for tensor in UGLY[name])
    logits = logits.float().requires_grad_()
    value = loss(logits, labels)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("loss", BEYOND.values(), ids=BEYOND)
def test_their_gradients_are_those_of_finite_differences(loss) -> None:
    logits, labels = batch(7, n=6, k=4)
    loss(logits, labels).backward()
    step = 1e-2
    for row, column in ((0, 0), (2, 1), (5, 3)):
        ends = []
        for sign in (1, -1):
            moved = logits.detach().clone()
            moved[row, column] += sign * step
            ends.append(loss(moved, labels).item())
        assert logits.grad[row, column].item() == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-3)

"""What a training does to a device, told without one: the operations of its steps are watched."""

from collections import Counter
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmark.models import build_head
from benchmark.registry import Inputs, Registry, Subject, resolve_run
from benchmark.specs import RunSpec
from benchmark.training.gradients import backward
from benchmark.training.loop import train
from benchmark.training.objective import Objective
from benchmark.training.prediction import Model
from tests.test_training import CPU, Bench

METHODS = [
    "bert",
    "ls",
    "poscal",
    "avuc",
    "hs_rau",
    "focal_by_probability",
    "brier",
    "confidence_penalty",
    "mmce",
    "mixup",
]


@pytest.fixture(scope="module")
def bench(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(registry, tmp_path_factory.mktemp("bench"))


class Waits(TorchDispatchMode):
    """Counts what makes the host wait for a device: reading a value, or a shape that depends on values."""

    READ = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "bincount", "equal")

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):  # type: ignore[no-untyped-def]
        name = function.overloadpacket.__name__
        by_mask = name in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in arguments[1]
        )
        if name in self.READ or by_mask:
            self.counts[name] += 1
        return function(*arguments, **(keywords or {}))


@pytest.mark.parametrize("method", METHODS)
def test_no_step_waits_for_the_device(bench: Bench, method: str) -> None:
    """An epoch may read its sums; a step reads nothing: twice the steps wait no more often."""

    def waits(batch_size: int) -> Counter[str]:
        run = bench.run(method, epochs=2, batch_size=batch_size, learning_rate=1e-2)
        data, encoder, _ = bench.inputs(run)
        with Waits() as counted:
            assert train(run, data, encoder, CPU).steps == 2 * 96 // batch_size
        return counted.counts

    assert waits(24) == waits(48)


def test_waits_are_seen() -> None:
    values = torch.tensor([0.5, 1.5])
    with Waits() as counted:
        float(values[0])
        values[values > 1]
        values[torch.tensor([0, 1])]
        torch.nonzero(values)
    assert counted.counts == {"_local_scalar_dense": 1, "index": 1, "nonzero": 1}


class Mixtures(TorchDispatchMode):
    """Notes operations on tensors of two devices, copies between them and single numbers aside; and copies from the
    host to a device that the host waits for: those not asked to go by themselves, or from memory that is not pinned.
    """

    COPIES = ("_to_copy", "copy_", "_copy_from")

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):  # type: ignore[no-untyped-def]
        leaves = tree_leaves((arguments, keywords or {}))
        devices = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.ndim}
        name = function.overloadpacket.__name__
        if len(devices) > 1 and name not in self.COPIES:
            self.seen.append(name)
        if name == "_to_copy" and self._is_upload(arguments[0], keywords or {}):
            self.seen.append("blocking copy")
        return function(*arguments, **(keywords or {}))

    @staticmethod
    def _is_upload(tensor: torch.Tensor, keywords: dict[str, Any]) -> bool:
        target = keywords.get("device")
        if tensor.device.type != "cpu" or target is None or torch.device(target).type == "cpu":
            return False
        return not keywords.get("non_blocking") or tensor.data_ptr() not in PINNED


PINNED: set[int] = set()  # where tensors are that were asked to be pinned, which takes a GPU


def noted_as_pinned(tensor: torch.Tensor) -> torch.Tensor:
    PINNED.add(tensor.data_ptr())
    return tensor


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Torch's device "meta", which computes shapes only and so is on every machine."""
    monkeypatch.setattr(torch.Tensor, "pin_memory", noted_as_pinned)
    PINNED.clear()
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: False)  # does not know the device
    return torch.device("meta")


def mixtures_of_two_steps(bench: Bench, run: RunSpec, device: torch.device, pieces: int = 1) -> list[str]:
    """The operations on tensors of two devices in two steps on ``device``, every loss term having joined."""
    data, encoder, _ = bench.inputs(run)
    encoder.to(device).train()
    head = build_head(run.head, encoder.hidden, data.n_labels, torch.Generator()).to(device)
    objective = Objective(run.loss, data.n_labels, 4, 6, device, 0)
    for term in objective.terms:
        if hasattr(term, "starter"):
            term.starter.joined = True
    model = Model(encoder, head, data.train.texts, device, nullcontext)
    labels = torch.from_numpy(data.train.labels).to(device)[:16]
    with Mixtures() as mixtures:
        for _ in range(2):
            logits = backward(model, objective, np.arange(16), labels, pieces)
            objective.after_step(logits, labels, 5)
    assert logits.device == device
    return mixtures.seen


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_a_step_on_a_device_touches_no_tensor_of_another(
    bench: Bench, device: torch.device, method: str, pieces: int
) -> None:
    assert mixtures_of_two_steps(bench, bench.run(method), device, pieces) == []


def test_attention_drops_out_at_its_rate_on_a_device(
    bench: Bench, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = set()
    attention = torch.nn.functional.scaled_dot_product_attention

    def noted(query: torch.Tensor, *others: torch.Tensor, dropout_p: float = 0.0, **keywords: object) -> torch.Tensor:
        if query.device == device:
            rates.add(dropout_p)
        return attention(query, *others, dropout_p=dropout_p, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", noted)
    mixtures_of_two_steps(bench, bench.run("bert"), device)
    assert rates == {0.1}


@pytest.mark.parametrize("role", ["albert_tiny", "xlnet", "bert_large"])
def test_nor_does_one_of_another_encoder(bench: Bench, registry: Registry, device: torch.device, role: str) -> None:
    run = resolve_run(registry, "tiny", Subject("tnews", role, "hs_rau"), 0, Inputs())
    assert mixtures_of_two_steps(bench, run, device) == []


def test_mixtures_are_seen() -> None:
    with Mixtures() as mixtures:
        torch.empty(4, 4, device="meta")[torch.tensor([0, 1])]
        torch.empty(4, device="meta") * torch.tensor(2.0)
        torch.zeros(4).to("meta")
        torch.zeros(4).to("meta", non_blocking=True)
        noted_as_pinned(pinned := torch.zeros(4)).to("meta", non_blocking=True)
        pinned.to(torch.float64)
    assert mixtures.seen == ["index", "blocking copy", "blocking copy"]

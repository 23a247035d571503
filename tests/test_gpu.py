"""A whole training on a GPU beside the same one on the CPU. What a machine without one can tell of it is told in
``test_device.py``.
"""

import numpy as np
import pytest
import torch

from benchmark.registry import Registry
from benchmark.training.loop import Trained, train
from benchmark.training.prediction import Model
from tests.test_training import CPU, Bench, without_dropout

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
GPU = torch.device("cuda")
METHODS = ["bert", "poscal", "avuc", "hs_rau", "mixup"]


@pytest.fixture(scope="module")
def bench(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(registry, tmp_path_factory.mktemp("bench"))


def trained(bench: Bench, method: str, device: torch.device, dropout: bool, pieces: int = 1) -> Trained:
    run = bench.run(method, epochs=4)
    data, encoder, _ = bench.inputs(run)
    if not dropout:
        run = without_dropout(run, encoder)
    return train(run, data, encoder.to(device), device, pieces=pieces, mc_dropout=[2])


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("method", METHODS)
def test_without_dropout_a_training_is_that_of_the_cpu(bench: Bench, method: str, pieces: int) -> None:
    there, here = (trained(bench, method, device, dropout=False, pieces=pieces) for device in (GPU, CPU))
    np.testing.assert_allclose(there.test_logits, here.test_logits, atol=2e-3)
    np.testing.assert_allclose(there.mc_dropout[2], here.mc_dropout[2], atol=2e-3)
    assert [epoch.joined.keys() for epoch in there.epochs] == [epoch.joined.keys() for epoch in here.epochs]


@pytest.mark.parametrize("method", METHODS)
def test_with_dropout_a_training_in_pieces_computes_each_twice_alike(
    bench: Bench, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time for its gradient; other masks would be another loss's gradient."""
    seen: dict[tuple[int, ...], list[torch.Tensor]] = {}
    compute = Model.__call__

    def noted(model: Model, batch: np.ndarray) -> torch.Tensor:
        logits = compute(model, batch)
        if model.encoder.training and not torch.is_inference_mode_enabled():
            seen.setdefault(tuple(batch), []).append(logits.detach().clone())
        return logits

    monkeypatch.setattr(Model, "__call__", noted)
    trained(bench, method, GPU, dropout=True, pieces=3)
    assert {len(found) % 2 for found in seen.values()} == {0}
    for found in seen.values():
        for first, second in zip(found[::2], found[1::2], strict=True):
            torch.testing.assert_close(first, second)


@pytest.mark.parametrize("method", [*METHODS, "focal_by_probability", "mmce"])
def test_no_step_waits_for_the_gpu(bench: Bench, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does what is done between two steps of an epoch; between epochs their sums are read. Watched are two steps
    within the last epoch, by when every term has joined.
    """
    run = bench.run(method, epochs=2, batch_size=16)
    data, encoder, _ = bench.inputs(run)
    steps = 0
    compute = Model.__call__

    def watched(model: Model, batch: np.ndarray) -> torch.Tensor:
        nonlocal steps
        steps += 1
        torch.cuda.set_sync_debug_mode("error" if steps in (9, 10) else "default")
        return compute(model, batch)

    monkeypatch.setattr(Model, "__call__", watched)
    try:
        train(run, data, encoder.to(GPU), GPU)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert steps == 2 * 96 // 16 + 2  # and the held-out rows

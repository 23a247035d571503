"""The objective and the loop: when terms join, what tables hold, that a run is its recipe and seed and nothing else."""

import math
import platform
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import XLNetConfig, XLNetModel

from benchmark import losses
from benchmark.data import load_corpus
from benchmark.errors import UserError
from benchmark.losses import cross_entropy, poscal_loss, poscal_reverse_loss
from benchmark.metrics import softmax
from benchmark.models import (
    TextEncoder,
    TokenisedTexts,
    build_encoder,
    build_head,
    keep_tokens,
    load_encoder,
    load_tokenizer,
    tokenise,
)
from benchmark.registry import Inputs, Registry, Subject, encoder_name, load_registry, resolve_run
from benchmark.specs import (
    CrossEntropyTerm,
    MixupTerm,
    PoscalTerm,
    RunSpec,
    StartByEntropy,
    StartByEpoch,
    UncertaintyTerm,
    sub_seed,
)
from benchmark.training import prediction
from benchmark.training.gradients import backward
from benchmark.training.loop import LabelledTexts, Trained, TrainingData, train
from benchmark.training.objective import Diverged, Objective
from benchmark.training.optimiser import build_optimiser, set_learning_rate
from benchmark.training.prediction import Model, predict, predict_with_dropout
from tests.conftest import EXPERIMENTS

CPU = torch.device("cpu")
BY_ENTROPY = StartByEntropy(until_entropy=1.0, at_least_epochs=1, at_most_share=0.5)


def plain() -> CrossEntropyTerm:
    return CrossEntropyTerm(term="cross_entropy", weight=1.0, smoothing=0.0)


def rau(**changes: object) -> UncertaintyTerm:
    default = {"term": "rau", "weight": 3.0, "start": BY_ENTROPY, "threshold": "mean_entropy"}
    return UncertaintyTerm.model_validate(default | changes)


def poscal(**changes: object) -> PoscalTerm:
    default = {
        "term": "poscal",
        "weight": 1.0,
        "start": StartByEpoch(after_epochs=0),
        "bins": 10,
        "updates_per_epoch": 1,
        "empty_bin": "ignore",
    }
    return PoscalTerm.model_validate(default | changes)


def logits_of_entropy(entropy: float, k: int = 4, n: int = 8) -> torch.Tensor:
    """Logits whose rows all have that entropy: one label at a logit found by bisection, the rest equal."""
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        p = math.exp(middle) / (math.exp(middle) + k - 1)
        rest = (1 - p) / (k - 1)
        u = -p * math.log(p) - (k - 1) * rest * math.log(rest) if rest > 0 else 0.0
        low, high = (middle, high) if u > entropy else (low, middle)
    logits = torch.zeros(n, k)
    logits[:, 0] = low
    return logits


def epochs(objective: Objective, entropies: list[float], k: int = 4) -> list[dict]:
    labels = torch.zeros(8, dtype=torch.long)
    events = []
    for entropy in entropies:
        logits = logits_of_entropy(entropy, k)
        objective(logits, labels)
        objective.after_step(logits, labels, 0)
        events.append(objective.after_epoch().joined)
    return events


# --- start rules and thresholds --------------------------------------------------------------------------------------


def test_rau_joins_when_the_mean_entropy_has_come_down_and_takes_it_as_threshold() -> None:
    objective = Objective((plain(), rau()), 8, 20, 1, CPU, 0)
    events = epochs(objective, [1.3, 1.1, 0.8, 0.5, 0.4], k=8)
    assert [bool(event) for event in events] == [False, False, True, False, False]
    assert events[2]["rau"]["after_epochs"] == 3
    assert events[2]["rau"]["threshold"] == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize("k", [2, 4])
def test_with_few_labels_the_entropy_comes_down_to_half_of_that_at_chance_first(k: int) -> None:
    chance = math.log(k)
    objective = Objective((plain(), rau()), k, 20, 1, CPU, 0)
    events = epochs(objective, [0.99 * chance, 0.51 * chance, 0.49 * chance], k)
    assert [bool(event) for event in events] == [False, False, True]
    assert events[2]["rau"]["threshold"] == pytest.approx(0.49 * chance, abs=1e-4)


def test_an_entropy_that_never_comes_down_joins_at_half_with_a_clipped_threshold() -> None:
    events = epochs(Objective((plain(), rau()), 4, 6, 1, CPU, 0), [1.38] * 6)
    assert [bool(event) for event in events] == [False, False, True, False, False, False]
    assert events[2]["rau"]["threshold"] == 1.0


def test_at_least_one_epoch_comes_first() -> None:
    events = epochs(Objective((plain(), rau()), 4, 10, 1, CPU, 0), [0.1, 0.1])
    assert events[0]["rau"]["after_epochs"] == 1
    late = rau(start=StartByEntropy(until_entropy=1.0, at_least_epochs=2, at_most_share=0.5))
    assert not epochs(Objective((plain(), late), 4, 10, 1, CPU, 0), [0.1, 0.1])[0]


def test_a_table_that_is_first_made_after_the_last_step_is_refused() -> None:
    with pytest.raises(UserError, match="The only table of poscal would be made after the last step"):
        Objective((plain(), poscal(updates_per_epoch=3)), 4, 1, 1, CPU, 0)
    Objective((plain(), poscal(updates_per_epoch=3)), 4, 1, 2, CPU, 0)
    Objective((plain(), poscal(updates_per_epoch=3)), 4, 2, 1, CPU, 0)


@pytest.mark.parametrize("n_epochs", [1, 2, 3])
def test_short_trainings_still_have_an_initial_epoch(n_epochs: int) -> None:
    events = epochs(Objective((plain(), rau()), 4, n_epochs, 1, CPU, 0), [1.3] * n_epochs)
    joined = [index for index, event in enumerate(events, start=1) if event]
    assert joined == ([1] if n_epochs > 1 else [])


def test_a_fixed_start_and_a_fixed_threshold() -> None:
    term = rau(start=StartByEpoch(after_epochs=2), threshold=0.4)
    events = epochs(Objective((plain(), term), 4, 10, 1, CPU, 0), [0.1, 0.1, 0.1])
    assert [event.get("rau") for event in events] == [None, {"after_epochs": 2, "threshold": pytest.approx(0.4)}, None]
    at_once = Objective((plain(), rau(start=StartByEpoch(after_epochs=0), threshold=0.4)), 4, 10, 1, CPU, 0)
    logits = logits_of_entropy(0.2)
    joined = float(at_once(logits, torch.ones(8, dtype=torch.long)))
    assert joined > float(cross_entropy(logits, torch.ones(8, dtype=torch.long)))


def test_before_it_joins_a_term_adds_nothing() -> None:
    objective = Objective((plain(), rau(), poscal()), 4, 10, 1, CPU, 0)
    logits, labels = logits_of_entropy(1.2), torch.ones(8, dtype=torch.long)
    assert float(objective(logits, labels)) == pytest.approx(float(cross_entropy(logits, labels)))
    record = objective.after_epoch()
    assert record.terms[1:] == [None, None]


# --- the empirical posterior -----------------------------------------------------------------------------------------


def test_the_table_holds_shares_of_labels_by_bin_since_the_last_update() -> None:
    objective = Objective((plain(), poscal()), 2, 5, 1, CPU, 0)
    p = torch.tensor([[0.95, 0.05], [0.92, 0.08], [0.55, 0.45], [0.05, 0.95]])
    labels = torch.tensor([0, 1, 0, 1])
    objective(p.log(), labels)
    objective.after_step(p.log(), labels, 0)
    table = objective.terms[1].table
    assert table.shape == (10, 2)
    assert table[9].tolist() == [0.5, 1.0]  # label 0: rows 1 and 2, one of them 0; label 1: row 4 alone
    assert table[5, 0] == 1.0
    assert table[4, 1] == 0.0
    assert torch.isnan(table[7]).all()
    again = torch.tensor([[0.75, 0.25]])
    objective.after_step(again.log(), torch.tensor([0]), 0)
    table = objective.terms[1].table
    assert table[7, 0] == 1.0
    assert torch.isnan(table[9]).all()  # what came before the last update is forgotten


def test_an_empty_bin_may_be_a_share_of_zero() -> None:
    objective = Objective((plain(), poscal(empty_bin="zero")), 2, 5, 1, CPU, 0)
    objective.after_step(torch.tensor([[0.95, 0.05]]).log(), torch.tensor([0]), 0)
    assert objective.terms[1].table[7].tolist() == [0.0, 0.0]


def test_the_divergence_has_the_direction_that_is_declared() -> None:
    p, labels = torch.tensor([[0.95, 0.05], [0.92, 0.08], [0.55, 0.45]]), torch.tensor([0, 1, 0])
    for divergence, loss in (("forward", poscal_loss), ("reverse", poscal_reverse_loss)):
        objective = Objective((poscal(divergence=divergence),), 2, 5, 1, CPU, 0)
        objective.after_step(p.log(), labels, 0)
        assert float(objective(p.log(), labels)) == float(loss(p.log(), objective.terms[0].table)) != 0


def test_a_prior_row_lets_few_rows_say_little() -> None:
    """Ten bins; 0.95 is seen twice for label 0 and held once, 0.05 twice for label 1 and held once."""
    objective = Objective((plain(), poscal(empty_bin="prior_row")), 2, 5, 1, CPU, 0)
    objective.after_step(torch.tensor([[0.95, 0.05], [0.95, 0.05]]).log(), torch.tensor([0, 1]), 0)
    table = objective.terms[1].table
    assert table[9].tolist() == pytest.approx([(1 + 0.95) / 3, 0.95])
    assert table[0].tolist() == pytest.approx([0.05, (1 + 0.05) / 3])
    assert table[7].tolist() == pytest.approx([0.75, 0.75])


@pytest.mark.parametrize(
    ("updates", "steps", "expected"), [(1, 7, [6]), (3, 7, [1, 3, 6]), (5, 5, [0, 1, 2, 3, 4]), (5, 2, [0, 1])]
)
def test_updates_are_spread_over_the_epoch_and_one_ends_it(updates: int, steps: int, expected: list[int]) -> None:
    objective = Objective((poscal(updates_per_epoch=updates),), 2, 5, steps, CPU, 0)
    assert sorted(objective.terms[0].update_after) == expected


def test_a_late_posterior_term_keeps_its_table_ready() -> None:
    term = poscal(start=StartByEpoch(after_epochs=2))
    objective = Objective((plain(), term), 4, 5, 1, CPU, 0)
    events = epochs(objective, [0.5, 0.5, 0.5])
    assert events[1] == {"poscal": {"after_epochs": 2}}
    assert objective.terms[1].table is not None


# --- records ---------------------------------------------------------------------------------------------------------


def test_epoch_records_are_means_over_samples_not_over_batches() -> None:
    objective = Objective((plain(),), 3, 5, 2, CPU, 0)
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(7, 3, generator=generator), torch.randint(0, 3, (7,), generator=generator)
    for part in (slice(0, 5), slice(5, 7)):
        objective(logits[part], labels[part])
    record = objective.after_epoch()
    assert record.loss == pytest.approx(float(cross_entropy(logits, labels)), rel=1e-5)
    assert record.accuracy == pytest.approx(float((logits.argmax(1) == labels).float().mean()))


def test_a_term_that_joins_within_an_epoch_is_recorded_over_what_it_acted_on() -> None:
    term = poscal(start=StartByEpoch(after_epochs=0), updates_per_epoch=2)
    objective = Objective((plain(), term), 3, 5, 4, CPU, 0)
    generator = torch.Generator().manual_seed(0)
    values, sizes = [], []
    for step, size in enumerate((5, 3, 4, 2)):
        logits, labels = torch.randn(size, 3, generator=generator), torch.randint(0, 3, (size,), generator=generator)
        if (value := objective.terms[1].value(logits, labels)) is not None:
            values.append(float(value))
            sizes.append(size)
        objective(logits, labels)
        objective.after_step(logits, labels, step)
    assert sizes == [4, 2]
    assert objective.after_epoch().terms[1] == pytest.approx(np.average(values, weights=sizes), rel=1e-5)
    assert len(values) == 2
    assert min(values) > 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_ends_the_run_in_words(bad: float) -> None:
    objective = Objective((plain(),), 3, 5, 1, CPU, 0)
    objective(torch.tensor([[bad, 0.0, 0.0]]), torch.tensor([1]))
    with pytest.raises(Diverged, match="not finite in epoch 1"):
        objective.after_epoch()


# --- whole trainings -------------------------------------------------------------------------------------------------


class Bench:
    """Trains runs of the tiny profile, always from the pretrained weights."""

    def __init__(self, registry: Registry, folder: Path) -> None:
        self.registry = registry
        self.folder = folder
        self.cache: dict[str, tuple[TextEncoder, dict]] = {}

    def run(
        self, method: str, seed: int = 0, corruption: float = 0.0, dataset: str = "tnews", **optimisation
    ) -> RunSpec:
        run = resolve_run(self.registry, "tiny", Subject(dataset, "base", method, corruption), seed, Inputs())
        return run.model_copy(update={"optimisation": run.optimisation.model_copy(update=optimisation)})

    def inputs(self, run: RunSpec) -> tuple[TrainingData, TextEncoder, tuple[str, ...]]:
        """Tokenised data, the pretrained encoder, and the training texts as they are."""
        name = run.encoder.encoder
        declared = self.registry.encoders[name]
        build_encoder(declared, self.folder / name)
        corpus = load_corpus(run.data.dataset, self.registry.datasets[run.data.dataset], [])
        tokenizer = load_tokenizer(declared, self.folder / name)
        parts = {
            split: LabelledTexts(tokenise(tokenizer, corpus.split(split).texts, 16), corpus.split(split).labels)
            for split in ("train", "validation", "test")
        }
        data = TrainingData(**parts, n_labels=corpus.n_labels)
        return data, load_encoder(declared, self.folder / name), corpus.train.texts

    def train(self, run: RunSpec, pieces: int = 1, dropout: bool = True) -> Trained:
        data, encoder, _ = self.inputs(run)
        if not dropout:
            run = without_dropout(run, encoder)
        return train(run, data, encoder, CPU, pieces=pieces)


@pytest.mark.parametrize("role", ["base", "albert_tiny", "xlnet", "bert_large"])
def test_rows_of_the_embedding_that_no_text_asks_for_change_nothing(
    registry: Registry, tmp_path: Path, role: str
) -> None:
    bench = Bench(registry, tmp_path)
    run = resolve_run(registry, "tiny", Subject("tnews", role, "bert"), 0, Inputs())
    run = run.model_copy(
        update={"optimisation": run.optimisation.model_copy(update={"epochs": 2, "precision": "float32"})}
    )
    data, whole, _ = bench.inputs(run)
    _, cut, _ = bench.inputs(run)
    before = sum(parameter.numel() for parameter in cut.parameters())
    # a few words are left out of the texts, so that there is something to leave out of the embedding
    few = [replace(part, texts=common(part.texts)) for part in (data.train, data.validation, data.test)]
    data = replace(data, train=few[0], validation=few[1], test=few[2])
    keep_tokens(cut, [part.texts.tokens for part in few])
    assert sum(parameter.numel() for parameter in cut.parameters()) < before
    ours, plain = train(run, data, cut, CPU), train(run, data, whole, CPU)
    np.testing.assert_allclose(ours.test_logits, plain.test_logits, atol=1e-5)
    assert [epoch.loss for epoch in ours.epochs] == pytest.approx([epoch.loss for epoch in plain.epochs], abs=1e-5)
    embedding = cut.transformer.get_input_embeddings()
    missing = next(token for token in range(80) if embedding.rows[token] < 0)
    with pytest.raises((IndexError, RuntimeError)):
        embedding(torch.tensor([missing]))


def common(texts: TokenisedTexts) -> TokenisedTexts:
    """The same texts in fewer words: every token above 40 is one of those below."""
    return replace(texts, tokens=np.where(texts.tokens > 40, texts.tokens - 35, texts.tokens).astype(np.int32))


def without_dropout(run: RunSpec, encoder: TextEncoder) -> RunSpec:
    """The run with none in the head; none in the encoder, either."""
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return run.model_copy(update={"head": run.head.model_copy(update={"dropout": 0.0})})


@pytest.fixture(scope="module")
def bench(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(registry, tmp_path_factory.mktemp("bench"))


def test_the_same_recipe_and_seed_give_the_same_logits_bit_by_bit(bench: Bench) -> None:
    first = bench.train(bench.run("hs_rau"))
    torch.rand(17)  # whatever was drawn before
    np.random.default_rng().random()
    second = bench.train(bench.run("hs_rau"))
    np.testing.assert_array_equal(first.test_logits, second.test_logits)
    np.testing.assert_array_equal(first.validation_logits, second.validation_logits)
    assert first.epochs == second.epochs


def test_another_seed_gives_another_result(bench: Bench) -> None:
    assert not np.array_equal(bench.train(bench.run("bert")).test_logits, bench.train(bench.run("bert", 1)).test_logits)


@pytest.mark.parametrize("purpose", ["order", "head", "dropout"])
def test_each_source_of_chance_follows_the_seed(bench: Bench, purpose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all others frozen, it alone makes two seeds differ."""
    frozen = {"order", "head", "dropout"} - {purpose}

    def only_that(seed: int, *of: str) -> int:
        return sub_seed(0 if of[0] in frozen else seed, *of)

    monkeypatch.setattr("benchmark.training.loop.sub_seed", only_that)
    first, second = (bench.train(bench.run("bert", seed)).test_logits for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_scores_are_made_without_dropout_and_passes_with_all_of_it(bench: Bench) -> None:
    run = bench.run("bert")
    data, encoder, _ = bench.inputs(run)
    head = build_head(run.head, encoder.hidden, data.n_labels, torch.Generator().manual_seed(0))
    model = Model(encoder.train(), head.train(), data.test.texts, CPU, nullcontext)
    once = predict(model)
    assert (encoder.training, head.training) == (False, False)
    np.testing.assert_array_equal(once, predict(model))
    with torch.inference_mode():
        np.testing.assert_array_equal(once, model(np.arange(len(data.test.texts))).numpy())
    for silent, module in (("encoder", encoder), ("head", head)):
        dropouts = [part for part in module.modules() if isinstance(part, torch.nn.Dropout)]
        assert dropouts, silent
        rates = [part.p for part in dropouts]
        for part in dropouts:
            part.p = 0.0
        assert not np.array_equal(predict_with_dropout(model, 1), predict_with_dropout(model, 1)), silent
        for part, rate in zip(dropouts, rates, strict=True):
            part.p = rate


def test_methods_differ_and_learn(bench: Bench) -> None:
    logits, accuracies = {}, {}
    for method in ("bert", "ls", "poscal", "avuc", "hs_rau"):
        trained = bench.train(bench.run(method, epochs=20, learning_rate=1e-2))
        logits[method] = trained.test_logits
        accuracies[method] = trained.epochs[-1].accuracy
        assert trained.steps == 120
    assert len({value.tobytes() for value in logits.values()}) == 5
    assert min(accuracies[method] for method in ("bert", "ls", "hs_rau")) > 0.6


def test_passes_with_dropout_are_averaged_and_change_nothing_else(bench: Bench) -> None:
    run = bench.run("bert", epochs=4, learning_rate=1e-2)
    data, encoder, _ = bench.inputs(run)
    plain, several = bench.train(run), train(run, data, encoder, CPU, mc_dropout=(3, 40))
    np.testing.assert_array_equal(several.test_logits, plain.test_logits)
    once = softmax(plain.test_logits)
    for passes, found in several.mc_dropout.items():
        probabilities = np.exp(found.astype(float))
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        assert np.abs(probabilities - once).max() > 1e-3, passes
    few, many = (np.exp(several.mc_dropout[passes]) for passes in (3, 40))
    assert np.abs(many - once).mean() < np.abs(few - once).mean()
    run = without_dropout(run, encoder)
    exact = train(run, data, encoder, CPU, mc_dropout=(2,))
    np.testing.assert_allclose(np.exp(exact.mc_dropout[2]), softmax(exact.test_logits), atol=1e-5)


def test_a_run_that_diverges_says_so(bench: Bench) -> None:
    with pytest.raises(Diverged):
        bench.train(bench.run("bert", learning_rate=1e30, max_gradient_norm=None))


def test_weights_that_the_last_step_ruins_are_no_result(bench: Bench) -> None:
    """One step of an infinite size: its loss, taken before it, is finite."""
    run = bench.run("bert", batch_size=96, epochs=1, learning_rate=1e38, max_gradient_norm=None, warmup_share=0.0)
    with pytest.raises(Diverged, match="after the last step the logits were not finite"):
        bench.train(run)


def test_the_last_short_batch_is_trained_on(bench: Bench) -> None:
    run = bench.run("bert", batch_size=64, epochs=2)  # 96 rows: batches of 64 and 32
    assert bench.train(run).steps == 4


def test_learning_rate_warms_up_and_decays_to_nothing() -> None:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    settings = load_registry(EXPERIMENTS).profiles["paper"].training[0]
    spec = type("S", (), {"warmup_share": 0.2, "learning_rate": 2.0, "decay": settings.decay})
    rates = []
    for step in range(10):
        set_learning_rate(optimiser, spec, step, 10)
        rates.append(round(optimiser.param_groups[0]["lr"], 6))
    assert rates == [1.0, 2.0, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25]


# training version, and of the last epoch the loss and the entropy, of the test logits the mean size
GOLDEN = {
    "bert": (1, [1.101426, 1.307666, 1.090909]),
    "ls": (1, [1.266090, 1.379160, 0.968208]),
    "poscal": (1, [1.138323, 1.320937, 1.077458]),
    "avuc": (1, [2.752543, 1.363615, 0.987688]),
    "hs_rau": (1, [3.996533, 1.097226, 0.812983]),
}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="golden values are of x86-64 processors")
@pytest.mark.parametrize("method", ["bert", "ls", "poscal", "avuc", "hs_rau"])
def test_training_means_what_it_meant(bench: Bench, method: str) -> None:
    """If a golden value changes, the same settings train something else: raise TRAINING_VERSION, so that results are
    made again, and put the new values here. The tolerance is for other processors; a change of meaning is far larger.
    Without dropout, whose random numbers mean nothing.
    """
    run = bench.run(method, corruption=0.1, epochs=8, learning_rate=1e-2)
    trained = bench.train(run, dropout=False)
    last = trained.epochs[-1]
    found = [last.loss, last.entropy, float(np.abs(trained.test_logits).mean())]
    version, expected = GOLDEN[method]
    assert run.training_version == version
    assert found == pytest.approx(expected, abs=5e-4)


def test_weight_decay_spares_biases_whatever_their_shape(bench: Bench) -> None:
    """XLNet's attention has biases of two dimensions."""
    settings = bench.run("bert", weight_decay=0.05).optimisation
    config = XLNetConfig(vocab_size=10, d_model=8, n_layer=1, n_head=2, d_inner=8)
    encoder, head = XLNetModel(config), torch.nn.Linear(8, 3)
    optimiser, parameters = build_optimiser(settings, encoder, head, CPU)
    assert len(parameters) == len([*encoder.parameters(), *head.parameters()])
    names = {id(parameter): name for module in (encoder, head) for name, parameter in module.named_parameters()}
    decayed, spared = ({names[id(parameter)] for parameter in group["params"]} for group in optimiser.param_groups)
    assert [group["weight_decay"] for group in optimiser.param_groups] == [0.05, 0.0]
    assert all("bias" not in name and "layer_norm" not in name for name in decayed)
    assert all("bias" in name or "layer_norm" in name for name in spared)
    assert {"layer.0.rel_attn.r_w_bias", "layer.0.rel_attn.layer_norm.weight", "bias"} < spared
    assert {"layer.0.rel_attn.q", "weight"} < decayed


@pytest.mark.parametrize("method", ["bert", "ls", "poscal", "avuc", "hs_rau"])
def test_twenty_steps_are_those_of_a_plain_loop(bench: Bench, method: str) -> None:
    """Rows of several texts and a last layer at [CLS] only compute the same: one padded text a row, the whole
    transformer, torch's unfused AdamW, in float32 and without dropout, give the same logits.
    """
    run = bench.run(method, epochs=4, batch_size=20, learning_rate=1e-3, decay="linear", warmup_share=0.0)
    data, encoder, texts = bench.inputs(run)
    run = without_dropout(run, encoder)
    expected = plain_loop(run, data, bench.inputs(run), texts)
    trained = train(run, data, encoder, CPU)
    assert trained.steps == 20
    np.testing.assert_allclose(trained.test_logits, expected, atol=1e-5, rtol=0)


def plain_loop(
    run: RunSpec, data: TrainingData, inputs: tuple[TrainingData, TextEncoder, tuple[str, ...]], texts: tuple[str, ...]
) -> np.ndarray:
    """Test logits after the run, as anyone would write it."""
    settings, transformer = run.optimisation, inputs[1].transformer
    without_dropout(run, inputs[1])
    head = build_head(run.head, inputs[1].hidden, data.n_labels, torch.Generator().manual_seed(sub_seed(0, "head")))
    parameters = [*transformer.parameters(), *head.parameters()]
    decayed = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(decayed, settings.learning_rate, settings.betas, settings.epsilon, foreach=False)
    steps = -(-len(data.train.labels) // settings.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / (steps * settings.epochs))
    objective = Objective(run.loss, data.n_labels, settings.epochs, steps, CPU, 0)
    order = np.random.default_rng(sub_seed(run.seed, "order"))
    for _ in range(settings.epochs):
        for step, batch in enumerate(np.split(order.permutation(len(texts)), range(20, len(texts), 20))):
            labels = torch.from_numpy(data.train.labels[batch])
            logits = head(padded(transformer, data.train, batch))
            objective(logits, labels).backward()
            torch.nn.utils.clip_grad_norm_(parameters, settings.max_gradient_norm)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            objective.after_step(logits, labels, step)
        objective.after_epoch()
    with torch.no_grad():
        return head(padded(transformer, data.test, np.arange(len(data.test.labels)))).numpy()


def padded(transformer: torch.nn.Module, split: LabelledTexts, batch: np.ndarray) -> torch.Tensor:
    """The last hidden state at the first token of each text, a text a row."""
    starts, lengths = split.texts.starts, split.texts.lengths
    ids = torch.zeros(len(batch), int(lengths[batch].max()), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(batch):
        ids[row, : lengths[text]] = torch.from_numpy(split.texts.tokens[starts[text] : starts[text + 1]].astype(int))
        mask[row, : lengths[text]] = 1
    return transformer(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]


def test_the_profiles_encoder_is_the_one_that_is_trained(registry: Registry) -> None:
    subject = Subject("tnews", "xlnet", "bert")
    assert encoder_name(registry.profile("tiny"), "tnews", "xlnet") == "tiny_xlnet"
    assert resolve_run(registry, "tiny", subject, 0, Inputs()).encoder.encoder == "tiny_xlnet"


# --- batches in pieces -----------------------------------------------------------------------------------------------


class Linear(torch.nn.Module):
    """Stands for encoder and head: indices of texts in, logits out; ``dropout`` as wanted."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.features = 2 * torch.randn(40, 6, generator=generator)
        self.layer = torch.nn.Linear(6, 4)
        torch.nn.init.normal_(self.layer.weight, generator=generator)
        torch.nn.init.zeros_(self.layer.bias)
        self.dropout = torch.nn.Dropout(dropout)
        self.device = CPU

    def forward(self, batch: np.ndarray) -> torch.Tensor:
        return self.layer(self.dropout(self.features[torch.from_numpy(batch)]))


def gradients(terms: tuple, pieces: int, dropout: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    model = Linear(dropout)
    labels = torch.randint(0, 4, (40,), generator=torch.Generator().manual_seed(1))
    objective = Objective(terms, 4, 10, 1, CPU, 0)
    warm_up = model(np.arange(40)).detach()
    objective.after_step(warm_up, labels, 0)  # so that PosCal has a table
    torch.manual_seed(3)
    batch = np.random.default_rng(2).permutation(40)[:23]
    logits = backward(model, objective, batch, labels[torch.from_numpy(batch)], pieces)
    return logits.detach(), model.layer.weight.grad


WHOLE_BATCH = {
    "rau": (plain(), rau(start=StartByEpoch(after_epochs=0), threshold=0.6)),
    "avuc": (plain(), rau(term="avuc", start=StartByEpoch(after_epochs=0), threshold=0.6)),
    "poscal": (plain(), poscal()),
}


def test_mixup_mixes_anew_in_each_batch_and_follows_the_seed() -> None:
    term = MixupTerm(term="mixup", weight=1.0, alpha=0.4)
    logits, labels = torch.randn(12, 4), torch.arange(12) % 4
    values = []
    for seed in (0, 0, 1):
        objective = Objective((term,), 4, 1, 3, CPU, seed)
        values.append([objective(logits, labels).item() for _ in range(3)])
    assert values[0] == values[1]
    assert len({*values[0], *values[2]}) == 6


@pytest.mark.parametrize("pieces", [2, 3, 7, 23, 40])
@pytest.mark.parametrize("name", WHOLE_BATCH)
def test_pieces_give_the_gradient_of_the_whole_batch(name: str, pieces: int) -> None:
    whole, in_pieces = gradients(WHOLE_BATCH[name], 1), gradients(WHOLE_BATCH[name], pieces)
    torch.testing.assert_close(in_pieces[0], whole[0])
    torch.testing.assert_close(in_pieces[1], whole[1], atol=1e-6, rtol=1e-5)
    assert whole[1].abs().max() > 0.01


def test_summing_the_losses_of_pieces_would_be_another_method() -> None:
    model = Linear(0.0)
    labels = torch.randint(0, 4, (40,), generator=torch.Generator().manual_seed(1))
    batch = np.random.default_rng(2).permutation(40)[:23]
    for part in np.array_split(batch, 2):
        loss = Objective(WHOLE_BATCH["rau"], 4, 10, 1, CPU, 0)(model(part), labels[torch.from_numpy(part)])
        (loss * len(part) / len(batch)).backward()
    assert (model.layer.weight.grad - gradients(WHOLE_BATCH["rau"], 1)[1]).abs().max() > 1e-3


def test_each_piece_is_computed_again_with_the_same_dropout() -> None:
    """The gradient is then that of the logits that the loss saw, and the random state goes on as after one pass."""
    terms = (plain(),)
    logits, gradient = gradients(terms, 4, dropout=0.5)
    after = torch.rand(1)
    model = Linear(0.5)
    torch.manual_seed(3)
    batch = np.random.default_rng(2).permutation(40)[:23]
    labels = torch.randint(0, 4, (40,), generator=torch.Generator().manual_seed(1))[torch.from_numpy(batch)]
    expected = torch.cat([model(part) for part in np.array_split(batch, 4)])
    torch.testing.assert_close(logits, expected.detach())
    cross_entropy(expected, labels).backward()
    torch.testing.assert_close(gradient, model.layer.weight.grad, atol=1e-6, rtol=1e-5)
    assert torch.equal(after, torch.rand(1))


def test_a_whole_training_in_pieces_is_that_of_whole_batches(bench: Bench) -> None:
    run = bench.run("hs_rau", epochs=4)
    whole, cut = bench.train(run, dropout=False), bench.train(run, pieces=3, dropout=False)
    assert cut.steps == whole.steps
    np.testing.assert_allclose(cut.test_logits, whole.test_logits, atol=1e-4)


def test_memory_that_runs_out_over_held_out_rows_costs_no_training(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench.run("bert", epochs=1)
    whole = bench.train(run)
    asked = []
    compute = prediction._all_logits

    def too_many(model: Model, batch_size: int) -> torch.Tensor:
        asked.append(batch_size)
        if batch_size > 200:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return compute(model, batch_size)

    monkeypatch.setattr(prediction, "_all_logits", too_many)
    cut = bench.train(run)
    assert asked == [1024, 512, 256, 128] * 2
    assert cut.steps == whole.steps
    np.testing.assert_allclose(cut.test_logits, whole.test_logits, atol=1e-5)
    monkeypatch.setattr(prediction, "_all_logits", lambda model, batch_size: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bench.train(run)


# --- what a run declares is what is trained --------------------------------------------------------------------------


def test_dropout_is_the_same_whatever_the_head_drew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = bench.run("bert", epochs=1)
    first = bench.train(run)

    def drawing(*arguments: object) -> torch.nn.Module:
        torch.rand(3)
        return build_head(*arguments)

    monkeypatch.setattr("benchmark.training.loop.build_head", drawing)
    np.testing.assert_array_equal(bench.train(run).test_logits, first.test_logits)


def test_the_weights_of_a_head_of_ones_own_follow_the_seed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules draw from torch's own generator, whatever generator it is given."""
    weights = []

    def own(head: object, hidden: int, n_labels: int, generator: torch.Generator) -> torch.nn.Module:
        made = torch.nn.Linear(hidden, n_labels)
        weights.append(made.weight.detach().clone())
        return made

    monkeypatch.setattr("benchmark.training.loop.build_head", own)
    for seed in (0, 0, 1):
        torch.rand(seed + 3)
        bench.train(bench.run("bert", seed=seed, epochs=1))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_two_generators_of_an_own_head_differ(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def drawing(spec: object, hidden: int, n_labels: int, generator: torch.Generator) -> torch.nn.Module:
        drawn.append((torch.randn(5), torch.randn(5, generator=generator)))
        return torch.nn.Linear(hidden, n_labels)

    monkeypatch.setattr("benchmark.training.loop.build_head", drawing)
    bench.train(bench.run("bert", epochs=1))
    assert not torch.equal(*drawn[0])


DECLARED = {
    "ls": lambda x, y: losses.cross_entropy(x, y, 0.1),
    "focal": lambda x, y: losses.focal_loss(x, y, 3.0),
    "focal_by_probability": lambda x, y: losses.focal_loss(x, y, losses.gamma_by_probability(x, y, 0.2, 5.0, 3.0)),
    "brier": losses.brier_loss,
    "confidence_penalty": lambda x, y: losses.cross_entropy(x, y) + 0.1 * losses.confidence_penalty(x),
    "mmce": lambda x, y: losses.cross_entropy(x, y) + 2.0 * losses.mmce_loss(x, y, 0.4),
}


@pytest.mark.parametrize("method", DECLARED)
def test_a_methods_loss_is_that_of_its_name(registry: Registry, method: str) -> None:
    run = resolve_run(registry, "tiny", Subject("tnews", "base", method), 0, Inputs())
    logits, labels = 2 * torch.randn(24, 6, generator=torch.Generator().manual_seed(0)), torch.arange(24) % 6
    found = Objective(run.loss, 6, 4, 6, CPU, 0)(logits, labels)
    assert float(found) == pytest.approx(float(DECLARED[method](logits, labels)))


def test_half_precision_is_at_work_where_it_is_asked_for(bench: Bench) -> None:
    half, whole = (bench.train(bench.run("bert", epochs=1, precision=name)) for name in ("bfloat16", "float32"))
    assert (half.precision, whole.precision, half.test_logits.dtype) == ("bfloat16", "float32", np.float32)
    assert 1e-5 < np.abs(half.test_logits - whole.test_logits).max() < 0.1


def test_without_decay_the_rate_stays(bench: Bench) -> None:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    settings = bench.run("bert", warmup_share=0.2, learning_rate=2.0, decay="none").optimisation
    rates = []
    for step in range(5):
        set_learning_rate(optimiser, settings, step, 10)
        rates.append(optimiser.param_groups[0]["lr"])
    assert rates == [1.0, 2.0, 2.0, 2.0, 2.0]


def test_passes_with_dropout_do_not_depend_on_others_before_them(bench: Bench) -> None:
    run, found = bench.run("bert", epochs=2), []
    for passes in ((5,), (3, 5)):
        data, encoder, _ = bench.inputs(run)
        trained = train(run, data, encoder, CPU, mc_dropout=passes)
        assert trained.train_tokens == 2 * len(data.train.texts.tokens)
        found.append(trained.mc_dropout[5])
    np.testing.assert_array_equal(*found)

"""Label vectors, heads, rows and encoders: packed rows give what each text gives alone."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.declarations import Encoder
from benchmark.encoders import built_fingerprint, find_encoder
from benchmark.errors import UserError
from benchmark.inputs import Places, find_inputs
from benchmark.models import (
    TextEncoder,
    TextsOnDevice,
    TokenisedTexts,
    build_encoder,
    build_head,
    hyperspherical_label_vectors,
    lay_out,
    load_encoder,
    load_tokenizer,
    tokenise,
)
from benchmark.models.dropout import dropout
from benchmark.models.rows import best_fit
from benchmark.pseudo_words import pseudo_words
from benchmark.registry import Registry
from benchmark.specs import HypersphericalHead, LinearHead
from tests.conftest import ENCODER_DIR, needs_real_encoder

CPU = torch.device("cpu")
ARCHITECTURES = ["bert", "albert", "electra", "roberta", "xlnet"]


def built(architecture: str = "bert", layers: int = 2, **changes: object) -> Encoder:
    source = {
        "kind": "built",
        "architecture": architecture,
        "hidden": 32,
        "intermediate": 48,
        "heads": 4,
        "vocabulary": 80,
        "seed": 0,
    }
    size = {"layers": layers, "hidden": 32, "intermediate": 48}
    return Encoder.model_validate({"label": "x", "source": source | changes, "size": size})


def texts(n: int, longest: int = 14, seed: int = 0) -> tuple[str, ...]:
    words = pseudo_words(80)
    generator = np.random.default_rng(seed)
    return tuple(
        " ".join(words[word] for word in generator.integers(0, 80, size=generator.integers(1, longest + 1)))
        for _ in range(n)
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("encoders")
    found = {}
    for architecture in ARCHITECTURES:
        found[architecture] = parent / architecture
        build_encoder(built(architecture), found[architecture])
    return found


# --- label vectors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_labels", "dim"), [(2, 384), (3, 8), (15, 384), (64, 384), (77, 384), (77, 768), (33, 32)])
def test_label_vectors_are_the_regular_simplex(n_labels: int, dim: int) -> None:
    vectors = hyperspherical_label_vectors(n_labels, dim)
    assert vectors.shape == (n_labels, dim)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(n_labels))
    cosines = vectors @ vectors.T
    off_diagonal = cosines[~torch.eye(n_labels, dtype=torch.bool)]
    assert float(off_diagonal.max()) == pytest.approx(-1 / (n_labels - 1), abs=0.003)
    assert float(off_diagonal.min()) == pytest.approx(-1 / (n_labels - 1), abs=0.03)


def test_more_labels_than_a_simplex_has_corners_still_spread() -> None:
    vectors = hyperspherical_label_vectors(40, 16)
    cosines = (vectors @ vectors.T).fill_diagonal_(-1)
    assert float(cosines.max()) < 0.25  # random vectors in 16 dimensions come as near as 0.8


def test_label_vectors_follow_their_seed_and_cannot_be_changed_from_outside() -> None:
    first = hyperspherical_label_vectors(5, 8, seed=1)
    first.zero_()
    assert torch.equal(hyperspherical_label_vectors(5, 8, seed=1), hyperspherical_label_vectors(5, 8, seed=1))
    assert float(hyperspherical_label_vectors(5, 8, seed=1).norm()) == pytest.approx(5**0.5)
    assert not torch.equal(hyperspherical_label_vectors(5, 8, seed=1), hyperspherical_label_vectors(5, 8, seed=2))


def test_a_hyperspherical_head_has_the_vectors_of_its_seed() -> None:
    settings = {"dropout": 0.0, "dropout_on": "encoded", "normalise": True, "scale": "frobenius"}
    spec = HypersphericalHead(kind="hyperspherical", label_vector_seed=3, **settings)
    head = build_head(spec, 8, 5, torch.Generator())
    assert torch.equal(head.label_vectors, hyperspherical_label_vectors(5, 8, seed=3))
    assert not torch.equal(head.label_vectors, hyperspherical_label_vectors(5, 8, seed=4))


@pytest.mark.parametrize(("n_labels", "dim"), [(1, 8), (0, 8), (5, 0)])
def test_too_few_labels_are_refused(n_labels: int, dim: int) -> None:
    with pytest.raises(ValueError, match="at least 2 labels"):
        hyperspherical_label_vectors(n_labels, dim)


# --- heads -----------------------------------------------------------------------------------------------------------


def hyperspherical(**changes: object) -> HypersphericalHead:
    default = {
        "kind": "hyperspherical",
        "dropout": 0.0,
        "dropout_on": "normalised",
        "normalise": True,
        "scale": "frobenius",
        "label_vector_seed": 0,
    }
    return HypersphericalHead.model_validate(default | changes)


def test_hyperspherical_logits_are_the_scaled_cosines() -> None:
    head = build_head(hyperspherical(), 32, 15, torch.Generator())
    encoded = torch.randn(6, 32, generator=torch.Generator().manual_seed(0))
    vectors = hyperspherical_label_vectors(15, 32)
    cosines = torch.nn.functional.cosine_similarity(encoded[:, None], vectors[None], dim=2)
    torch.testing.assert_close(head(encoded), 15**0.5 * cosines)
    assert not list(head.parameters())


def test_the_scale_bounds_the_confidence() -> None:
    head = build_head(hyperspherical(), 32, 15, torch.Generator())
    best = head(1000 * hyperspherical_label_vectors(15, 32)).softmax(dim=1).max(dim=1).values
    torch.testing.assert_close(best, torch.full((15,), 0.8187), atol=2e-3, rtol=0)


def test_dropout_before_normalising_bounds_the_confidence_in_training_too() -> None:
    """Why dropout falls on the normalised vector: before, even a perfect one stays above RAU's highest threshold."""
    vectors = hyperspherical_label_vectors(15, 384)
    lowest = {}
    for where in ("encoded", "normalised"):
        head = build_head(hyperspherical(dropout=0.1, dropout_on=where), 384, 15, torch.Generator()).train()
        torch.manual_seed(0)
        p = head(vectors.repeat(50, 1)).softmax(dim=1)
        lowest[where] = float(-(p * p.log()).sum(dim=1).mean())
    assert lowest["encoded"] == pytest.approx(1.09, abs=0.02)
    assert lowest["normalised"] == pytest.approx(0.95, abs=0.02)


def test_unnormalised_vectors_and_a_fixed_scale() -> None:
    head = build_head(hyperspherical(normalise=False, scale=2.0), 32, 5, torch.Generator())
    encoded = torch.randn(4, 32)
    torch.testing.assert_close(head(encoded), 2.0 * encoded @ hyperspherical_label_vectors(5, 32).T)


def test_a_linear_head_follows_its_generator_only() -> None:
    spec = LinearHead(kind="linear", dropout=0.1)
    heads = []
    for seed, noise in ((0, 1), (0, 2), (1, 1)):
        torch.manual_seed(noise)
        heads.append(build_head(spec, 32, 5, torch.Generator().manual_seed(seed)).linear.weight)
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


# --- rows ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 64), min_size=1, max_size=80))
@settings(max_examples=100, deadline=None)
def test_best_fit_overlaps_nothing_and_wastes_little(lengths: list[int]) -> None:
    row, offset = best_fit(np.array(lengths), 64)
    taken = np.zeros((row.max() + 1, 64), int)
    for size, here, start in zip(lengths, row, offset, strict=True):
        assert start + size <= 64
        taken[here, start : start + size] += 1
    assert taken.max() == 1
    assert (row.max() + 1) <= 1.7 * sum(lengths) / 64 + 1  # the bound of best-fit decreasing is 11/9 of the optimum


def tokenised(lengths: list[int]) -> TokenisedTexts:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return TokenisedTexts(np.arange(starts[-1], dtype=np.int32), starts, np.zeros(len(lengths), np.int64), None)


@pytest.mark.parametrize("packed", [True, False])
def test_rows_hold_every_token_of_the_batch_once_and_in_place(packed: bool) -> None:
    lengths = [5, 3, 9, 1, 7, 30, 2]
    data = tokenised(lengths)
    batch = np.array([6, 2, 5, 0, 3])
    laid_out = lay_out(data, batch, packed)
    found = []
    for rows in laid_out.pieces:
        flat = rows.source.reshape(-1)
        found += flat[flat < len(data.tokens)].tolist()
        positions = rows.positions.reshape(-1)[rows.cls]
        assert (positions == 0).all()
    assert sorted(found) == sorted(
        token for text in batch for token in range(data.starts[text], data.starts[text] + lengths[text])
    )
    first_tokens = torch.cat([rows.source.reshape(-1)[rows.cls] for rows in laid_out.pieces])[laid_out.order]
    assert first_tokens.tolist() == data.starts[batch].tolist()


def test_row_width_follows_the_longest_text() -> None:
    def width(longest: int) -> int:
        return lay_out(tokenised([longest, 2]), np.array([0, 1]), packed=True).pieces[0].source.shape[1]

    assert [width(longest) for longest in (2, 16, 17, 64, 65, 512)] == [32, 32, 64, 64, 80, 512]


# --- encoders --------------------------------------------------------------------------------------------------------


def encode(encoder: TextEncoder, data: TokenisedTexts, batch: np.ndarray, packed: bool) -> torch.Tensor:
    return encoder(TextsOnDevice.of(data, encoder.padding, CPU), lay_out(data, batch, packed))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_packed_rows_give_what_each_text_gives_alone(architecture: str, folders: dict[str, Path]) -> None:
    encoder = load_encoder(built(architecture), folders[architecture]).eval()
    tokenizer = load_tokenizer(built(architecture), folders[architecture])
    assert encoder.packed
    words = texts(24)
    data = tokenise(tokenizer, words, 64)
    batch = np.random.default_rng(1).permutation(24)
    together = encode(encoder, data, batch, packed=True)
    for place, text in enumerate(batch):
        inputs = tokenizer(words[text], return_tensors="pt")
        alone = encoder.transformer(**inputs).last_hidden_state[0]
        cls = alone[-1] if architecture == "xlnet" else alone[0]
        torch.testing.assert_close(together[place], cls, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["bert", "albert", "electra"])
def test_padded_pieces_give_the_same_vectors_and_gradients(architecture: str, folders: dict[str, Path]) -> None:
    encoder = load_encoder(built(architecture), folders[architecture]).eval()
    data = tokenise(load_tokenizer(built(architecture), folders[architecture]), texts(20), 64)
    batch = np.random.default_rng(2).permutation(20)
    results = []
    for packed in (True, False):
        encoder.packed = packed
        encoder.zero_grad()
        vectors = encode(encoder, data, batch, packed)
        (vectors * torch.linspace(-1, 1, vectors.numel()).reshape(vectors.shape)).sum().backward()
        results.append([vectors.detach(), *(p.grad.clone() for p in encoder.parameters() if p.grad is not None)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize(
    "kind",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))],
)
@pytest.mark.parametrize("architecture", ["bert", "albert", "electra"])
def test_packed_rows_in_bfloat16_are_as_exact_as_padded_ones(
    architecture: str, kind: str, folders: dict[str, Path]
) -> None:
    """Against float32: the additive mask, and what of attention is computed in which type, cost no accuracy."""
    device = torch.device(kind)
    encoder = load_encoder(built(architecture), folders[architecture]).eval().to(device)
    data = tokenise(load_tokenizer(built(architecture), folders[architecture]), texts(20), 64)
    found = {}
    for packed, bfloat16 in ((False, False), (False, True), (True, True)):
        encoder.packed = packed
        encoder.zero_grad()
        on_device = TextsOnDevice.of(data, encoder.padding, device)
        with torch.autocast(kind, torch.bfloat16, enabled=bfloat16):
            vectors = encoder(on_device, lay_out(data, np.arange(20), packed).to(device))
        assert vectors.dtype == torch.float32
        weights = torch.linspace(-1, 1, vectors.numel(), device=device).reshape(vectors.shape)
        (vectors * weights).sum().backward()
        gradients = [p.grad.flatten() for p in encoder.parameters() if p.grad is not None]
        found[packed, bfloat16] = vectors.detach(), torch.cat(gradients)
    for exact, padded, ours in zip(found[False, False], found[False, True], found[True, True], strict=True):
        assert 0 < float((ours - exact).norm()) < 1.5 * float((padded - exact).norm())
        assert float((ours - exact).norm()) < 0.1 * float(exact.norm())


def test_the_last_layer_at_cls_has_its_dropout() -> None:
    """Attention, its output and the layer's output are each dropped from at their own rates, in training only."""
    encoder = family("xlm-roberta")
    layer = encoder.transformer.encoder.layer[-1]
    data = TokenisedTexts(np.arange(5, 17, dtype=np.int32), np.array([0, 5, 12]), np.zeros(2, np.int64), None)
    places = {"attention": layer.attention.self, "its output": layer.attention.output, "output": layer.output}
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    exact = encode(encoder, data, np.arange(2), packed=True)
    for name, place in places.items():
        place.dropout.p = 0.5
        assert torch.equal(encode(encoder.eval(), data, np.arange(2), packed=True), exact), name
        assert not torch.allclose(encode(encoder.train(), data, np.arange(2), packed=True), exact, atol=1e-3), name
        place.dropout.p = 0.0


@pytest.mark.parametrize("architecture", ["bert", "electra", "roberta"])
def test_training_computes_what_evaluation_does(architecture: str, folders: dict[str, Path]) -> None:
    """With a rate so small that nothing is dropped the way of training gives the vectors and gradients of the other."""
    encoder = load_encoder(built(architecture), folders[architecture])
    data = tokenise(load_tokenizer(built(architecture), folders[architecture]), texts(20), 64)
    results = []
    for rate in (1e-9, 0.0):
        for module in encoder.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = rate
        encoder.train(rate > 0).zero_grad()
        vectors = encode(encoder, data, np.arange(20), packed=True)
        (vectors * torch.linspace(-1, 1, vectors.numel()).reshape(vectors.shape)).sum().backward()
        results.append([vectors.detach(), *(p.grad.clone() for p in encoder.parameters() if p.grad is not None)])
    for trained, evaluated in zip(*results, strict=True):
        torch.testing.assert_close(trained, evaluated, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_drops_its_share_and_keeps_the_mean(rate: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    states = torch.ones(1001, 403, dtype=dtype, requires_grad=True)  # not a multiple of four entries
    dropped = dropout(states, rate, training=True)
    kept = (dropped > 0).float()
    spread = (rate * (1 - rate) / kept.numel()) ** 0.5
    assert kept.mean().item() == pytest.approx(1 - rate, abs=4 * spread)
    assert dropped.detach().unique().tolist() == pytest.approx([0.0, 1 / (1 - rate)], rel=5e-3)
    for apart in range(1, 9):  # entries that share one drawn number, and others
        flat = kept.flatten() - kept.mean()
        assert abs((flat[:-apart] * flat[apart:]).mean().item()) < 5 * spread * (rate * (1 - rate)) ** 0.5, apart
    dropped.sum().backward()
    assert torch.equal(states.grad, dropped.detach())
    torch.manual_seed(0)
    assert torch.equal(dropout(states, rate, training=True), dropped)


def test_dropout_of_nothing_and_of_everything() -> None:
    states = torch.randn(5, 3)
    assert torch.equal(dropout(states, 0.0, training=True), states)
    assert torch.equal(dropout(states, 0.7, training=False), states)
    assert torch.equal(dropout(states, 1.0, training=True), torch.zeros(5, 3))


def family(name: str) -> TextEncoder:
    """A small random encoder of a family that is not built, two layers."""
    from transformers import AutoModel, CamembertConfig, DistilBertConfig, MPNetConfig, XLMRobertaConfig

    size = {
        "vocab_size": 90,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    distil = {"vocab_size": 90, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "pad_token_id": 0}
    configs = {
        "distilbert": lambda: DistilBertConfig(**distil),
        "xlm-roberta": lambda: XLMRobertaConfig(**size, max_position_embeddings=80),
        "camembert": lambda: CamembertConfig(**size, max_position_embeddings=80),
        "mpnet": lambda: MPNetConfig(**size, max_position_embeddings=80),
    }
    torch.manual_seed(0)
    return TextEncoder(AutoModel.from_config(configs[name]())).eval()


@pytest.mark.parametrize(
    ("name", "packed"), [("distilbert", True), ("xlm-roberta", True), ("camembert", True), ("mpnet", False)]
)
def test_other_families_give_what_each_text_gives_alone(name: str, packed: bool) -> None:
    encoder = family(name)
    assert encoder.packed == packed
    generator = np.random.default_rng(0)
    lengths = generator.integers(3, 20, size=12)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = generator.integers(5, 90, size=starts[-1]).astype(np.int32)
    data = TokenisedTexts(tokens, starts, np.zeros(12, np.int64), None)
    together = encode(encoder, data, np.arange(12), packed)
    for index in range(12):
        ids = torch.from_numpy(tokens[starts[index] : starts[index + 1]].astype(np.int64))[None]
        alone = encoder.transformer(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0, 0]
        torch.testing.assert_close(together[index], alone, atol=1e-5, rtol=1e-4)


def test_empty_slots_give_no_nan(folders: dict[str, Path]) -> None:
    encoder = load_encoder(built(), folders["bert"]).train()
    data = tokenise(load_tokenizer(built(), folders["bert"]), texts(1), 64)
    assert torch.isfinite(encode(encoder, data, np.array([0]), packed=True)).all()


def test_fewer_layers_are_the_lowest_ones(folders: dict[str, Path]) -> None:
    whole = load_encoder(built(), folders["bert"])
    cut = load_encoder(built().model_copy(update={"layers": 1}), folders["bert"])
    assert cut.transformer.config.num_hidden_layers == 1
    for name, value in cut.state_dict().items():
        assert torch.equal(value, whole.state_dict()[name])
    with pytest.raises(UserError, match=r"asks for 3 layers; .* has 2"):
        load_encoder(built().model_copy(update={"layers": 3}), folders["bert"])


def test_built_encoders_are_the_same_everywhere_and_built_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        torch.manual_seed(len(name))
        build_encoder(built(), tmp_path / name)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "b"))
    assert one == two
    before = (tmp_path / "a" / "model.safetensors").stat().st_mtime_ns
    build_encoder(built(), tmp_path / "a")
    assert (tmp_path / "a" / "model.safetensors").stat().st_mtime_ns == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert built_fingerprint(built()) != built_fingerprint(built(seed=1))
    assert built_fingerprint(built()) != built_fingerprint(built(layers=3))


def test_building_leaves_the_random_state_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    build_encoder(built(), tmp_path / "x")
    assert torch.equal(torch.rand(3), expected)


def test_pickled_weights_are_never_loaded(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "models" / "mine"))
    torch.save({"x": torch.zeros(1)}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    declared = built().model_copy(update={"source": pretrained("mine")})
    with pytest.raises(UserError, match="pickled weights are never loaded"):
        find_encoder(declared, [tmp_path / "models"], tmp_path)
    with pytest.raises(UserError, match="cannot be loaded as an encoder"):
        load_encoder(declared, folder)


def test_missing_weights_are_refused_not_drawn_at_random(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(folders["bert"], tmp_path / "broken"))
    weights = load_file(folder / "model.safetensors")
    gone = next(name for name in weights if "query.weight" in name)
    save_file({name: value for name, value in weights.items() if name != gone}, folder / "model.safetensors")
    with pytest.raises(UserError, match="lacks weights that the encoder needs"):
        load_encoder(built(), folder)


@pytest.mark.parametrize(
    ("config", "settings", "sentence"),
    [
        ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4}, "does not depend on the text"),
        ("ConvBertConfig", {"hidden_size": 32, "num_attention_heads": 4}, "depends on the texts beside it"),
        ("BartConfig", {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1}, "holds a decoder"),
    ],
)
def test_what_gives_no_vector_of_a_text_is_refused(
    config: str, settings: dict[str, int], sentence: str, tmp_path: Path
) -> None:
    import transformers

    torch.manual_seed(0)
    transformers.AutoModel.from_config(getattr(transformers, config)(vocab_size=80, **settings)).save_pretrained(
        tmp_path
    )
    declared = built().model_copy(update={"source": pretrained("mine"), "layers": None})
    with pytest.raises(UserError, match=sentence):
        load_encoder(declared, tmp_path)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_file_of_an_encoder_is_one_sentence(folders: dict[str, Path], tmp_path: Path, file: str) -> None:
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "damaged"))
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    load = load_tokenizer if file == "tokenizer.json" else load_encoder
    with pytest.raises(UserError, match="cannot be loaded"):
        load(built(), folder)


def test_a_tokenizer_that_knows_no_word_is_refused(folders: dict[str, Path]) -> None:
    tokenizer = load_tokenizer(built(), folders["bert"])
    with pytest.raises(UserError, match=r"of all tokens are unknown .* \"tokenizer_class\""):
        tokenise(tokenizer, ("这 些 词 它 都 不 认 识",), 64)


def test_texts_are_cut_at_the_maximal_length(folders: dict[str, Path]) -> None:
    tokenizer = load_tokenizer(built(), folders["bert"])
    data = tokenise(tokenizer, texts(10, longest=30), 8)
    assert data.lengths.max() == 8
    assert (data.tokens[data.starts[1:] - 1] == tokenizer.sep_token_id).all()


def pretrained(model_id: str, **changes: object) -> object:
    from benchmark.declarations import PretrainedSource

    return PretrainedSource.model_validate({"kind": "pretrained", "id": model_id, "revision": "main"} | changes)


def test_encoders_are_looked_for_in_folders_then_in_the_hubs_cache(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    declared = built().model_copy(update={"source": pretrained("org/name", folders=["copy"])})
    assert find_encoder(declared, [tmp_path / "models"], tmp_path) is None
    snapshot = tmp_path / "hf" / "hub" / "models--org--name" / "snapshots" / ("c" * 40)
    shutil.copytree(folders["bert"], snapshot)
    reference = tmp_path / "hf" / "hub" / "models--org--name" / "refs" / "main"
    reference.parent.mkdir()
    reference.write_text("c" * 40)
    found = find_encoder(declared, [tmp_path / "models"], tmp_path)
    assert (found.folder, found.origin, found.revision) == (snapshot, "hub", "c" * 40)
    for place in ("name", "org/name", "copy"):  # each goes before the one before
        shutil.copytree(folders["bert"], tmp_path / "models" / place)
        found = find_encoder(declared, [tmp_path / "models"], tmp_path)
        assert (found.folder, found.origin) == (tmp_path / "models" / place, "folder")


def test_what_was_fetched_in_part_does_not_count_as_here(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch that was interrupted, or another program that took what it needed: benchmark.prepare fetches the rest."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    declared = built().model_copy(update={"source": pretrained("org/name", revision="c" * 40)})
    snapshot = tmp_path / "hf" / "hub" / "models--org--name" / "snapshots" / ("c" * 40)
    shutil.copytree(folders["bert"], snapshot)

    def here() -> bool:
        return find_encoder(declared, [], tmp_path) is not None

    assert here()
    tokenizer = (snapshot / "tokenizer.json").rename(tmp_path / "tokenizer.json")
    assert not here()
    shutil.copytree(snapshot, tmp_path / "models" / "name")
    with pytest.raises(UserError, match=r"name has no tokenizer .tokenizer\.json, vocab\.txt"):
        find_encoder(declared, [tmp_path / "models"], tmp_path)
    settings = snapshot / "tokenizer_config.json"
    kept = settings.read_text(encoding="utf-8")
    settings.write_text('{"tokenizer_class": "CanineTokenizer"}')  # of characters, which are no vocabulary
    assert here()
    settings.write_text(kept, encoding="utf-8")
    tokenizer.rename(snapshot / "tokenizer.json")
    parts = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    (snapshot / "model.safetensors").rename(snapshot / parts[0])
    assert not here()  # no index says whether that is all
    index = {"weight_map": {"a": parts[0], "b": parts[1]}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    assert not here()
    shutil.copytree(snapshot, tmp_path / "other" / "name")
    with pytest.raises(UserError, match="name has not all parts of the weights"):
        find_encoder(declared, [tmp_path / "other"], tmp_path)
    (snapshot / parts[1]).write_bytes(b"")
    assert here()


@needs_real_encoder
def test_a_real_encoder_is_packed_without_a_difference() -> None:
    folder = Path(ENCODER_DIR) / "me5-small-zh-en"
    declared = built().model_copy(update={"source": pretrained("x"), "layers": 4})
    encoder = load_encoder(declared, folder).eval()
    tokenizer = load_tokenizer(declared, folder)
    words = ("怎么办？", "I am still waiting on my card", "上课时学生手机响个不停", "wake me up at nine", "x")
    data = tokenise(tokenizer, words, 64)
    with torch.inference_mode():
        together = encode(encoder, data, np.arange(5), packed=True)
        for index, text in enumerate(words):
            alone = encoder.transformer(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0]
            torch.testing.assert_close(together[index], alone, atol=2e-5, rtol=1e-3)


def test_changed_weights_are_others_though_their_size_is_the_same(registry: Registry, tmp_path: Path) -> None:
    declared = registry.encoders["tiny_base"]
    build_encoder(declared, tmp_path / "models" / "mine")
    mine = declared.model_copy(update={"source": pretrained("org/mine")})
    registry = replace(registry, encoders=registry.encoders | {"mine": mine})
    where = Places((), (tmp_path / "models",), tmp_path / "cache")
    weights = tmp_path / "models" / "mine" / "model.safetensors"

    def found() -> str | None:
        return find_inputs(registry, [], ["mine"], where).inputs.encoders["mine"]

    first = found()
    assert found() == first
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert found() != first


def test_a_linear_head_has_its_dropout_in_training_only() -> None:
    head = build_head(LinearHead(kind="linear", dropout=0.5), 32, 5, torch.Generator())
    encoded = torch.ones(2, 32)
    assert torch.equal(head.eval()(encoded), head.linear(encoded))
    assert not torch.equal(head.train()(encoded), head.linear(encoded))


@pytest.mark.parametrize("architecture", ["bert", "xlnet"])
def test_token_types_reach_the_encoder(architecture: str, folders: dict[str, Path]) -> None:
    encoder = load_encoder(built(architecture), folders[architecture]).eval()
    tokens, types = np.arange(5, 17, dtype=np.int32), np.array([0, 1] * 6, dtype=np.int32)
    data = TokenisedTexts(tokens, np.array([0, 5, 12]), np.zeros(2, np.int64), types)
    together = encode(encoder, data, np.arange(2), packed=True)
    for text, part in enumerate((slice(0, 5), slice(5, 12))):
        ids, kinds = (torch.from_numpy(array[part].astype(np.int64))[None] for array in (tokens, types))
        alone = encoder.transformer(input_ids=ids, token_type_ids=kinds).last_hidden_state[0, 0]
        torch.testing.assert_close(together[text], alone, atol=1e-5, rtol=1e-4)


def test_texts_longer_than_the_encoders_positions_are_refused(folders: dict[str, Path]) -> None:
    encoder = load_encoder(built("bert"), folders["bert"])
    longest = encoder.transformer.config.max_position_embeddings
    encoder.require_room_for(longest)
    with pytest.raises(
        UserError, match=f"max_length {longest + 1} is more than the {longest} tokens that this encoder"
    ):
        encoder.require_room_for(longest + 1)
    load_encoder(built("xlnet"), folders["xlnet"]).require_room_for(100_000)  # its positions are relative


def test_of_a_family_that_is_not_known_a_text_of_the_maximal_length_is_tried() -> None:
    encoder = family("mpnet")
    encoder.require_room_for(70)
    with pytest.raises(UserError, match="max_length 100 is more than what this encoder takes; lower it in"):
        encoder.require_room_for(100)


def test_ids_without_a_vector_are_refused(folders: dict[str, Path]) -> None:
    encoder = load_encoder(built("bert"), folders["bert"])
    size = encoder.transformer.config.vocab_size
    encoder.require_tokens(np.array([0, size - 1], dtype=np.int32))
    with pytest.raises(UserError, match=f"ids up to {size}, but the encoder has only {size} vectors"):
        encoder.require_tokens(np.array([0, size], dtype=np.int32))


def test_relative_positions_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "relative"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"position_embedding_type": "relative_key"}), "utf-8")
    with pytest.raises(UserError, match="has relative positions"):
        load_encoder(built("bert"), folder)


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        ("ViTConfig", {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}),
        ("CanineConfig", {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}),
        ("PerceiverConfig", {"num_latents": 4, "d_latents": 32, "d_model": 32, "num_self_attends_per_block": 1}),
    ],
)
def test_what_is_no_encoder_of_tokens_is_one_sentence(config: str, settings: dict[str, int], tmp_path: Path) -> None:
    import transformers

    made = transformers.AutoModel.from_config(getattr(transformers, config)(**settings))
    made.save_pretrained(tmp_path)
    declared = built().model_copy(update={"source": pretrained("mine"), "layers": None})
    with pytest.raises(UserError, match=r"cannot be (used|loaded) as an encoder: "):
        load_encoder(declared, tmp_path)

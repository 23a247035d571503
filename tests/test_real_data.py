"""The published data sets and a real encoder, where they are on this machine."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmark.data import Corpus, check_corpus, load_corpus
from benchmark.registry import load_registry
from tests.conftest import DATA_DIR, ENCODER_DIR, EXPERIMENTS, needs_real_data, needs_real_encoder, run_module


@pytest.fixture(scope="module")
def corpora() -> dict[str, Corpus]:
    datasets = load_registry(EXPERIMENTS).datasets
    return {
        name: load_corpus(name, datasets[name], [Path(DATA_DIR)])
        for name in ("tnews", "tnews_3000", "hwu64", "banking77")
    }


@needs_real_data
def test_sizes_and_contents_are_the_declared_ones(corpora: dict[str, Corpus]) -> None:
    sizes = {
        name: [len(corpus.train), len(corpus.validation), len(corpus.test), corpus.n_labels]
        for name, corpus in corpora.items()
    }
    assert sizes == {
        "tnews": [48_360, 5_000, 10_000, 15],
        "tnews_3000": [3_000, 5_000, 10_000, 15],
        "hwu64": [8_964, 996, 1_076, 64],
        "banking77": [9_002, 1_001, 3_080, 77],
    }
    for name, corpus in corpora.items():
        assert corpus.fingerprint == load_registry(EXPERIMENTS).datasets[name].fingerprint


@needs_real_data
def test_tnews_on_fewer_rows_is_tnews(corpora: dict[str, Corpus]) -> None:
    """Its own rows, with the validation and test rows of the whole, and the same labels are the rarest."""
    whole, part = corpora["tnews"], corpora["tnews_3000"]
    assert (part.validation.texts, part.test.texts) == (whole.validation.texts, whole.test.texts)
    assert set(part.train.texts) < set(whole.train.texts)
    rarest = [np.argsort(np.bincount(one.train.labels), kind="stable")[:5].tolist() for one in (whole, part)]
    assert rarest[0] == rarest[1]


@needs_real_data
def test_awkward_texts_arrive_whole(corpora: dict[str, Corpus]) -> None:
    banking = corpora["banking77"]
    assert any("\n" in text for text in banking.train.texts)
    assert banking.label_names[0] == "Refund_not_showing_up"
    assert "reverted_card_payment?" in banking.label_names
    assert corpora["hwu64"].label_names[:2] == ("alarm_query", "alarm_remove")
    tnews = corpora["tnews"]
    assert [tnews.label_names.index(label) for label in ("106", "116")] == [5, 14]
    assert max(len(text) for text in tnews.test.texts) > 60


@needs_real_data
def test_checks_find_what_the_publishers_left_in(corpora: dict[str, Corpus]) -> None:
    report = check_corpus(corpora["tnews"])
    assert report.test_texts_seen_before > 1000
    assert len(report.conflicting_texts) > 500
    assert report.rarest_label_rows == 233
    for corpus in corpora.values():
        assert check_corpus(corpus).labels_without_test_rows == ()


@needs_real_data
def test_prepare_finds_them_in_order(tmp_path: Path) -> None:
    environment = {
        "HF_HUB_OFFLINE": "1",
        "BENCHMARK_CACHE_DIR": str(tmp_path),
        "HF_HOME": str(tmp_path),
        "BENCHMARK_ENCODER_DIR": "",
    }
    call = run_module("prepare", "--profile", "small", "--data-dir", DATA_DIR, env=environment)
    assert "as declared" in call.stdout
    assert call.returncode == 2  # the encoder is not here
    assert "intfloat/multilingual-e5-small" in call.stderr


@needs_real_data
@needs_real_encoder
def test_a_real_run_end_to_end(experiments: Path, tmp_path: Path) -> None:
    """BANKING77, one layer, two epochs, two methods: real texts, a real tokenizer, real weights, a table."""
    profiles = yaml.safe_load((experiments / "profiles.yaml").read_text())
    profile = profiles["profiles"]["small"]
    profile["training"].append({"epochs": 2, "learning_rate": 1.0e-3})
    (experiments / "profiles.yaml").write_text(yaml.safe_dump(profiles, sort_keys=False))
    encoders = yaml.safe_load((experiments / "encoders.yaml").read_text())
    encoders["encoders"]["multilingual_e5_small_3_layers"]["layers"] = 1
    (experiments / "encoders.yaml").write_text(yaml.safe_dump(encoders, sort_keys=False))
    options = ["--profile", "small", "--experiments", experiments, "--results-dir", tmp_path / "results"]
    environment = {"BENCHMARK_CACHE_DIR": str(tmp_path / "cache")}
    wanted = ["--table", "main", "--datasets", "banking77", "--methods", "ts", "hs_rau", "--seeds", 0]
    inputs = ["--data-dir", DATA_DIR, "--encoder-dir", ENCODER_DIR]
    call = run_module("run", *options, *wanted, *inputs, env=environment)
    assert call.returncode == 0, call.stdout + call.stderr
    results = [json.loads(path.read_text()) for path in (tmp_path / "results" / "small").glob("*.json")]
    assert len(results) == 2
    for result in results:
        assert result["encoder"]["layers"] == 1
        assert result["data"]["publisher"].startswith("PolyAI (Casanueva et al., 2020), https://")
        assert result["encoder"]["origin"] == "folder"
        assert result["data"]["rows"] == {"train": 9002, "validation": 1001, "test": 3080}
        first, second = (epoch["terms"] for epoch in result["training"]["epochs"])
        assert second[0] < first[0]  # the cross-entropy; other terms join later and add to the loss
        with np.load(tmp_path / "results" / "small" / "logits" / result["logits"]["file"]) as logits:
            assert logits["test_logits"].shape == (3080, 77)
    report = run_module("report", *options, "--tables-dir", tmp_path / "tables", "--table", "main", env=environment)
    assert "lowest 3 layers of multilingual-e5-small" in report.stdout
    assert "BANKING77" in report.stdout

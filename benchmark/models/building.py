"""Tiny encoders with random weights, built on the spot: for generated corpora, which need no language."""

import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AlbertConfig,
    AutoModel,
    BertConfig,
    ElectraConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLNetConfig,
)

from benchmark.declarations import BuiltSource, Encoder
from benchmark.pseudo_words import pseudo_words
from benchmark.whole_files import place_folder

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_LONGEST = 512


def build_encoder(encoder: Encoder, folder: Path) -> None:
    """Write the model folder of a built encoder: configuration, random weights, a tokenizer of whole words.

    Does nothing where the folder is there. Safe against others doing the same: it is built elsewhere and renamed.
    """
    if folder.is_dir():
        return
    assert isinstance(encoder.source, BuiltSource)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        target = Path(temporary) / "encoder"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(encoder.source.seed)
            AutoModel.from_config(_config(encoder, encoder.source)).save_pretrained(target, safe_serialization=True)
        _tokenizer(encoder.source).save_pretrained(target)
        place_folder(target, folder)


def _config(encoder: Encoder, source: BuiltSource) -> PreTrainedConfig:
    size = {
        "vocab_size": source.vocabulary + len(_SPECIAL),
        "hidden_size": source.hidden,
        "num_hidden_layers": encoder.size.layers,
        "num_attention_heads": source.heads,
        "intermediate_size": source.intermediate,
        "max_position_embeddings": _LONGEST,
        "pad_token_id": 0,
    }
    if source.architecture == "bert":
        return BertConfig(**size)
    if source.architecture == "electra":
        return ElectraConfig(**size, embedding_size=source.hidden)
    if source.architecture == "roberta":
        return RobertaConfig(**size | {"max_position_embeddings": _LONGEST + 1})
    if source.architecture == "albert":
        dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
        return AlbertConfig(**size, **dropout, embedding_size=source.hidden)
    return XLNetConfig(
        vocab_size=size["vocab_size"],
        d_model=source.hidden,
        n_layer=encoder.size.layers,
        n_head=source.heads,
        d_inner=source.intermediate,
        pad_token_id=0,
    )


def _tokenizer(source: BuiltSource) -> PreTrainedTokenizerFast:
    words = {word: number for number, word in enumerate(_SPECIAL + pseudo_words(source.vocabulary))}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    template = "$A [SEP] [CLS]" if source.architecture == "xlnet" else "[CLS] $A [SEP]"
    special = [("[CLS]", words["[CLS]"]), ("[SEP]", words["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=_LONGEST,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )

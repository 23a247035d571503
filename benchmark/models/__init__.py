"""Encoders, heads and label vectors; this package imports torch."""

from benchmark.models.building import build_encoder
from benchmark.models.encoding import TextEncoder, TextsOnDevice, load_encoder, load_tokenizer, tokenise
from benchmark.models.heads import build_head
from benchmark.models.label_vectors import hyperspherical_label_vectors
from benchmark.models.rows import LaidOut, Rows, TokenisedTexts, copied, lay_out
from benchmark.models.vocabulary import keep_tokens

__all__ = [
    "LaidOut",
    "Rows",
    "TextEncoder",
    "TextsOnDevice",
    "TokenisedTexts",
    "build_encoder",
    "build_head",
    "copied",
    "hyperspherical_label_vectors",
    "keep_tokens",
    "lay_out",
    "load_encoder",
    "load_tokenizer",
    "tokenise",
]

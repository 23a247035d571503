"""A pretrained transformer as a text encoder: rows of tokens in, the last hidden state at [CLS] out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import (
    AlbertTokenizer,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertTokenizer,
    PreTrainedModel,
    XLNetTokenizer,
)
from transformers.utils import logging as transformers_logging

from benchmark.declarations import Encoder, PretrainedSource
from benchmark.errors import UserError, first_line
from benchmark.models.bert_layers import BUILT_LIKE_BERT, encode_at_cls
from benchmark.models.rows import LaidOut, Rows, TokenisedTexts, lay_out

# Families that take positions and a block mask: whose positions start at 0, and whose at the one after the padding id.
_BLOCK_MASKED = {"bert", "albert", "electra", "distilbert"}
_BLOCK_MASKED_AFTER_PADDING = {"roberta", "xlm-roberta", "camembert"}
_PERMUTATION_MASKED = {"xlnet"}
_TOKENIZERS = {"BertTokenizer": BertTokenizer, "XLNetTokenizer": XLNetTokenizer, "AlbertTokenizer": AlbertTokenizer}
# More unknown tokens than this, and the tokenizer is not the one the weights were trained with.
_MOST_UNKNOWN = 0.5
# Of an encoder's largest value: two layouts of one text differ by less, vectors of two texts by more.
_SAME, _OTHER = 1e-3, 1e-6


@dataclass(frozen=True)
class TextsOnDevice:
    """The flat tokens of a split on the device that trains, one padding token at the end for empty slots."""

    tokens: Tensor
    token_types: Tensor | None

    @staticmethod
    def of(texts: TokenisedTexts, padding: int, device: torch.device) -> "TextsOnDevice":
        tokens = torch.from_numpy(np.append(texts.tokens, np.int32(padding))).to(device)
        types = None
        if texts.token_types is not None:
            types = torch.from_numpy(np.append(texts.token_types, np.int32(0))).to(device)
        return TextsOnDevice(tokens, types)


class TextEncoder(nn.Module):
    """The transformer below the head. ``packed`` says whether it takes several texts in one row."""

    def __init__(self, transformer: PreTrainedModel) -> None:
        super().__init__()
        self.transformer = transformer
        config = transformer.config
        self.hidden = int(config.hidden_size)
        self.padding = int(getattr(config, "pad_token_id", None) or 0)
        kind = config.model_type
        self.packed = kind in _BLOCK_MASKED | _BLOCK_MASKED_AFTER_PADDING | _PERMUTATION_MASKED
        self._permutation = kind in _PERMUTATION_MASKED
        self._first_position = self.padding + 1 if kind in _BLOCK_MASKED_AFTER_PADDING else 0
        self._at_cls = kind in BUILT_LIKE_BERT
        absolute = self.packed and not self._permutation
        self._longest = int(config.max_position_embeddings) - self._first_position if absolute else None

    def require_room_for(self, max_length: int) -> None:
        """Raises UserError where texts of so many tokens have more positions than the encoder was trained with. Of a
        family that is not known, a text of that length is tried.
        """
        if self._longest is not None and max_length > self._longest:
            raise _too_long(max_length, f"the {self._longest} tokens that")
        if not self.packed:
            try:
                _encode_at_random(self, [max_length])
            except (MemoryError, torch.OutOfMemoryError):
                raise
            except Exception:  # whatever a model of an unknown family does with more than it takes
                raise _too_long(max_length, "what") from None

    def require_tokens(self, tokens: NDArray[np.int32]) -> None:
        """Raises UserError where any of these ids has no vector: its tokenizer is that of another encoder."""
        embedding = self.transformer.get_input_embeddings()
        if isinstance(embedding, nn.Embedding) and tokens.max() >= embedding.num_embeddings:
            raise UserError(
                f"The tokenizer gives ids up to {tokens.max()}, but the encoder has only {embedding.num_embeddings} "
                "vectors: the files of its folder do not belong together; take a copy where they do."
            )

    def forward(self, texts: TextsOnDevice, batch: LaidOut) -> Tensor:
        """Encoded vectors (B, H) in float32, in the order of the batch."""
        encoded = [self.encode_rows(texts, rows) for rows in batch.pieces]
        if len(encoded) == 1:
            return encoded[0]
        return torch.cat(encoded)[batch.order]

    def encode_rows(self, texts: TextsOnDevice, rows: Rows) -> Tensor:
        """Encoded vectors of the texts of one piece, (b, H) in float32."""
        source = rows.source.long()
        inputs: dict[str, Any] = {"input_ids": texts.tokens[source].long()}
        if texts.token_types is not None:
            inputs["token_type_ids"] = texts.token_types[source].long()
        same_text = rows.texts[:, :, None] == rows.texts[:, None, :]
        if self._permutation:
            inputs["perm_mask"] = (~same_text).float()
        elif self.packed:
            inputs["position_ids"] = rows.positions.long() + self._first_position
            allowed = _additive(same_text[:, None])
            if self._at_cls:
                return encode_at_cls(self.transformer, inputs, allowed, rows).float()
            inputs["attention_mask"] = allowed
        else:
            inputs["attention_mask"] = (rows.texts > 0).long()
        hidden: Tensor = self.transformer(**inputs).last_hidden_state
        return hidden.reshape(-1, hidden.shape[-1])[rows.cls].float()


def _too_long(max_length: int, what: str) -> UserError:
    return UserError(
        f"max_length {max_length} is more than {what} this encoder takes; lower it in the profile's training rules."
    )


def _additive(allowed: Tensor) -> Tensor:
    """0 where attention is allowed, the lowest number elsewhere, in the type that attention computes in."""
    kind = allowed.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, torch.finfo(dtype).min)


def load_encoder(encoder: Encoder, folder: Path) -> TextEncoder:
    """The encoder's weights from a model folder, in float32 on the CPU, with as many layers as declared.

    Reads safetensors only and runs no code from the folder. Raises UserError where the folder is no encoder, or
    weights that the architecture needs are not in it (they would silently be random).
    """
    overrides = {} if encoder.layers is None else {"num_hidden_layers": encoder.layers}
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if getattr(config, "position_embedding_type", None) not in (None, "absolute"):
            raise UserError(f"{folder} has relative positions (says its config.json), which transformers has dropped.")
        if getattr(config, "is_decoder", False) or getattr(config, "is_encoder_decoder", False):
            raise UserError(f"{folder} holds a decoder (says its config.json), whose [CLS] is no vector of a text.")
        available = config.num_hidden_layers
        if encoder.layers is not None and encoder.layers > available:
            raise UserError(f'Encoder "{encoder.label}" asks for {encoder.layers} layers; {folder} has {available}.')
        transformer, report = AutoModel.from_pretrained(
            folder,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            dtype=torch.float32,
            output_loading_info=True,
            **overrides,
        )
    except UserError:
        raise
    except Exception as error:  # whatever a configuration of an unknown family leads to
        raise UserError(f"{folder} cannot be loaded as an encoder: {first_line(error)}.") from None
    finally:
        transformers_logging.set_verbosity(before)
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler"))
    if missing:
        raise UserError(
            f"{folder} lacks weights that the encoder needs: {', '.join(missing[:3])} ({len(missing)} in all)."
        )
    if getattr(transformer, "pooler", None) is not None:
        transformer.pooler = nn.Identity()  # the encoded vector is the hidden state itself
    try:
        loaded = TextEncoder(transformer)
    except AttributeError as error:  # of a vision model, say
        raise UserError(f"{folder} cannot be used as an encoder: {first_line(error)}.") from None
    _try_out(loaded, folder)
    return loaded


@torch.inference_mode()
def _try_out(encoder: TextEncoder, folder: Path) -> None:
    """Refuse an encoder whose vector of a text does not depend on the text, or depends on others beside it."""
    try:
        # enough for texts of two lengths in one padded part
        together, by_itself = _encode_at_random(encoder, [9, 5, 7, 3, 12, 4, 10, 6])
    except Exception as error:  # whatever a model of an unknown family does with these inputs
        raise UserError(
            f"{folder} cannot be used as an encoder: {type(error).__name__}: {first_line(error)}."
        ) from error
    size = float(by_itself.abs().max())
    if not float((together - by_itself).abs().max()) <= _SAME * size:
        raise UserError(f"{folder}: what this encoder gives for a text depends on the texts beside it; take another.")
    if float((by_itself[0] - by_itself[1]).abs().max()) <= _OTHER * size:
        raise UserError(
            f"{folder}: the vector of this encoder's first token does not depend on the text; take another."
        )


@torch.inference_mode()
def _encode_at_random(encoder: TextEncoder, lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Vectors of texts of these lengths, made of random tokens after the same first one: encoded together, and each by
    itself.
    """
    n_tokens = int(encoder.transformer.config.vocab_size)
    generator = np.random.default_rng(0)
    tokens = generator.integers(min(5, n_tokens - 1), n_tokens, size=sum(lengths)).astype(np.int32)
    tokens[tokens == encoder.padding] = n_tokens - 1 if encoder.padding != n_tokens - 1 else 0
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens[starts[:-1]] = tokens[0]  # as [CLS] is
    texts = TokenisedTexts(tokens, starts, np.zeros(len(lengths), np.int64), None)
    on_device = TextsOnDevice.of(texts, encoder.padding, torch.device("cpu"))
    encoder.eval()
    together: Tensor = encoder(on_device, lay_out(texts, np.arange(len(lengths)), encoder.packed))
    alone = [encoder(on_device, lay_out(texts, np.array([text]), encoder.packed)) for text in range(len(lengths))]
    return together, torch.cat(alone)


def load_tokenizer(encoder: Encoder, folder: Path) -> Any:
    """The encoder's own tokenizer from its folder, or of the class that its declaration names."""
    declared = encoder.source.tokenizer_class if isinstance(encoder.source, PretrainedSource) else None
    loader = AutoTokenizer if declared is None else _TOKENIZERS[declared]
    try:
        return loader.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # of every kind, where one of its files is damaged
        raise UserError(f"{folder}: the tokenizer cannot be loaded: {first_line(error)}.") from None


def tokenise(tokenizer: Any, texts: tuple[str, ...], max_length: int) -> TokenisedTexts:
    """Token ids of each text with the special tokens, cut to ``max_length``.

    Raises UserError where most tokens are unknown, which is what a tokenizer of the wrong class gives without a word.
    """
    encoded = tokenizer(list(texts), truncation=True, max_length=max_length, return_attention_mask=False)
    lengths = np.array([len(ids) for ids in encoded["input_ids"]], dtype=np.int64)
    tokens = np.concatenate([np.asarray(ids, dtype=np.int32) for ids in encoded["input_ids"]])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    unknown = float((tokens == tokenizer.unk_token_id).mean()) if tokenizer.unk_token_id is not None else 0.0
    if unknown > _MOST_UNKNOWN:
        raise UserError(
            f"{unknown:.0%} of all tokens are unknown to the tokenizer {type(tokenizer).__name__}. A tiny encoder that "
            "is built here knows the words of generated texts alone: take a pretrained one. If a pretrained one's own "
            'tokenizer is another, name it by "tokenizer_class" in experiments/encoders.yaml.'
        )
    types = None
    if "token_type_ids" in encoded:
        flat = np.concatenate([np.asarray(ids, dtype=np.int32) for ids in encoded["token_type_ids"]])
        types = flat if flat.any() else None
    return TokenisedTexts(tokens, starts, _cls_offsets(tokens, starts, tokenizer.cls_token_id), types)


def _cls_offsets(tokens: np.ndarray, starts: np.ndarray, cls_token: int | None) -> np.ndarray:
    """Where [CLS] stands in each text: at its first or its last token, whichever the tokenizer writes."""
    if cls_token is None:
        raise UserError("The tokenizer has no [CLS], whose vector stands for a text; such an encoder cannot be used.")
    first, last = starts[:-1], starts[1:] - 1
    if (tokens[first] == cls_token).all():
        return np.zeros(len(first), dtype=np.int64)
    if (tokens[last] == cls_token).all():
        offsets: np.ndarray = last - first
        return offsets
    raise UserError("The tokenizer writes its [CLS] neither first nor last; such an encoder cannot be used.")

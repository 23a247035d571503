"""Transformers of BERT's build where only [CLS] is wanted: the last layer computes keys and values of all tokens, and
everything else for [CLS] alone.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from benchmark.models.rows import Rows

# Families whose layers are BERT's, module by module.
BUILT_LIKE_BERT = {"bert", "electra", "roberta", "xlm-roberta", "camembert"}


def encode_at_cls(transformer: PreTrainedModel, inputs: dict[str, Tensor], allowed: Tensor, rows: Rows) -> Tensor:
    """The last hidden states (b, H) at the [CLS] of the texts in ``rows``.

    ``inputs`` goes to the embeddings, each (R, W); ``allowed`` (R, 1, W, W) is the additive mask. Exact: nothing reads
    what the last layer gives at other tokens. Dropout falls on the same tensors at the same rates as in the whole
    transformer, though not with the same random numbers. Operations saved: 7 % of 12 layers, 42 % of 2.
    """
    hidden = transformer.embeddings(**inputs)
    if hasattr(transformer, "embeddings_project"):
        hidden = transformer.embeddings_project(hidden)
    *lower, last = transformer.encoder.layer
    for layer in lower:
        hidden = layer(hidden, allowed)
    return _at_queries(last, hidden, allowed, rows)


def _at_queries(layer: Any, hidden: Tensor, allowed: Tensor, rows: Rows) -> Tensor:
    """One layer's output (b, H) at the queries of the rows."""
    n_rows, n_queries = rows.queries.shape
    at = rows.queries.long()
    row = torch.arange(n_rows, device=at.device)[:, None]
    asked = hidden[row, at]
    attention = layer.attention.self
    heads = (attention.num_attention_heads, attention.attention_head_size)
    query, key, value = (
        project(states).unflatten(-1, heads).transpose(1, 2)
        for project, states in ((attention.query, asked), (attention.key, hidden), (attention.value, hidden))
    )
    dropout = attention.dropout.p if attention.training else 0.0
    mask = allowed[row, 0, at][:, None]  # (R, 1, Q, W)
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
    wanted = rows.wanted.long()
    mixed = mixed.transpose(1, 2).reshape(n_rows * n_queries, -1)[wanted]
    attended = layer.attention.output(mixed, asked.reshape(n_rows * n_queries, -1)[wanted])
    output: Tensor = layer.output(layer.intermediate(attended), attended)
    return output

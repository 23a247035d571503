"""The arithmetic of BERT's layers over packed rows, with the modules and weights of a transformer of that build.

The same function as the transformer's own, computed with less: the last layer at [CLS] only, one product for query, key
and value, and on a CPU attention and dropout without torch's detours.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from benchmark.models.dropout import dropout
from benchmark.models.rows import Rows

# Families whose layers are BERT's, module by module.
BUILT_LIKE_BERT = {"bert", "electra", "roberta", "xlm-roberta", "camembert"}


def encode_at_cls(transformer: PreTrainedModel, inputs: dict[str, Tensor], allowed: Tensor, rows: Rows) -> Tensor:
    """The last hidden states (b, H) at the [CLS] of the texts in ``rows``.

    ``inputs`` goes to the embeddings, each (R, W); ``allowed`` (R, 1, W, W) is the additive mask. Nothing reads what
    the last layer gives at other tokens, so of those it computes keys and values only (7 % of the operations of 12
    layers saved, 42 % of 2). Dropout falls on the same tensors at the same rates as in the transformer's own forward
    pass, though not with the same random numbers.
    """
    hidden = transformer.embeddings(**inputs)
    if hasattr(transformer, "embeddings_project"):
        hidden = transformer.embeddings_project(hidden)
    *lower, last = transformer.encoder.layer
    for layer in lower:
        hidden = _layer(layer, hidden, allowed)
    return _layer_at_cls(last, hidden, allowed, rows)


def _layer(layer: Any, hidden: Tensor, allowed: Tensor) -> Tensor:
    """One layer: (R, W, H) in and out."""
    attention = layer.attention.self
    query, key, value = _project(hidden, (attention.query, attention.key, attention.value))
    mixed = _attend(attention, query, key, value, allowed)
    return _feed_forward(layer, mixed, hidden)


def _layer_at_cls(layer: Any, hidden: Tensor, allowed: Tensor, rows: Rows) -> Tensor:
    """One layer's output (b, H) at the [CLS] of each text."""
    n_rows, n_queries = rows.queries.shape
    at, wanted = rows.queries.long(), rows.wanted.long()
    row = torch.arange(n_rows, device=at.device)[:, None]
    asked = hidden[row, at]
    attention = layer.attention.self
    (query,) = _project(asked, (attention.query,))
    key, value = _project(hidden, (attention.key, attention.value))
    mixed = _attend(attention, query, key, value, allowed[row, 0, at][:, None])
    one_each = (n_rows * n_queries, -1)
    return _feed_forward(layer, mixed.reshape(one_each)[wanted], asked.reshape(one_each)[wanted])


def _project(states: Tensor, linears: Sequence[nn.Linear]) -> tuple[Tensor, ...]:
    """What several linear layers make of the same states, in one product."""
    weight = torch.cat([linear.weight for linear in linears])
    bias = torch.cat([linear.bias for linear in linears])
    return functional.linear(states, weight, bias).chunk(len(linears), dim=-1)


def _attend(attention: Any, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
    """Attention of all heads, (R, Q, H).

    On a CPU torch's own attention takes a slow path as soon as there is dropout (2.7 times as slow as this one in
    bfloat16).
    """
    heads = (attention.num_attention_heads, attention.attention_head_size)
    query, key, value = (states.view(*states.shape[:-1], *heads).transpose(1, 2) for states in (query, key, value))
    rate = attention.dropout.p if attention.training else 0.0
    if query.device.type == "cpu" and rate > 0.0:
        scores = (query * heads[1] ** -0.5) @ key.transpose(2, 3) + allowed
        mixed = dropout(scores.softmax(dim=-1), rate, training=True).to(value.dtype) @ value
    else:
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=rate)
    return mixed.transpose(1, 2).flatten(2)


def _feed_forward(layer: Any, mixed: Tensor, residual: Tensor) -> Tensor:
    """What follows attention, entry by entry: (..., H) in and out."""
    attended = _add_and_norm(layer.attention.output, mixed, residual)
    return _add_and_norm(layer.output, layer.intermediate(attended), attended)


def _add_and_norm(output: Any, states: Tensor, residual: Tensor) -> Tensor:
    dropped = dropout(output.dense(states), output.dropout.p, output.training)
    normed: Tensor = output.LayerNorm(dropped + residual)
    return normed

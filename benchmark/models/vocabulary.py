"""Word embeddings of the tokens at hand alone: what no text holds is neither read nor trained."""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmark.models.encoding import TextEncoder


class UsedEmbedding(nn.Module):
    """The rows of an embedding that some tokens have, asked for by their old ids; any other id is an error."""

    rows: Tensor

    def __init__(self, whole: nn.Embedding, used: NDArray[np.int64]) -> None:
        super().__init__()
        rows = torch.full((whole.num_embeddings,), -1)
        rows[torch.from_numpy(used)] = torch.arange(len(used))
        self.register_buffer("rows", rows, persistent=False)
        self.weight = nn.Parameter(whole.weight.detach()[torch.from_numpy(used)].clone())
        self.padding = None if whole.padding_idx is None else int(rows[whole.padding_idx])

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors (..., H) of token ids (...)."""
        return functional.embedding(self.rows[ids], self.weight, self.padding)


def keep_tokens(encoder: TextEncoder, tokens: Iterable[NDArray[np.int32]]) -> None:
    """Cut the encoder's word embeddings to the ids in ``tokens`` and the padding.

    Exact: rows that no text asks for have no gradient, and nothing reads them. Their share of gradients, clipping and
    optimiser is most of a small encoder with a large vocabulary (multilingual-e5-small has 250,002 rows, BANKING77 asks
    for 2,765). Encoders whose texts do not share rows are left whole: their own code may look at the embedding.
    """
    whole = encoder.transformer.get_input_embeddings()
    if not encoder.packed or not isinstance(whole, nn.Embedding):
        return
    padding = [encoder.padding] if whole.padding_idx is None else [encoder.padding, whole.padding_idx]
    used = np.unique(np.concatenate([np.array(padding, dtype=np.int64), *tokens]))
    encoder.transformer.set_input_embeddings(UsedEmbedding(whole, used))

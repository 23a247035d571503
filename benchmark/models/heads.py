"""Heads: from encoded vectors (B, H) to logits (B, K), always in float32."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmark import own_code
from benchmark.errors import UserError
from benchmark.models.label_vectors import hyperspherical_label_vectors
from benchmark.specs import Head, HypersphericalHead, OwnHead


class LinearDecoder(nn.Module):
    """Dropout and a linear layer; weights from N(0, 0.02) as in BERT, drawn from ``generator``."""

    def __init__(self, dropout: float, hidden: int, n_labels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden, n_labels)
        with torch.no_grad():
            self.linear.weight.normal_(0.0, 0.02, generator=generator)
            self.linear.bias.zero_()

    def forward(self, encoded: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.dropout(encoded))
        return logits


class HypersphericalDecoder(nn.Module):
    """logits = scale * E X^T with fixed label vectors X and, if asked, L2-normalised E; nothing to train.

    Dropout falls on the encoded vector, before E is normalised, or on E.
    """

    label_vectors: Tensor

    def __init__(self, spec: HypersphericalHead, hidden: int, n_labels: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(spec.dropout)
        self.normalise = spec.normalise
        self.dropout_on = spec.dropout_on
        vectors = hyperspherical_label_vectors(n_labels, hidden, spec.label_vector_seed)
        self.scale = float(vectors.norm()) if spec.scale == "frobenius" else float(spec.scale)
        self.register_buffer("label_vectors", vectors)

    def forward(self, encoded: Tensor) -> Tensor:
        if self.dropout_on == "encoded":
            encoded = self.dropout(encoded)
        if self.normalise:
            encoded = functional.normalize(encoded, dim=1)
        if self.dropout_on == "normalised":
            encoded = self.dropout(encoded)
        return self.scale * (encoded @ self.label_vectors.T)


def build_head(spec: Head, hidden: int, n_labels: int, generator: torch.Generator) -> nn.Module:
    """The head that a run declares, on the CPU."""
    if isinstance(spec, HypersphericalHead):
        return HypersphericalDecoder(spec, hidden, n_labels)
    if isinstance(spec, OwnHead):
        return _own_head(spec, hidden, n_labels, generator)
    return LinearDecoder(spec.dropout, hidden, n_labels, generator)


class OwnDecoder(nn.Module):
    """The user's head. Where it fails, the error names its function."""

    def __init__(self, function: str, head: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.head = head

    def forward(self, encoded: Tensor) -> Tensor:
        logits: Tensor = own_code.tried(self.function, self.head, encoded)
        return logits


def _own_head(spec: OwnHead, hidden: int, n_labels: int, generator: torch.Generator) -> nn.Module:
    """The user's head; it must give a logit a label, for each text by itself."""
    made = own_code.call(spec.function, spec.sha256, hidden, n_labels, generator, **spec.settings)
    if not isinstance(made, nn.Module):
        raise UserError(f"{spec.function} must give a torch module, not {type(made).__name__}.")
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in made.modules()):
        raise UserError(
            f"The head of {spec.function} has a batch normalisation, whose result depends on how a batch is cut; take "
            "one that looks at each text by itself (LayerNorm)."
        )
    with torch.no_grad():
        found = own_code.tried(spec.function, made.eval(), torch.zeros(2, hidden))
    if not isinstance(found, Tensor) or found.shape != (2, n_labels):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise UserError(f"The head of {spec.function} must give (B, {n_labels}) logits for (B, {hidden}), not {shape}.")
    return OwnDecoder(spec.function, made.train())

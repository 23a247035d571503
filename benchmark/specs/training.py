"""What is trained: a run, with everything that its training depends on. Settings have no defaults here: each stands in
``experiments/``, where a reader can see it. (PosCal's divergence has one, for results from before it was a setting; the
registry wants it said all the same.)
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from benchmark.specs.declared import (
    Count,
    Decay,
    Declared,
    Items,
    Name,
    NotNegative,
    OwnFunction,
    Pair,
    Positive,
    Seed,
    Share,
)

# Raise this number whenever the same settings would train something else: all runs are then made again. Other random
# numbers for dropout are not something else: which ones a result had follows from the commit that it records. It was
# not raised when start rules came to look at log K: that matters below eight labels, of which nothing is published.
TRAINING_VERSION = 1


class DataSpec(Declared):
    """The rows: a data set by name and content, and the share of its training and validation labels that is changed."""

    dataset: Name
    fingerprint: str | None
    corruption: Share


class EncoderSpec(Declared):
    """The pretrained encoder: by name and content; ``layers`` counts from below, None keeps all; lengths in tokens."""

    encoder: Name
    fingerprint: str | None
    layers: Count | None
    max_length: Annotated[int, Field(ge=3)]


class LinearHead(Declared):
    """A linear layer on the encoded vector, after dropout."""

    kind: Literal["linear"]
    dropout: Share


class HypersphericalHead(Declared):
    """Fixed label vectors on the unit sphere; logits = scale * E X^T. Source: HS-RAU, "Hyperspherical Decoder"."""

    kind: Literal["hyperspherical"]
    dropout: Share
    dropout_on: Literal["encoded", "normalised"]  # before or after the normalisation
    normalise: bool  # whether E is L2-normalised
    scale: Literal["frobenius"] | Positive  # ||X||_F = sqrt(K), or a number
    label_vector_seed: Seed


class OwnHead(OwnFunction):
    """A head of the user's own: ``function(hidden, n_labels, generator, **settings)`` is a module from encoded vectors
    (B, H) to logits (B, K).
    """

    n_arrays: ClassVar[int] = 3
    kind: Literal["own"]


Head = Annotated[LinearHead | HypersphericalHead | OwnHead, Field(discriminator="kind")]


class StartByEntropy(Declared):
    """A term joins once the mean training entropy of an epoch is at most ``until_entropy`` nats, and at most half of
    what it is at chance, log K (of two labels it is 0.69 before anything is learnt), within bounds.
    """

    until_entropy: Positive
    at_least_epochs: Count
    at_most_share: Annotated[float, Field(ge=0, lt=1)]  # of all epochs; of 1 the term might never join


class StartByEpoch(Declared):
    """A term joins after a fixed number of epochs."""

    after_epochs: Annotated[int, Field(ge=0)]


Start = StartByEntropy | StartByEpoch


class CrossEntropyTerm(Declared):
    """Cross-entropy; ``smoothing`` is spread over the labels that are not the right one."""

    term: Literal["cross_entropy"]
    weight: NotNegative
    smoothing: Annotated[float, Field(ge=0, lt=1)]


class UncertaintyTerm(Declared):
    """RAU or AVUC. ``threshold``: the mean training entropy of the epoch before the start, clipped to [0, 1], or a
    number.
    """

    term: Literal["rau", "avuc"]
    weight: NotNegative
    start: Start
    threshold: Literal["mean_entropy"] | NotNegative

    @model_validator(mode="after")
    def _a_mean_needs_an_epoch(self) -> "UncertaintyTerm":
        if self.threshold == "mean_entropy" and isinstance(self.start, StartByEpoch) and self.start.after_epochs == 0:
            raise PydanticCustomError(
                "threshold", "threshold: mean_entropy needs at least one epoch before the start; give a number instead"
            )
        return self


class PoscalTerm(Declared):
    """The divergence of the prediction p and the empirical posterior q: ``forward`` is KL(q || p) over the number of
    labels, as in the method's published code, ``reverse`` KL(p || q).

    ``empty_bin``: what an empty bin of the table says: nothing (``ignore``), a share of 0 (``zero``; to ``forward`` the
    same), or, ``prior_row``, the bin's middle, which every bin then holds as if by one row more than fell in it, so
    that few rows say little.

    Before the first update of its table the term is 0, whatever ``start`` says.
    """

    term: Literal["poscal"]
    weight: NotNegative
    start: Start
    bins: Count
    updates_per_epoch: Count
    empty_bin: Literal["ignore", "zero", "prior_row"]
    # Left out where it is what was there before there was a choice, so that results made then keep their identity.
    divergence: Annotated[
        Literal["forward", "reverse"], Field(exclude_if=lambda divergence: divergence == "reverse")
    ] = "reverse"


class GammaByProbability(Declared):
    """The focusing parameter of a sample: ``low`` where its right label's probability is below ``until``, else
    ``high``.
    """

    until: Share
    low: NotNegative
    high: NotNegative


class FocalTerm(Declared):
    """Focal loss in place of cross-entropy; ``gamma`` for all samples, or by the probability of the right label."""

    term: Literal["focal"]
    weight: NotNegative
    gamma: NotNegative | GammaByProbability


class BrierTerm(Declared):
    """The squared distance between probabilities and the one-hot label."""

    term: Literal["brier"]
    weight: NotNegative


class ConfidencePenaltyTerm(Declared):
    """Minus the predictive entropy: sureness costs."""

    term: Literal["confidence_penalty"]
    weight: NotNegative


class MmceTerm(Declared):
    """Maximum mean calibration error of a batch; ``width`` is that of the Laplacian kernel on confidences."""

    term: Literal["mmce"]
    weight: NotNegative
    width: Positive


class MixupTerm(Declared):
    """Mixup in place of cross-entropy; a batch's share of mixing is drawn from Beta(alpha, alpha). For linear heads."""

    term: Literal["mixup"]
    weight: NotNegative
    alpha: Positive


class OwnTerm(OwnFunction):
    """A term of the user's own: ``function(logits, labels, **settings)`` is a scalar."""

    term: Literal["own"]
    weight: NotNegative


LossTerm = Annotated[
    CrossEntropyTerm
    | UncertaintyTerm
    | PoscalTerm
    | FocalTerm
    | BrierTerm
    | ConfidencePenaltyTerm
    | MmceTerm
    | MixupTerm
    | OwnTerm,
    Field(discriminator="term"),
]


def joins_at_once(term: LossTerm) -> bool:
    """Whether the term is there from the first step on."""
    if isinstance(term, UncertaintyTerm):
        return isinstance(term.start, StartByEpoch) and term.start.after_epochs == 0
    return not isinstance(term, PoscalTerm)


def earliest_start(term: LossTerm) -> int:
    """After how many epochs the term joins at the earliest."""
    if not isinstance(term, UncertaintyTerm | PoscalTerm):
        return 0
    start = term.start.after_epochs if isinstance(term.start, StartByEpoch) else term.start.at_least_epochs
    only_at_the_end = isinstance(term, PoscalTerm) and term.updates_per_epoch == 1  # of its first table's epoch
    return max(start, 1) if only_at_the_end else start


class Optimisation(Declared):
    """AdamW with a linear warm-up (a share of all steps) and a linear or no decay."""

    learning_rate: Positive
    weight_decay: NotNegative
    betas: Pair[Decay]
    epsilon: Positive
    batch_size: Count
    epochs: Count
    warmup_share: Share
    decay: Literal["linear", "none"]
    max_gradient_norm: Positive | None
    precision: Literal["auto", "float32", "bfloat16"]  # of the encoder; heads and losses are always float32


class RunSpec(Declared):
    """Everything that one training depends on."""

    training_version: int
    data: DataSpec
    encoder: EncoderSpec
    head: Head
    loss: Items[LossTerm] = Field(min_length=1)
    optimisation: Optimisation
    seed: Seed

"""What is trained (a run), how it is scored (a view), and the identity of both.

A run holds everything that the training depends on and nothing else: no display label, table, profile, device or path.
Its identity is a hash of its canonical form, so the same recipe has the same identity on every machine. None of the
settings has a default here: each stands in ``experiments/``, where a reader can see it.
"""

import hashlib
import json
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from benchmark.errors import nearest

# Raise this number whenever the same settings would train something else: all runs are then made again.
TRAINING_VERSION = 1

Item = TypeVar("Item")
# A sequence, written as a list in YAML and JSON. (Strict validation would take tuples only.)
Items = Annotated[tuple[Item, ...], Strict(False)]
Pair = Annotated[tuple[Item, Item], Strict(False)]
# Names become parts of file names, so no letter of theirs may leave a folder.
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Declared(BaseModel):
    """A strict, frozen description: no unknown key, no silent conversion (an integer may stand for a float)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _name_unknown_keys(cls, value: object) -> object:
        if isinstance(value, dict):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in value:
                if key not in known:
                    hint = nearest(str(key), known)
                    raise PydanticCustomError("unknown_key", 'unknown key "{key}"; {hint}', {"key": key, "hint": hint})
        return value


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


Head = Annotated[LinearHead | HypersphericalHead, Field(discriminator="kind")]


class StartByEntropy(Declared):
    """A term joins once the mean training entropy of an epoch is at most ``until_entropy`` nats, within bounds."""

    until_entropy: Positive
    at_least_epochs: Count
    at_most_share: Share  # of all epochs


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
    """KL(p || empirical posterior). ``empty_bin``: what an empty bin of the table says: nothing, or a share of 0.

    Before the first update of its table the term is 0, whatever ``start`` says.
    """

    term: Literal["poscal"]
    weight: NotNegative
    start: Start
    bins: Count
    updates_per_epoch: Count
    empty_bin: Literal["ignore", "zero"]


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


LossTerm = Annotated[
    CrossEntropyTerm | UncertaintyTerm | PoscalTerm | FocalTerm | BrierTerm | ConfidencePenaltyTerm | MmceTerm,
    Field(discriminator="term"),
]


class Optimisation(Declared):
    """AdamW with a linear warm-up (a share of all steps) and a linear or no decay."""

    learning_rate: Positive
    weight_decay: NotNegative
    betas: Pair[Share]
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


class TemperatureScaling(Declared):
    """One temperature for all logits, fitted on the validation logits within [lowest, highest]."""

    kind: Literal["temperature"]
    lowest: Positive
    highest: Positive


class VectorScaling(Declared):
    """A factor and an offset for each label's logit, fitted by likelihood on the validation logits."""

    kind: Literal["vector"]


class DirichletCalibration(Declared):
    """A linear map of the log-probabilities, fitted by likelihood on the validation logits; ``off_diagonal`` and
    ``intercept`` weigh the squared entries that draw labels together or shift them.
    """

    kind: Literal["dirichlet"]
    off_diagonal: NotNegative
    intercept: NotNegative


class BetaCalibration(Declared):
    """Beta calibration of each label against the others, then normalised."""

    kind: Literal["beta"]


class IsotonicRegression(Declared):
    """Isotonic regression of each label against the others, then normalised."""

    kind: Literal["isotonic"]


class HistogramBinning(Declared):
    """Histogram binning of each label against the others in ``bins`` bins of equal width, then normalised."""

    kind: Literal["histogram"]
    bins: Count


Calibrator = Annotated[
    TemperatureScaling | VectorScaling | DirichletCalibration | BetaCalibration | IsotonicRegression | HistogramBinning,
    Field(discriminator="kind"),
]


class ViewSpec(Declared):
    """How stored logits are scored: a pure function of them, so another view never trains anything."""

    split: Literal["validation", "test"]
    calibrator: Calibrator | None
    ece_bins: Count
    resamples: Annotated[int, Field(ge=0)]  # of the rows, for comparisons
    rare_labels: Annotated[int, Field(ge=0)]  # so many of the rarest labels are resampled one by one


def canonical(spec: Declared) -> str:
    """The one JSON text of a description: sorted keys, no blanks, shortest floats, ASCII."""
    content = spec.model_dump(mode="json")
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def identity(spec: Declared) -> str:
    """The SHA-256 of a description's canonical form, in hexadecimal."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()


def recipe_identity(run: RunSpec) -> str:
    """The identity of a run with its inputs' contents left open: what to do, whatever exactly the rows and weights
    are.
    """
    return identity(
        run.model_copy(
            update={
                "data": run.data.model_copy(update={"fingerprint": None}),
                "encoder": run.encoder.model_copy(update={"fingerprint": None}),
            }
        )
    )


def readable_name(run: RunSpec) -> str:
    """A file name, without ending, that a person can read and that no other run has (it ends in the identity)."""
    terms = "+".join(term.term for term in run.loss)
    noise = f"noise{run.data.corruption:g}" if run.data.corruption else "clean"
    parts = [run.data.dataset, noise, run.encoder.encoder, run.head.kind, terms, f"seed{run.seed}", identity(run)[:12]]
    return ".".join(parts)


def sub_seed(seed: int, *purpose: str) -> int:
    """A seed of its own for each purpose ("head", "order", ...), in [0, 2**63).

    It depends on the run's seed and the purpose only, so two methods of the same seed see the same batches and the same
    changed labels, and one purpose drawing more numbers moves no other.
    """
    text = json.dumps([seed, *purpose], separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

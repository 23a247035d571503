"""How stored logits are scored: a view, perhaps with a post-hoc calibrator. Settings have no defaults here. (Which
validation labels a calibrator is fitted on has one: those that there are; without label noise there are no others.)
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from benchmark.specs.declared import Count, Declared, NotNegative, OwnFunction, Positive

# Raise this number whenever views get other scores: stored logits are then scored again.
SCORING_VERSION = 2

# The scores that are resampled beside F1 and ECE; results from before that lack them, and are not compared by them.
RESAMPLED = ("top_label_ece", "brier", "nll")


class FittedByLabels(Declared):
    """Fitted on the validation logits and labels. Under label noise these labels are as noisy as those trained on
    (``as_trained``), or those from before any was changed (``clean``): an experimenter has these, and a user who had
    the validation rows labelled with care.
    """

    validation_labels: Annotated[
        Literal["as_trained", "clean"], Field(exclude_if=lambda labels: labels == "as_trained")
    ] = "as_trained"


class TemperatureScaling(FittedByLabels):
    """One temperature for all logits, fitted on the validation logits within [lowest, highest]."""

    kind: Literal["temperature"]
    lowest: Positive
    highest: Positive

    @model_validator(mode="after")
    def _in_order(self) -> "TemperatureScaling":
        if self.lowest >= self.highest:
            raise PydanticCustomError("bounds", "lowest: it must be below highest")
        return self


class VectorScaling(FittedByLabels):
    """A factor and an offset for each label's logit, fitted by likelihood on the validation logits, until an iteration
    gains less than ``least_gain``, relative.
    """

    kind: Literal["vector"]
    least_gain: Positive


class DirichletCalibration(FittedByLabels):
    """A linear map of the log-probabilities, fitted by likelihood on the validation logits; ``off_diagonal`` and
    ``intercept`` weigh the squared entries that draw labels together or shift them.
    """

    kind: Literal["dirichlet"]
    off_diagonal: NotNegative
    intercept: NotNegative


class BetaCalibration(FittedByLabels):
    """Beta calibration of each label against the others, then normalised."""

    kind: Literal["beta"]


class IsotonicRegression(FittedByLabels):
    """Isotonic regression of each label against the others, then normalised."""

    kind: Literal["isotonic"]


class HistogramBinning(FittedByLabels):
    """Histogram binning of each label against the others in ``bins`` bins of equal width, then normalised."""

    kind: Literal["histogram"]
    bins: Count


class McDropout(Declared):
    """No calibrator: the mean of the probabilities over so many passes with dropout on, made when a run is trained."""

    kind: Literal["mc_dropout"]
    passes: Annotated[int, Field(ge=1, le=1000)]


class DeepEnsemble(Declared):
    """No calibrator: the mean of the probabilities of ``members`` runs that differ in their seed, s to s + members - 1.

    Ensembles share no run: the first seed is a multiple of ``members``, and the view is that run's.
    """

    kind: Literal["deep_ensemble"]
    members: Annotated[int, Field(ge=2, le=1000)]

    def seeds(self, first: int) -> range:
        """The seeds of the ensemble that starts with that one; none where none does."""
        return range(first, first + self.members) if first % self.members == 0 else range(0)


class OwnCalibrator(OwnFunction, FittedByLabels):
    """A calibrator of the user's own: ``function(logits, labels, **settings)``, given those of the validation rows, is
    a function from logits (N, K) to probabilities (N, K).
    """

    kind: Literal["own"]


# What is fitted on validation logits; the other members of Calibrator are ways to predict.
PostHoc = (
    TemperatureScaling
    | VectorScaling
    | DirichletCalibration
    | BetaCalibration
    | IsotonicRegression
    | HistogramBinning
    | OwnCalibrator
)
Calibrator = Annotated[PostHoc | McDropout | DeepEnsemble, Field(discriminator="kind")]


class ViewSpec(Declared):
    """How stored logits are scored: a pure function of them, so another view never trains anything."""

    scoring_version: int
    split: Literal["validation", "test"]
    calibrator: Calibrator | None
    ece_bins: Count
    resamples: Annotated[int, Field(ge=0)]  # of the rows, for comparisons
    rare_labels: Annotated[int, Field(ge=0)]  # so many of the rarest labels are resampled one by one

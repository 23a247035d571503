"""Results on disk: their schema, their folder, claims on runs."""

from benchmark.store.claiming import HELD, SCORING_PATIENCE, CannotClaim, claim, is_held
from benchmark.store.folder import RESULTS, ResultFolder, Unusable
from benchmark.store.known import KnownResults
from benchmark.store.likeness import has_measures
from benchmark.store.logits import Logits, packed_size
from benchmark.store.outline import Outline
from benchmark.store.parcel import Damaged, Parcel
from benchmark.store.result import (
    SCHEMA_VERSION,
    CorruptionRecord,
    DataRecord,
    EncoderRecord,
    EnvironmentRecord,
    EpochRecord,
    Failure,
    LogitsRecord,
    Result,
    TrainingRecord,
)
from benchmark.store.view import (
    RELIABILITY_BINS,
    Member,
    PerLabel,
    Reliability,
    ResampledLabel,
    ResampledScores,
    ViewRecord,
    finite_or_none,
)

__all__ = [
    "HELD",
    "RELIABILITY_BINS",
    "RESULTS",
    "SCHEMA_VERSION",
    "SCORING_PATIENCE",
    "CannotClaim",
    "CorruptionRecord",
    "Damaged",
    "DataRecord",
    "EncoderRecord",
    "EnvironmentRecord",
    "EpochRecord",
    "Failure",
    "KnownResults",
    "Logits",
    "LogitsRecord",
    "Member",
    "Outline",
    "Parcel",
    "PerLabel",
    "Reliability",
    "ResampledLabel",
    "ResampledScores",
    "Result",
    "ResultFolder",
    "TrainingRecord",
    "Unusable",
    "ViewRecord",
    "claim",
    "finite_or_none",
    "has_measures",
    "is_held",
    "packed_size",
]

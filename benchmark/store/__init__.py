"""Results on disk: their schema, their folder, claims on runs."""

from benchmark.store.claims import claim
from benchmark.store.folder import RESULTS, Damaged, Logits, Parcel, ResultFolder, Unusable
from benchmark.store.result import (
    SCHEMA_VERSION,
    CorruptionRecord,
    DataRecord,
    EncoderRecord,
    EnvironmentRecord,
    EpochRecord,
    Failure,
    LogitsRecord,
    PerLabel,
    Reliability,
    ResampledLabel,
    ResampledScores,
    Result,
    TrainingRecord,
    ViewRecord,
    finite_or_none,
)

__all__ = [
    "RESULTS",
    "SCHEMA_VERSION",
    "CorruptionRecord",
    "Damaged",
    "DataRecord",
    "EncoderRecord",
    "EnvironmentRecord",
    "EpochRecord",
    "Failure",
    "Logits",
    "LogitsRecord",
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
]

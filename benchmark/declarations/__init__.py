"""The shape of the entries in ``experiments/``."""

from benchmark.declarations.claims import Claim, ClaimsFile, Comparison, Tolerance
from benchmark.declarations.data_sets import (
    Dataset,
    Download,
    DrawnRows,
    ExpectedSizes,
    FileSource,
    GeneratedSource,
    HubDownload,
    Publisher,
)
from benchmark.declarations.encoders import BuiltSource, Encoder, EncoderSize, PretrainedSource
from benchmark.declarations.methods import Method, MethodsFile, Metric, MetricsFile, Scoring
from benchmark.declarations.searches import Axis, Search, Value
from benchmark.declarations.tables import Profile, Table, TableColumn, TableRow, TrainingRule

__all__ = [
    "Axis",
    "BuiltSource",
    "Claim",
    "ClaimsFile",
    "Comparison",
    "Dataset",
    "Download",
    "DrawnRows",
    "Encoder",
    "EncoderSize",
    "ExpectedSizes",
    "FileSource",
    "GeneratedSource",
    "HubDownload",
    "Method",
    "MethodsFile",
    "Metric",
    "MetricsFile",
    "PretrainedSource",
    "Profile",
    "Publisher",
    "Scoring",
    "Search",
    "Table",
    "TableColumn",
    "TableRow",
    "Tolerance",
    "TrainingRule",
    "Value",
]

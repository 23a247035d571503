"""The declarative registry: what ``experiments/`` says, checked, and the runs, views and cells that follow from it."""

from benchmark.registry.candidates import Candidate, candidates
from benchmark.registry.cells import (
    CellRequest,
    Part,
    cell_requests,
    clean_columns,
    narrow,
    narrowed,
    select_tables,
    table_subjects,
    told_apart,
)
from benchmark.registry.contents import Registry, require_known, row_key
from benchmark.registry.loading import EXPERIMENTS, OWN, load_registry
from benchmark.registry.references import is_reserved
from benchmark.registry.resolution import (
    Inputs,
    Subject,
    calibrator_of,
    composition,
    encoder_name,
    is_offered,
    method_view,
    methods_of,
    resolve_run,
    run_if_whole,
    validation_view,
)
from benchmark.registry.yaml_files import to_yaml

__all__ = [
    "EXPERIMENTS",
    "OWN",
    "Candidate",
    "CellRequest",
    "Inputs",
    "Part",
    "Registry",
    "Subject",
    "calibrator_of",
    "candidates",
    "cell_requests",
    "clean_columns",
    "composition",
    "encoder_name",
    "is_offered",
    "is_reserved",
    "load_registry",
    "method_view",
    "methods_of",
    "narrow",
    "narrowed",
    "require_known",
    "resolve_run",
    "row_key",
    "run_if_whole",
    "select_tables",
    "table_subjects",
    "to_yaml",
    "told_apart",
    "validation_view",
]

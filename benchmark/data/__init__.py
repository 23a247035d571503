"""Data sets: reading, generating, splitting, corrupting, checking and fetching them."""

from benchmark.data.checks import CorpusReport, check_corpus
from benchmark.data.corpus import Corpus, Split
from benchmark.data.corruption import corrupt_labels, corruption_seed, original_labels
from benchmark.data.fetch import fetch_dataset, fetch_hub_splits
from benchmark.data.loading import find_folder, is_here, load_corpus, missing_sentence
from benchmark.data.readers import Row, read_rows

__all__ = [
    "Corpus",
    "CorpusReport",
    "Row",
    "Split",
    "check_corpus",
    "corrupt_labels",
    "corruption_seed",
    "fetch_dataset",
    "fetch_hub_splits",
    "find_folder",
    "is_here",
    "load_corpus",
    "missing_sentence",
    "original_labels",
    "read_rows",
]

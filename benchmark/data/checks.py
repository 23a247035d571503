"""What a person should know of a data set before trusting numbers made from it: counts; data are never changed."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from benchmark.data.corpus import Corpus
from benchmark.splits import SPLITS

_FEW_TEST_ROWS = 200
_FEW_VALIDATION_ROWS = 10  # a label


@dataclass(frozen=True)
class CorpusReport:
    """Counts over a corpus; texts are compared as they are, to the letter."""

    rows: dict[str, int]
    labels: int
    labels_without_training_rows: int
    labels_without_validation_rows: int
    labels_without_test_rows: int
    rarest_label_rows: int
    commonest_label_rows: int
    labels_nearly_alike: int
    empty_texts: int
    repeated_in_split: dict[str, int]  # rows whose text stands earlier in the same split
    test_texts_in_training: int  # test rows whose text is a training or validation text, too
    conflicting_texts: int  # different texts that bear more than one label, over all splits
    fingerprint: str

    def remarks(self) -> list[str]:
        """What there is to know before numbers made from it are trusted, a line each; nothing where all is in order."""
        repeated = ", ".join(f"{count} in {split}" for split, count in self.repeated_in_split.items() if count)
        counts = {
            "texts that stand more than once": repeated,
            "test texts that are training or validation texts, too": self.test_texts_in_training,
            "texts with more than one label": self.conflicting_texts,
            "empty texts": self.empty_texts,
            "labels without a training row": self.labels_without_training_rows,
            "labels without a validation row (calibrators of single labels know nothing of them)": (
                self.labels_without_validation_rows
            ),
            "labels without a test row (they score 0 in every macro average)": self.labels_without_test_rows,
            "labels that differ from another only by blanks or capitals": self.labels_nearly_alike,
        }
        found = [f"{what}: {count}" for what, count in counts.items() if count]
        if self.rows["test"] < _FEW_TEST_ROWS:
            found.append(f"only {self.rows['test']} test rows: few differences between methods will rise above noise")
        if self.rows["validation"] < _FEW_VALIDATION_ROWS * self.labels:
            found.append(
                f"only {self.rows['validation']} validation rows of {self.labels} labels to fit a calibrator on"
            )
        return found


def check_corpus(corpus: Corpus) -> CorpusReport:
    """The report of a corpus."""
    labels_of: dict[str, set[int]] = defaultdict(set)
    for split in SPLITS:
        rows = corpus.split(split)
        for text, label in zip(rows.texts, rows.labels.tolist(), strict=True):
            labels_of[text].add(label)
    training, validation, test = (
        np.bincount(corpus.split(split).labels, minlength=corpus.n_labels).tolist() for split in SPLITS
    )
    seen_before = set(corpus.train.texts) | set(corpus.validation.texts)
    return CorpusReport(
        rows={split: len(corpus.split(split)) for split in SPLITS},
        labels=corpus.n_labels,
        labels_without_training_rows=training.count(0),
        labels_without_validation_rows=validation.count(0),
        labels_without_test_rows=test.count(0),
        rarest_label_rows=min(training),
        commonest_label_rows=max(training),
        labels_nearly_alike=corpus.n_labels - len({"".join(name.split()).casefold() for name in corpus.label_names}),
        empty_texts=sum(not text.strip() for split in SPLITS for text in corpus.split(split).texts),
        repeated_in_split={split: _repeated(corpus.split(split).texts) for split in SPLITS},
        test_texts_in_training=sum(text in seen_before for text in corpus.test.texts),
        conflicting_texts=sum(len(labels) > 1 for labels in labels_of.values()),
        fingerprint=corpus.fingerprint,
    )


def _repeated(texts: tuple[str, ...]) -> int:
    return len(texts) - len(set(texts))

"""What a person should know of a data set before trusting numbers made from it; data are never changed."""

import json
import unicodedata
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from benchmark.data.corpus import Corpus
from benchmark.splits import SPLITS

_FEW_TEST_ROWS = 200
_FEW_VALIDATION_ROWS = 10  # a label
_EXAMPLES = 3
_LONGEST_TEXT, _LONGEST_LABEL = 40, 100


@dataclass(frozen=True)
class CorpusReport:
    """What was found in a corpus: counts, or the labels and texts themselves; texts are compared as they are, to the
    letter.
    """

    rows: dict[str, int]
    labels: int
    labels_without_training_rows: tuple[str, ...]
    labels_without_validation_rows: tuple[str, ...]
    labels_without_test_rows: tuple[str, ...]
    rarest_label_rows: int
    commonest_label_rows: int
    labels_nearly_alike: tuple[str, ...]  # each differs from another one only by blanks, capitals, invisible characters
    empty_texts: int
    repeated_in_split: dict[str, int]  # rows whose text stands earlier in the same split
    validation_texts_in_training: int  # validation rows whose text is a training text, too
    test_texts_seen_before: int  # test rows whose text is a training or validation text, too
    conflicting_texts: tuple[str, ...]  # those that bear more than one label, over all splits
    fingerprint: str

    def sizes(self) -> str:
        """How many rows of how many labels there are, in words."""
        rows = " / ".join(f"{count:,}" for count in self.rows.values())
        return f"rows: {rows} (training / validation / test), {self.labels} labels"

    def remarks(self, with_texts: bool = True) -> list[str]:
        """What there is to know before numbers made from it are trusted, a line each; nothing where all is in order.
        ``with_texts``: with examples of texts, which are not for everybody's eyes.
        """
        repeated = ", ".join(f"{count} in {split}" for split, count in self.repeated_in_split.items() if count)
        what = {
            "texts that stand more than once": repeated,
            "validation texts that are training texts, too (calibrators fitted on them will be too sure)": str(
                self.validation_texts_in_training or ""
            ),
            "test texts that are training or validation texts, too": str(self.test_texts_seen_before or ""),
            "texts with more than one label": (
                _counted(self.conflicting_texts, _LONGEST_TEXT)
                if with_texts
                else str(len(self.conflicting_texts) or "")
            ),
            "empty texts": str(self.empty_texts or ""),
            "labels without a training row": _counted(self.labels_without_training_rows),
            "labels without a validation row (calibrators of single labels know nothing of them)": _counted(
                self.labels_without_validation_rows
            ),
            "labels without a test row (they score 0 in every macro average)": _counted(self.labels_without_test_rows),
            "labels that differ from another only by blanks, capitals or how letters are encoded": _counted(
                self.labels_nearly_alike
            ),
        }
        found = [f"{name}: {value}" for name, value in what.items() if value]
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
    counts = {split: np.bincount(corpus.split(split).labels, minlength=corpus.n_labels).tolist() for split in SPLITS}
    without = {
        split: tuple(name for name, count in zip(corpus.label_names, found, strict=True) if not count)
        for split, found in counts.items()
    }
    trained_on = set(corpus.train.texts)
    seen_before = trained_on | set(corpus.validation.texts)
    return CorpusReport(
        rows={split: len(corpus.split(split)) for split in SPLITS},
        labels=corpus.n_labels,
        labels_without_training_rows=without["train"],
        labels_without_validation_rows=without["validation"],
        labels_without_test_rows=without["test"],
        rarest_label_rows=min(counts["train"]),
        commonest_label_rows=max(counts["train"]),
        labels_nearly_alike=_nearly_alike(corpus.label_names),
        empty_texts=sum(not text.strip() for split in SPLITS for text in corpus.split(split).texts),
        repeated_in_split={split: _repeated(corpus.split(split).texts) for split in SPLITS},
        validation_texts_in_training=sum(text in trained_on for text in corpus.validation.texts),
        test_texts_seen_before=sum(text in seen_before for text in corpus.test.texts),
        conflicting_texts=tuple(text for text, labels in labels_of.items() if len(labels) > 1),
        fingerprint=corpus.fingerprint,
    )


def _nearly_alike(names: tuple[str, ...]) -> tuple[str, ...]:
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        letters = unicodedata.normalize("NFKC", name).casefold()
        alike["".join(one for one in letters if not one.isspace() and unicodedata.category(one) != "Cf")].append(name)
    return tuple(name for group in alike.values() if len(group) > 1 for name in group)


def _counted(names: tuple[str, ...], longest: int = _LONGEST_LABEL) -> str:
    """How many, and the first of them; nothing for none."""
    if not names:
        return ""
    cut = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name in names[:_EXAMPLES]]
    shown = [json.dumps(name, ensure_ascii=False) for name in cut]
    return f"{len(names)} ({', '.join([*shown, *(['...'] if len(names) > _EXAMPLES else [])])})"


def _repeated(texts: tuple[str, ...]) -> int:
    return len(texts) - len(set(texts))

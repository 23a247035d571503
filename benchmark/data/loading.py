"""From a declared data set to a corpus: read its files or generate it, order its labels, hold out validation rows."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmark.data.corpus import Corpus, Split
from benchmark.data.generated import generate
from benchmark.data.readers import Row, read_files
from benchmark.declarations import Dataset, DrawnRows, FileSource, GeneratedSource
from benchmark.errors import UserError, nearest

_FEWEST_TO_GIVE_ONE = 3  # rows of a label, so that beside one to test on there is more than one to train on


def load_corpus(name: str, dataset: Dataset, folders: Iterable[Path]) -> Corpus:
    """The corpus of a declared data set, from the first of ``folders`` that holds its folder (generated ones need
    none).

    Raises UserError where it is not there, cannot be read (file and line), or is not the data set that was declared:
    sizes, number of labels, a label that is not in the declared order, a test label that training rows lack.
    """
    if isinstance(dataset.source, GeneratedSource):
        corpus = generate(name, dataset.source)
    else:
        folder = find_folder(dataset, folders)
        if folder is None:
            raise UserError(missing_sentence(name, dataset))
        corpus = _from_rows(name, dataset, read_files(dataset.source, folder))
    _check_sizes(dataset, corpus)
    return corpus


def find_folder(dataset: Dataset, folders: Iterable[Path]) -> Path | None:
    """The data set's own folder below the first of ``folders`` that has it; None for none or a generated data set."""
    if isinstance(dataset.source, FileSource):
        if Path(dataset.source.folder).is_absolute():
            whole = Path(dataset.source.folder)
            return whole if whole.is_dir() else None
        for folder in folders:
            if (folder / dataset.source.folder).is_dir():
                return folder / dataset.source.folder
    return None


def is_here(dataset: Dataset, folders: Iterable[Path]) -> bool:
    """Whether the data set can be loaded on this machine."""
    return isinstance(dataset.source, GeneratedSource) or find_folder(dataset, folders) is not None


def missing_sentence(name: str, dataset: Dataset) -> str:
    """What to do where a data set is not on this machine."""
    assert isinstance(dataset.source, FileSource), "a generated data set is never missing"
    if Path(dataset.source.folder).is_absolute():
        return f'The data set "{name}" is not on this machine: there is no folder {dataset.source.folder}.'
    fetch = "fetch it with `python -m benchmark.prepare` and the same --profile, or " if dataset.publisher else ""
    return (
        f'The data set "{name}" is not on this machine: {fetch}give the folder that holds '
        f'"{dataset.source.folder}/" by --data-dir or BENCHMARK_DATA_DIR.'
    )


def _from_rows(name: str, dataset: Dataset, rows: dict[str, list[Row]]) -> Corpus:
    if dataset.labels == "sorted":
        label_names = tuple(sorted({row.label for row in rows["train"]}))
    else:
        label_names = tuple(dataset.labels)
    if len(label_names) < 2:
        raise UserError(f'Data set "{name}" has only the label "{label_names[0]}"; there is nothing to tell apart.')
    number = {label: index for index, label in enumerate(label_names)}
    splits = {split: _numbered(content, number) for split, content in rows.items()}
    if dataset.test is not None:
        splits["train"], splits["test"] = _hold_out(name, "test", splits["train"], dataset.test)
    if "validation" not in splits:
        if dataset.validation is None:
            raise UserError(
                f'Data set "{name}" says neither validation files nor how many rows to hold out; add '
                '"validation: {rows: ..., seed: 0}" to its entry in experiments/.'
            )
        splits["train"], splits["validation"] = _hold_out(name, "validation", splits["train"], dataset.validation)
    if dataset.train is not None:
        splits["train"] = _drawn(name, splits["train"], dataset.train, label_names)
    if len(splits["test"]) < 2:
        raise UserError(f'Data set "{name}" has one test row, by which nothing can be told from noise; give it more.')
    return Corpus(name, label_names, splits["train"], splits["validation"], splits["test"], origin=dataset.source.kind)


def _numbered(rows: list[Row], number: dict[str, int]) -> Split:
    labels = np.empty(len(rows), dtype=np.int64)
    for index, row in enumerate(rows):
        if row.label not in number:
            raise UserError(
                f'{row.place}: the label "{row.label}" is not one of the {len(number)} labels of this data set; '
                f"{nearest(row.label, number)}"
            )
        labels[index] = number[row.label]
    return Split(tuple(row.text for row in rows), labels)


def _hold_out(name: str, split: str, train: Split, wanted: DrawnRows) -> tuple[Split, Split]:
    """Training and held-out rows, each in the order of the file; which rows, a seed of the data set alone decides.

    By label, a text that stands more than once stays in the training rows, as far as its label has others to give, so
    that it is not trained on and tested, too.
    """
    random = np.random.default_rng(wanted.seed)
    order = random.permutation(len(train))
    most = len(train) - (len(np.unique(train.labels)) if wanted.stratified else 1)
    if wanted.rows > most:
        kept = " (each label keeps one)" if wanted.stratified else ""
        raise UserError(
            f'Data set "{name}": {wanted.rows} {split} rows cannot be held out of {len(train)} training rows{kept}.'
        )
    chosen = order[: wanted.rows]
    if wanted.stratified:
        chosen = _without_repeats(train, order, _by_share(train.labels, order, wanted.rows, random))
    held_out = np.zeros(len(train), dtype=bool)
    held_out[chosen] = True
    return _subset(train, ~held_out), _subset(train, held_out)


def _drawn(name: str, train: Split, wanted: DrawnRows, label_names: tuple[str, ...]) -> Split:
    """So many of the training rows, in the order of the file: the same validation and test rows for any number of
    them. Where they are not drawn by label, larger numbers of one seed hold the rows of smaller ones.
    """
    others = len(train) - wanted.rows
    if others < 0:
        raise UserError(f'Data set "{name}": train: there are not {wanted.rows} training rows, but {len(train)}.')
    if others == 0:
        return train
    n_labels = len(np.unique(train.labels))
    if wanted.rows < n_labels:
        raise UserError(f'Data set "{name}": train.rows: {wanted.rows} is too few for its {n_labels} labels.')
    random = np.random.default_rng(wanted.seed)
    order = random.permutation(len(train))
    kept = np.zeros(len(train), dtype=bool)
    if wanted.stratified:  # as they come: rows whose text stands more than once are no reason to be drawn
        kept[:] = True
        kept[_by_share(train.labels, order, others, random)] = False
        return _subset(train, kept)
    kept[order[: wanted.rows]] = True
    lost = np.setdiff1d(train.labels, train.labels[kept])
    if len(lost):
        raise UserError(
            f'Data set "{name}": train: the label "{label_names[lost[0]]}" has no row among the {wanted.rows} drawn; '
            'take more rows, or draw them by label ("stratified: true").'
        )
    return _subset(train, kept)


def _shares(counts: np.ndarray, rows: int, random: np.random.Generator) -> np.ndarray:
    """How many of ``rows`` each label gives that has so many: its share, rounded down; what is left goes to those that
    give none so far and have three or more, then to whoever is furthest below its share, by lot among equals. Each
    keeps one.
    """
    ideal, most = counts * (rows / counts.sum()), np.maximum(counts - 1, 0)
    given: np.ndarray = np.minimum(ideal.astype(np.int64), most)
    lots = random.permutation(len(counts))
    while left := rows - int(given.sum()):
        rare = (given == 0) & (counts >= _FEWEST_TO_GIVE_ONE)
        order = np.lexsort((lots, given - ideal, ~rare, given >= most))
        given[order[: min(left, int((given < most).sum()))]] += 1
    return given


def _by_share(labels: np.ndarray, order: np.ndarray, rows: int, random: np.random.Generator) -> np.ndarray:
    """So many rows, of each label its share of those that come first in ``order``, but never the very first."""
    _, candidates = _by_label(labels, order)
    shares, of_candidates = _shares(np.bincount(labels), rows, random), labels[candidates]
    place = np.arange(len(candidates)) - np.searchsorted(of_candidates, of_candidates)  # among those of its label
    chosen: np.ndarray = candidates[place < shares[of_candidates]]
    return chosen


def _by_label(labels: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows in ``order`` sorted by label: the first of each, and the others."""
    ordered = order[np.argsort(labels[order], kind="stable")]
    first = np.concatenate([[True], labels[ordered][1:] != labels[ordered][:-1]])
    return ordered[first], ordered[~first]


def _without_repeats(train: Split, order: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen rows, each whose text stands more than once replaced by one of its label whose text does not, while
    there are such, the first of the label last of all.
    """
    counts, labels, taken = Counter(train.texts), train.labels.tolist(), set(chosen.tolist())
    spare: dict[int, list[int]] = defaultdict(list)
    for row in np.concatenate(_by_label(train.labels, order)).tolist():
        if counts[train.texts[row]] == 1 and row not in taken:
            spare[labels[row]].append(row)
    return np.array(
        [
            spare[labels[row]].pop() if counts[train.texts[row]] > 1 and spare[labels[row]] else row
            for row in chosen.tolist()
        ],
        dtype=np.int64,
    )


def _subset(split: Split, mask: np.ndarray) -> Split:
    return Split(tuple(text for text, kept in zip(split.texts, mask.tolist(), strict=True) if kept), split.labels[mask])


def _check_sizes(dataset: Dataset, corpus: Corpus) -> None:
    if dataset.expected is None:
        return
    found = {"train": len(corpus.train), "validation": len(corpus.validation), "test": len(corpus.test)}
    found["labels"] = corpus.n_labels
    expected = dataset.expected.model_dump()
    wrong = [f"{count} {what} (expected {expected[what]})" for what, count in found.items() if count != expected[what]]
    if wrong:
        raise UserError(
            f'Data set "{corpus.name}" is not the one declared: {", ".join(wrong)}; use the published files, or change '
            '"expected" in its entry in experiments/ if other rows are meant.'
        )

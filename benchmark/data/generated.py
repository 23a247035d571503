"""Generated corpora: small stand-ins with the labels, imbalance and difficulty of real ones, made from a seed."""

import numpy as np

from benchmark.data.corpus import Corpus, Split
from benchmark.declarations import GeneratedSource
from benchmark.pseudo_words import pseudo_words
from benchmark.splits import SPLITS


def generate(name: str, source: GeneratedSource) -> Corpus:
    """A corpus drawn from a simple topic model, the same for the same settings.

    ``keywords_per_label`` words are drawn for each label, so that some labels share one. A text has
    ``words_per_text`` (from, to) words; each is a keyword of its topic with probability ``keyword_share``, of the
    topic's neighbour (the next label) with ``neighbour_share``, else any word of the vocabulary. Its topic is its
    label, but for a share ``confusion`` of the texts, whose topic is another label: no model can do better than
    that allows, and one that learns those texts by heart grows over-confident. Training rows are shared out by
    ``label_shares`` (equal if not said); the other splits draw labels from the same shares.
    """
    words = pseudo_words(source.vocabulary)
    generator = np.random.default_rng(source.seed)
    keywords = np.stack(
        [generator.choice(source.vocabulary, source.keywords_per_label, replace=False) for _ in range(source.labels)]
    )
    shares = np.array(source.label_shares or [1.0] * source.labels)
    splits = {
        split: _texts(source, generator, words, keywords, shares / shares.sum(), source.rows[split]) for split in SPLITS
    }
    label_names = tuple(f"intent_{index:02d}" for index in range(source.labels))
    return Corpus(name, label_names, splits["train"], splits["validation"], splits["test"], origin="generated")


def _texts(
    source: GeneratedSource,
    generator: np.random.Generator,
    words: list[str],
    keywords: np.ndarray,
    shares: np.ndarray,
    n_rows: int,
) -> Split:
    labels = _labels(generator, shares, n_rows)
    others = (labels + generator.integers(1, source.labels, size=n_rows)) % source.labels
    topics = np.where(generator.random(n_rows) < source.confusion, others, labels)
    shortest, longest = source.words_per_text
    lengths = generator.integers(shortest, longest + 1, size=n_rows)
    kinds = generator.random((n_rows, longest))
    choice = generator.integers(0, source.keywords_per_label, size=(n_rows, longest))
    own, next_to_it = keywords[topics[:, None], choice], keywords[(topics[:, None] + 1) % source.labels, choice]
    anything = generator.integers(0, source.vocabulary, size=(n_rows, longest))
    neighbour_below = source.keyword_share + source.neighbour_share
    drawn = np.where(kinds < source.keyword_share, own, np.where(kinds < neighbour_below, next_to_it, anything))
    texts = tuple(
        " ".join(words[word] for word in row[:length])
        for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True)
    )
    return Split(texts, labels)


def _labels(generator: np.random.Generator, shares: np.ndarray, n_rows: int) -> np.ndarray:
    """Labels in the given shares as nearly as whole rows allow (at least one row each, of at least one row a label), in
    random order.
    """
    counts = np.maximum(np.floor(shares * n_rows).astype(np.int64), 1)
    while counts.sum() > n_rows:  # rows given to labels whose share is less than one come from the largest
        counts[counts.argmax()] -= 1
    order = np.argsort(-(shares * n_rows - counts), kind="stable")
    counts[order[: n_rows - counts.sum()]] += 1
    return generator.permutation(np.repeat(np.arange(len(shares)), counts)).astype(np.int64)

"""Sentence pairs of languages with contexts: endless samples, or a weighted list of the distribution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_units, stream_key
from mnmt_data.synthetic.contexts import ContextsConfig, contexts_of, test_sources, uniform_rows
from mnmt_data.synthetic.lexicon import syllables, text_lines, word_bytes
from mnmt_data.synthetic.population import WeightedPairs, couple

Lines = NDArray[np.uint8]
Rows = NDArray[np.int64]
Shares = NDArray[np.float64]

_MOST_CELLS = 2**22
"""Probabilities compared at once, at 8 bytes each."""


def context_pairs(config: ContextsConfig, split: str, task: str) -> Iterator[tuple[Lines, Lines]]:
    """Yield endless blocks of sentence pairs, as lines of text in bytes (see `lexicon.text_lines`).

    Sources are a pure function of (seed, split), targets of (seed, split, task): tasks are parallel, and a
    longer corpus begins with a shorter one.
    """
    language = task.partition("-")[2]
    cumulative = config.teacher.probabilities(language).cumsum(axis=1)
    source_key = stream_key(config.seed, "contexts", split)
    target_key = stream_key(config.seed, "choices", split, language)
    block = 0
    while True:
        sources = uniform_rows(source_key, block, config.words_per_sentence) * config.words
        sentences = sources.astype(np.int64)
        units = uniform_rows(target_key, block, config.target_words)
        targets = _choose_words(units.ravel(), contexts_of(sentences, config).ravel(), cumulative)
        yield _lines(config, sentences, targets.reshape(units.shape))
        block += 1


def _choose_words(units: Shares, contexts: Rows, cumulative: Shares) -> Rows:
    """Map uniform numbers in [0, 1) to words by the cumulative probabilities of their contexts.

    Args:
        units: (n,).
        contexts: (n,) rows of `cumulative`.
        cumulative: (contexts, words).
    """
    step = max(1, _MOST_CELLS // cumulative.shape[1])
    pieces = [slice(start, start + step) for start in range(0, len(units), step)]
    words = [(units[piece, None] >= cumulative[contexts[piece]]).sum(axis=1) for piece in pieces]
    return np.asarray(np.minimum(np.concatenate(words), cumulative.shape[1] - 1))


def weighted_context_pairs(config: ContextsConfig, task: str) -> WeightedPairs:
    """Return weighted sentence pairs that represent the distribution, with the same sources for all tasks.

    Every context, or each drawn one, occurs once at each position, where each target word has exactly its
    probability (see `population.couple`).
    """
    sentences = test_sources(config)
    probabilities = config.teacher.probabilities(task.partition("-")[2])
    # Each position has the words in another order, so that probable words are not always paired.
    orders = _orders(config)
    shares = np.stack(
        [
            probabilities[contexts][:, order]
            for contexts, order in zip(contexts_of(sentences, config).T, orders, strict=True)
        ],
        axis=1,
    )
    tuples, weights = couple(shares)
    words = np.stack([order[tuples[:, :, i]] for i, order in enumerate(orders)], axis=2)
    rows, columns = np.nonzero(weights)
    src, tgt = _lines(config, sentences[rows], words[rows, columns])
    factors = weights[rows, columns]
    return WeightedPairs(src=src, tgt=tgt, weights=factors / factors.mean())


def _orders(config: ContextsConfig) -> list[Rows]:
    """Return an order of the target words for each position."""
    return [
        random_units(stream_key(config.seed, "exact test", place), 0, config.words).argsort()
        for place in range(config.target_words)
    ]


def _lines(config: ContextsConfig, sentences: Rows, targets: Rows) -> tuple[Lines, Lines]:
    spelled = word_bytes(np.arange(config.words)[:, None], syllables(config.words))
    return text_lines(sentences, spelled), text_lines(targets, spelled)

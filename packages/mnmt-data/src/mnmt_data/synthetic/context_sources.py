"""The source sentences of languages of contexts, and the contexts that their words make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import permute, random_units, stream_key

if TYPE_CHECKING:
    from mnmt_data.synthetic.contexts import ContextsConfig

Rows = NDArray[np.int64]

_BLOCK = 2**15


def contexts_of(sentences: Rows, config: ContextsConfig) -> Rows:
    """Return each target word's context, as a row of `Teacher.probabilities`: (sentences, target words)."""
    contexts = np.zeros((len(sentences), config.target_words), dtype=np.int64)
    for position in range(config.context):
        contexts = contexts * config.words + sentences[:, position : position + config.target_words]
    return contexts


def test_sources(config: ContextsConfig) -> Rows:
    """Return the source sentences of an exact test set: (contexts, words a sentence).

    Each context stands once at each position, or `test_contexts` of them, others at each.

    Every later word is the one `context` places before it, moved on by a number of the place. So the contexts
    of a place are a permutation of those of the place before.
    """
    count = config.words**config.context
    contexts = np.arange(count)
    if config.test_contexts:
        key = stream_key(config.seed, "exact test", "contexts")
        indices = np.arange(config.test_contexts)
        contexts = np.sort(permute(indices, count, key, epochs=np.zeros_like(indices)))
    columns = list(np.unravel_index(contexts, (config.words,) * config.context))
    key = stream_key(config.seed, "exact test", "sources")
    moves = uniform_rows(key, 0, 1)[: config.words_per_sentence, 0]
    for place in range(config.context, config.words_per_sentence):
        columns.append((columns[place - config.context] + int(moves[place] * config.words)) % config.words)
    return np.stack(columns, axis=1)


def uniform_rows(key: NDArray[np.uint64], block: int, columns: int) -> NDArray[np.float64]:
    """Return the uniform numbers of a block: (sentences, columns)."""
    return random_units(key, block * _BLOCK * columns, _BLOCK * columns).reshape(_BLOCK, columns)

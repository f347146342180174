"""Endless sentence pairs of languages with a lexicon."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_units, stream_key
from mnmt_data.synthetic.concepts import concept_sentences, zipf_probabilities
from mnmt_data.synthetic.config import SOURCE_LANGUAGE, SyntheticConfig
from mnmt_data.synthetic.lexicon import (
    shared_concepts,
    syllables,
    synonyms,
    text_lines,
    unique_spellings,
    word_bytes,
)

Lines = NDArray[np.uint8]
Rows = NDArray[np.int64]


def sentence_pairs(config: SyntheticConfig, split: str, task: str) -> Iterator[tuple[Lines, Lines]]:
    """Yield endless blocks of sentence pairs, as lines of text in bytes (see `lexicon.text_lines`).

    The pairs are a pure function of (seed, split, task): a longer corpus begins with a shorter one.
    No split contains a source sentence of another (see `concepts.concept_sentences`).
    """
    src, tgt = task.split("-")
    source, target, first = source_words(config, src), target_words(config, tgt), 0
    for sentences in _concept_sentences(config, split, task):
        words = _choose_synonyms(config, sentences, split, task, first)
        yield text_lines(sentences, source), text_lines(words, target)
        first += len(sentences)


def source_words(config: SyntheticConfig, language: str = SOURCE_LANGUAGE) -> Lines:
    """Return the distinct source spelling of each concept: (concepts, width)."""
    if language != SOURCE_LANGUAGE:
        return target_words(config, language)[::2]
    spellings = unique_spellings(
        config.concepts,
        length=config.source_syllables,
        inventory=config.syllable_inventory,
        seed=config.seed,
        language=SOURCE_LANGUAGE,
    )
    return word_bytes(spellings, syllables(config.syllable_inventory))


def target_words(config: SyntheticConfig, language: str) -> Lines:
    """Return both spellings of each concept in turn, which are equal in `xx`: (2 · concepts, width)."""
    if language == SOURCE_LANGUAGE:
        return np.repeat(source_words(config), 2, axis=0)
    seed, inventory = config.seed, config.syllable_inventory
    shared = shared_concepts(config.concepts, config.shared_lexicon, seed=seed)
    first = unique_spellings(
        config.concepts,
        length=config.target_syllables,
        inventory=inventory,
        seed=seed,
        language=language,
        shared=shared,
    )
    second = synonyms(first, inventory=inventory, seed=seed, language=language, shared=shared)
    both = np.stack([first, second], axis=1).reshape(2 * config.concepts, -1)
    return word_bytes(both, syllables(inventory))


def _concept_sentences(config: SyntheticConfig, split: str, task: str) -> Iterator[Rows]:
    probabilities = zipf_probabilities(config.concepts, config.zipf_exponent_of(task))
    length = config.words_per_sentence
    return concept_sentences(probabilities, length, split=split, task=task, seed=config.seed)


def _choose_synonyms(config: SyntheticConfig, sentences: Rows, split: str, task: str, first: int) -> Rows:
    """Return rows of `target_words` for sentences from `first` on, in the same shape as `sentences`."""
    key = stream_key(config.seed, "synonyms", split, task)
    units = random_units(key, first * sentences.shape[1], sentences.size).reshape(sentences.shape)
    return 2 * sentences + (units < config.synonym_rate)

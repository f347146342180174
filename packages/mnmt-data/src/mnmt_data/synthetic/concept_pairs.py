"""Sentence pairs of languages of a lexicon: without end, or all words there are with their weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_units, stream_key
from mnmt_data.synthetic.concepts import (
    NO_WORD,
    concept_sentences,
    sentence_lengths,
    zipf_probabilities,
)
from mnmt_data.synthetic.config import SOURCE_LANGUAGE, SyntheticConfig
from mnmt_data.synthetic.lexicon import (
    pad_lines,
    reorder_words,
    shared_concepts,
    syllables,
    synonyms,
    text_lines,
    unique_spellings,
    word_bytes,
    word_orders,
)
from mnmt_data.synthetic.population import WeightedPairs, word_tuples

Lines = NDArray[np.uint8]
Rows = NDArray[np.int64]


def sentence_pairs(config: SyntheticConfig, split: str, task: str) -> Iterator[tuple[Lines, Lines]]:
    """Yield blocks of sentence pairs, without end, as lines of text in bytes (see `lexicon.text_lines`).

    The pairs are a pure function of (seed, split, task): more sentences begin with the earlier ones.
    No split contains a source sentence of another (see `concepts.concept_sentences`).
    """
    spelling, first = _Spelling.of(config, task), 0
    for sentences in _concept_sentences(config, split, task):
        lines = spelling.lines(sentences, _choose_synonyms(config, sentences, split, task, first))
        yield _spoil_pairs(config, *lines, task, first) if split == "train" else lines
        first += len(sentences)


def weighted_pairs(config: SyntheticConfig, task: str) -> WeightedPairs:
    """Return sentence pairs that stand for all there are (see `population.word_tuples`).

    At every position every concept has exactly its probability, and so has each of its spellings. Sources
    are the same for all tasks into languages with synonyms.
    """
    rate = 0.0 if task.partition("-")[2] == SOURCE_LANGUAGE else config.synonym_rate
    probabilities = zipf_probabilities(config.concepts, config.zipf_exponent)
    shares, pieces = np.outer(probabilities, (1 - rate, rate)).ravel(), max(1, config.test_sentences)
    shortest, longest = config.lengths
    sentences, weights = [], []
    for length in range(shortest, longest + 1):
        key = stream_key(config.seed, "exact test", length)
        words, shares_of_words = word_tuples(shares, length, pieces=pieces, key=key)
        sentences.append(np.pad(words, ((0, 0), (0, longest - length)), constant_values=NO_WORD))
        weights.append(shares_of_words)
    words, factors = np.concatenate(sentences), np.concatenate(weights)
    src, tgt = _Spelling.of(config, task).lines(np.where(words == NO_WORD, NO_WORD, words // 2), words)
    return WeightedPairs(src=src, tgt=tgt, weights=factors / factors.mean())


def source_words(config: SyntheticConfig, language: str = SOURCE_LANGUAGE) -> Lines:
    """Return the source spelling of each concept, no two alike: (concepts, width)."""
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
    """Return each concept's two spellings in turn, which are equal in `xx`: (2 · concepts, width)."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Spelling:
    """The words and the word orders of the two languages of a task."""

    source: Lines
    target: Lines
    src_orders: Rows
    tgt_orders: Rows

    @classmethod
    def of(cls, config: SyntheticConfig, task: str) -> _Spelling:
        src, tgt = task.split("-")
        return cls(
            source=source_words(config, src),
            target=target_words(config, tgt),
            src_orders=_orders(config, src),
            tgt_orders=_orders(config, tgt),
        )

    def lines(self, sentences: Rows, words: Rows) -> tuple[Lines, Lines]:
        """Return source and target lines of sentences, given as concepts and as rows of `target`."""
        lengths = sentence_lengths(sentences)
        return (
            text_lines(reorder_words(sentences, lengths, self.src_orders), self.source),
            text_lines(reorder_words(words, lengths, self.tgt_orders), self.target),
        )


def _orders(config: SyntheticConfig, language: str) -> Rows:
    """Return which word of `xx` stands at each position in a language, for every length."""
    order = "same" if language == SOURCE_LANGUAGE else config.word_order
    return word_orders(order, config.lengths[1], seed=config.seed, language=language)


def _concept_sentences(config: SyntheticConfig, split: str, task: str) -> Iterator[Rows]:
    probabilities = zipf_probabilities(config.concepts, config.zipf_exponent)
    return concept_sentences(probabilities, config.lengths, split=split, task=task, seed=config.seed)


def _choose_synonyms(config: SyntheticConfig, sentences: Rows, split: str, task: str, first: int) -> Rows:
    """Return rows of `target_words` for sentences from `first` on, in the same shape as `sentences`."""
    key = stream_key(config.seed, "synonyms", split, task)
    units = random_units(key, first * sentences.shape[1], sentences.size).reshape(sentences.shape)
    return np.where(sentences == NO_WORD, NO_WORD, 2 * sentences + (units < config.synonym_rate))


def _spoil_pairs(
    config: SyntheticConfig, source: Lines, target: Lines, task: str, first: int
) -> tuple[Lines, Lines]:
    """Spoil training pairs from `first` on: some become copies, some get the next pair's target."""
    if config.noise == config.copies == 0:
        return source, target
    units = random_units(stream_key(config.seed, "noise", task), first, len(source))[:, None]
    width = max(source.shape[1], target.shape[1])
    copy, target = pad_lines(source, width), pad_lines(target, width)
    misaligned = np.where(units < config.copies + config.noise, np.roll(target, -1, axis=0), target)
    return source, np.where(units < config.copies, copy, misaligned)

"""Sentence pairs of synthetic languages, without end, and corpus folders of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_units, stream_key
from mnmt_data.store.atomic_file import write_json
from mnmt_data.store.corpus_folder import DESCRIPTION
from mnmt_data.synthetic.concepts import (
    NO_WORD,
    SPLITS,
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
    text_bytes,
    text_lines,
    unique_spellings,
    word_bytes,
    word_orders,
)

Lines = NDArray[np.uint8]


def sentence_pairs(config: SyntheticConfig, split: str, task: str) -> Iterator[tuple[Lines, Lines]]:
    """Yield blocks of sentence pairs, without end, as lines of text in bytes (see `lexicon.text_lines`).

    The pairs are a pure function of (seed, split, task): more sentences begin with the earlier ones.
    No split contains a source sentence of another (see `concepts.concept_sentences`).
    """
    src, tgt = task.split("-")
    source, target = source_words(config, src), target_words(config, tgt)
    src_orders, tgt_orders = _orders(config, src), _orders(config, tgt)
    first = 0
    for sentences in _concept_sentences(config, split, task):
        rows, lengths = _choose_synonyms(config, sentences, split, task, first), sentence_lengths(sentences)
        ordered = reorder_words(sentences, lengths, src_orders), reorder_words(rows, lengths, tgt_orders)
        lines = text_lines(ordered[0], source), text_lines(ordered[1], target)
        yield _spoil_pairs(config, *lines, task, first) if split == "train" else lines
        first += len(sentences)


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


def _orders(config: SyntheticConfig, language: str) -> NDArray[np.int64]:
    """Return which word of `xx` stands at each position in a language, for every length."""
    order = "same" if language == SOURCE_LANGUAGE else config.word_order
    return word_orders(order, config.lengths[1], seed=config.seed, language=language)


def _concept_sentences(config: SyntheticConfig, split: str, task: str) -> Iterator[NDArray[np.int64]]:
    probabilities = zipf_probabilities(config.concepts, config.zipf_exponent)
    return concept_sentences(probabilities, config.lengths, split=split, task=task, seed=config.seed)


def _choose_synonyms(
    config: SyntheticConfig, sentences: NDArray[np.int64], split: str, task: str, first: int
) -> NDArray[np.int64]:
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


_LATER: dict[str, Any] = {
    "pairs": (),
    "max_words_per_sentence": None,
    "shared_lexicon": 0,
    "word_order": "same",
    "noise": 0,
    "copies": 0,
    "train_sentences_of": {},
}
"""Settings that came after version 0.1, and where each changes nothing."""


def write_synthetic_corpus(config: SyntheticConfig, folder: Path) -> None:
    """Write train, dev and test of every task as a corpus folder, with a space between syllables.

    `corpus.json`, written last, holds provenance, counts, checksums and the irreducible loss of every task.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {f"{split}.{task}": config.sentences(split, task) for task in config.tasks for split in SPLITS}
    checksums: dict[str, str] = {}
    for stem, count in counts.items():
        checksums |= _write_pairs(config, folder, stem, count)
    description = {
        "schema": 1,
        "provenance": {"generator": "mnmt_data.synthetic", "config": _settings(config)},
        "counts": counts,
        "sha256": checksums,
        "irreducible": {task: config.irreducible_of(task) for task in config.tasks},
    }
    write_json(folder / DESCRIPTION, description)


def _settings(config: SyntheticConfig) -> dict[str, Any]:
    """Return the configuration without later settings at their defaults, so that old corpora stay current."""
    settings = asdict(config)
    return {name: value for name, value in settings.items() if _LATER.get(name, ...) != value}


def _write_pairs(config: SyntheticConfig, folder: Path, stem: str, count: int) -> dict[str, str]:
    """Write `count` pairs to the two files of `stem`, SPLIT.SRC-TGT; return {file name: SHA-256}."""
    split, task = stem.split(".")
    names = [f"{stem}.{language}" for language in task.split("-")]
    checksums = [sha256(), sha256()]
    with (folder / names[0]).open("wb") as source, (folder / names[1]).open("wb") as target:
        for block in sentence_pairs(config, split, task):
            for file, checksum, lines in zip((source, target), checksums, block, strict=True):
                text = text_bytes(lines[:count])
                file.write(text)
                checksum.update(text)
            count -= min(count, len(block[0]))
            if count == 0:
                break
    return {name: checksum.hexdigest() for name, checksum in zip(names, checksums, strict=True)}

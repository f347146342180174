"""Synthetic languages: parallel text without end, whose irreducible loss is known exactly.

A sentence is a row of concepts drawn from a Zipf law. The source language `xx` spells each concept in one
way; every target language keeps the order and has random spellings of its own, two a concept. The second is
chosen with a fixed probability: no model can foresee that choice, and it is all the loss that a perfect model
has left. The lexicon must sit in a model's weights, so the loss falls as the model grows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import inf, log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.concepts import SPLITS, concept_sentences, zipf_probabilities
from mnmt_data.draws import random_units, stream_key
from mnmt_data.lexicon import syllables, synonyms, text_lines, unique_spellings, word_bytes
from mnmt_data.permutation import MAX_SIZE

SOURCE_LANGUAGE = "xx"

_LEAST = {
    "concepts": 1,
    "zipf_exponent": 0,
    "words_per_sentence": 1,
    "source_syllables": 1,
    "target_syllables": 1,
    "syllable_inventory": 2,
    "train_sentences": 0,
    "dev_sentences": 0,
    "test_sentences": 0,
}


@dataclass(frozen=True, kw_only=True)
class SyntheticConfig:
    """What the synthetic languages are like and how much of them to write.

    Raises:
        ValueError: if a field is out of its range, or the syllables make fewer words than there are concepts.
    """

    languages: tuple[str, ...] = ("aa", "bb")
    """Target languages; each makes a task with the source language, `xx-aa`."""

    concepts: int = 1000
    """How many things there are to say: the size of the lexicon."""

    zipf_exponent: float = 1.0
    """The k-th commonest concept is drawn with probability ∝ k^(-zipf_exponent)."""

    words_per_sentence: int = 8
    """Concepts in every sentence."""

    source_syllables: int = 2
    """Syllables, which are tokens, in every source word."""

    target_syllables: int = 2
    """Syllables in every target word."""

    syllable_inventory: int = 64
    """Distinct syllables; all languages share them, and so a vocabulary."""

    synonym_rate: float = 0.1
    """Probability that a concept takes its second target spelling, which differs in the last syllable."""

    train_sentences: int = 100_000
    """Training pairs of each task."""

    dev_sentences: int = 1000
    """Development pairs of each task."""

    test_sentences: int = 1000
    """Test pairs of each task."""

    seed: int = 0
    """Of the spellings and of the sentences."""

    def __post_init__(self) -> None:
        for field, least in _LEAST.items():
            value = getattr(self, field)
            _require(least <= value < inf, f"`{field}` must be at least {least}, but is {value}.")
        rate = self.synonym_rate
        _require(0 <= rate <= 1, f"`synonym_rate` must be in [0, 1], but is {rate}.")
        self._check_languages()
        self._check_words("source_syllables")
        self._check_words("target_syllables")

    def _check_languages(self) -> None:
        _require(len(self.languages) > 0, "`languages` must name at least one target language, but is empty.")
        for language in self.languages:
            _require(
                re.fullmatch("[a-z]{2,8}", language) is not None and language != SOURCE_LANGUAGE,
                f"`languages` must be 2 to 8 letters a-z, not {SOURCE_LANGUAGE}, but one is {language!r}.",
            )
            twice = self.languages.count(language) > 1
            _require(not twice, f"`languages` must differ, but {language} is there twice.")

    def _check_words(self, field: str) -> None:
        length, inventory = getattr(self, field), self.syllable_inventory
        words = f"`syllable_inventory` ** `{field}` ({inventory}**{length})"
        _require(inventory**length <= MAX_SIZE, f"{words} must be at most 2**62, the number of words.")
        _require(
            self.concepts <= inventory**length, f"`concepts` must be at most {words}, but is {self.concepts}."
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The language pairs, `xx-aa` and so on."""
        return tuple(f"{SOURCE_LANGUAGE}-{language}" for language in self.languages)

    def sentences(self, split: str) -> int:
        """How many pairs of each task `split` (train, dev or test) has."""
        return {"train": self.train_sentences, "dev": self.dev_sentences, "test": self.test_sentences}[split]

    @property
    def irreducible(self) -> float:
        """Loss of a perfect model in nats per target token, `</s>` included: n·H(r) / (n·s + 1).

        n words of s syllables a sentence; H(r) = -r ln r - (1 - r) ln(1 - r) is the entropy of the choice of
        synonym; `</s>` costs nothing since all sentences are of one length.
        """
        rate, words = self.synonym_rate, self.words_per_sentence
        entropy = -sum(p * log(p) for p in (rate, 1 - rate) if p > 0)
        return words * entropy / (words * self.target_syllables + 1)


def sentence_pairs(
    config: SyntheticConfig, split: str, task: str
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Blocks of sentence pairs, without end, as lines of text in bytes (see `lexicon.text_lines`).

    What is drawn is a pure function of (seed, split, task): asking for more sentences keeps the earlier ones.
    No split contains a source sentence of another (see `concepts.concept_sentences`).
    """
    source, target = _source_words(config), _target_words(config, task.partition("-")[2])
    key, start = stream_key(config.seed, "synonyms", split, task), 0
    probabilities = zipf_probabilities(config.concepts, config.zipf_exponent)
    for sentences in concept_sentences(
        probabilities, config.words_per_sentence, split=split, task=task, seed=config.seed
    ):
        second = random_units(key, start, sentences.size).reshape(sentences.shape) < config.synonym_rate
        start += sentences.size
        yield text_lines(sentences, source), text_lines(2 * sentences + second, target)


def write_synthetic_corpus(config: SyntheticConfig, folder: Path) -> None:
    """Writes train, dev and test of every task as a corpus folder, with a space between syllables.

    `corpus.json`, written last, holds provenance, counts, checksums and the irreducible loss of every task.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {f"{split}.{task}": config.sentences(split) for task in config.tasks for split in SPLITS}
    checksums: dict[str, str] = {}
    for stem, count in counts.items():
        checksums |= _write_pairs(config, folder, stem, count)
    description = {
        "schema": 1,
        "provenance": {"generator": "mnmt_data.synthetic", "config": asdict(config)},
        "counts": counts,
        "sha256": checksums,
        "irreducible": dict.fromkeys(config.tasks, config.irreducible),
    }
    (folder / "corpus.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _source_words(config: SyntheticConfig) -> NDArray[np.uint8]:
    """(concepts, width): how the source language writes each concept."""
    return word_bytes(_spellings(config, SOURCE_LANGUAGE), syllables(config.syllable_inventory))


def _target_words(config: SyntheticConfig, language: str) -> NDArray[np.uint8]:
    """(2 · concepts, width): each concept's first and second spelling, in turn."""
    first = _spellings(config, language)
    second = synonyms(first, inventory=config.syllable_inventory, seed=config.seed, language=language)
    both = np.stack([first, second], axis=1).reshape(2 * config.concepts, -1)
    return word_bytes(both, syllables(config.syllable_inventory))


def _spellings(config: SyntheticConfig, language: str) -> NDArray[np.int64]:
    return unique_spellings(
        config.concepts,
        length=config.source_syllables if language == SOURCE_LANGUAGE else config.target_syllables,
        inventory=config.syllable_inventory,
        seed=config.seed,
        language=language,
    )


def _write_pairs(config: SyntheticConfig, folder: Path, stem: str, count: int) -> dict[str, str]:
    """Writes `count` pairs to the two files of `stem`, SPLIT.SRC-TGT; returns {file name: SHA-256}."""
    split, task = stem.split(".")
    names = [f"{stem}.{language}" for language in task.split("-")]
    checksums = [sha256(), sha256()]
    with (folder / names[0]).open("wb") as source, (folder / names[1]).open("wb") as target:
        for block in sentence_pairs(config, split, task):
            for file, checksum, lines in zip((source, target), checksums, block, strict=True):
                file.write(lines[:count].data)
                checksum.update(lines[:count].data)
            count -= min(count, len(block[0]))
            if count == 0:
                break
    return {name: checksum.hexdigest() for name, checksum in zip(names, checksums, strict=True)}


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)

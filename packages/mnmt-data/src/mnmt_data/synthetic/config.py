"""The `[data.synthetic]` table of languages with a lexicon."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log
from typing import ClassVar, Literal

import numpy as np

from mnmt_data.counter_rng import MAX_SIZE
from mnmt_data.study import Ranges, check_ranges

SOURCE_LANGUAGE = "xx"

MOST_SENTENCES = "[0, 1e10]"
"""Range of the pairs of a task: at most hundreds of gigabytes of text."""


@dataclass(frozen=True, kw_only=True)
class SyntheticConfig:
    """Properties of the synthetic languages, and the amount of text to write.

    Raises:
        ValueError: If a field is out of its range, or the syllables make fewer words than there are concepts.
    """

    RANGES: ClassVar[Ranges] = {
        "[1, 1e8]": ("concepts",),
        "[0, 1000]": ("zipf_exponent",),
        "[1, 10000]": ("words_per_sentence",),
        "[1, 62]": ("source_syllables", "target_syllables"),
        "[2, 1e6]": ("syllable_inventory",),
        "[0, 1]": ("synonym_rate", "shared_lexicon"),
        MOST_SENTENCES: ("train_sentences", "dev_sentences", "test_sentences"),
    }

    kind: Literal["lexicon"] = "lexicon"
    """Kind of languages: `lexicon`, or `contexts` for `ContextsConfig`."""

    languages: tuple[str, ...] = ("aa", "bb")
    """Target languages; each makes a task with the source language, `xx-aa`, unless `pairs` are given."""

    pairs: tuple[str, ...] = ()
    """Tasks instead of these, between any two of `xx` and the languages: `aa-xx`, `aa-bb`. As a source, `aa`
    has only the first spelling of each concept, to be unambiguous."""

    concepts: int = 1000
    """Number of concepts: the size of the lexicon."""

    zipf_exponent: float = 1.0
    """The k-th commonest concept is drawn with probability ∝ k^(-zipf_exponent)."""

    zipf_exponents: Mapping[str, float] = field(default_factory=dict)
    """{task: its exponent instead}: with a greater one fewer concepts make up most of the text."""

    words_per_sentence: int = 8
    """Concepts in every sentence."""

    source_syllables: int = 2
    """Syllables (tokens) of every source word."""

    target_syllables: int = 2
    """Syllables of every target word."""

    syllable_inventory: int = 64
    """Distinct syllables, which all languages share."""

    synonym_rate: float = 0.1
    """Probability that a concept takes its second target spelling, which differs in the last syllable."""

    shared_lexicon: float = 0.0
    """Share of the concepts that all target languages spell alike, synonyms included: it controls synergy.

    It is the share in every band of frequency, but not of running words, of which the commonest concept can
    be a third (see `lexicon.shared_concepts`). A larger share contains a smaller one. The effective fraction
    f(p) = N_eff / N of a model (Fernandes et al. 2023, eqs. 8-10) is known as follows:

    * At 1 the tasks differ only in their target tag. For a model that ignores the tag, and reads no pair
      twice, every mixture is the same training text: f(p) = 1 for all p > 0. The cost to a finite model of
      learning to ignore the tag is unknown; it should be small, and makes f(p) smaller.
    * At 0 the target lexicons are independent. The tasks still share the source lexicon, the mechanism of
      word-by-word translation and the syllables. A model that is nothing but lexicon, divided among tasks by
      their shares, would have f(p) = p. It is unknown how far the shared parts raise f above p, and how far
      the fewer examples of a rare task lower it.
    * In between f(p) is unknown. A larger share leaves less to learn twice, so f should not fall; there is no
      proof.
    """

    train_sentences: int = 100_000
    """Training pairs of each task."""

    dev_sentences: int = 1000
    """Development pairs of each task."""

    test_sentences: int = 1000
    """Test pairs of each task."""

    seed: int = 0
    """Seed of the spellings and of the sentences."""

    def __post_init__(self) -> None:
        check_ranges(self)
        check_languages(self.languages)
        self._check_pairs()
        self._check_exponents()
        self._check_words("source_syllables")
        self._check_words("target_syllables")

    def _check_pairs(self) -> None:
        valid = (SOURCE_LANGUAGE, *self.languages)
        for pair in self.pairs:
            sides = pair.split("-")
            require(
                len(sides) == len(set(sides)) == 2 and set(sides) <= set(valid),
                f"`pairs` must be of two of {', '.join(valid)}, such as aa-xx, but one is {pair!r}.",
            )
            require(self.pairs.count(pair) == 1, f"`pairs` must differ, but {pair} is there twice.")

    def _check_exponents(self) -> None:
        for task, exponent in self.zipf_exponents.items():
            tasks = ", ".join(self.tasks)
            require(
                task in self.tasks, f"`zipf_exponents` must be of tasks ({tasks}), but one is of {task!r}."
            )
            require(
                0 <= exponent < inf, f"`zipf_exponents` must be at least 0, but that of {task} is {exponent}."
            )

    def _check_words(self, name: str) -> None:
        length, inventory = getattr(self, name), self.syllable_inventory
        words = f"`syllable_inventory` ** `{name}` ({inventory}**{length})"
        require(inventory**length <= MAX_SIZE, f"{words} must be at most 2**62, the number of words.")
        require(
            self.concepts <= inventory**length, f"`concepts` must be at most {words}, but is {self.concepts}."
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The language pairs: `pairs`, or `xx-aa` and so on."""
        return self.pairs or tuple(f"{SOURCE_LANGUAGE}-{language}" for language in self.languages)

    def zipf_exponent_of(self, task: str) -> float:
        """Return the exponent of the law that the concepts of a task are drawn from."""
        return self.zipf_exponents.get(task, self.zipf_exponent)

    def sentences(self, split: str, task: str) -> int:
        """Return the number of pairs of a task's split: train, dev or test."""
        counts = {"train": self.train_sentences, "dev": self.dev_sentences, "test": self.test_sentences}
        return counts[split]

    @property
    def irreducible(self) -> float:
        """Loss of a perfect model on pairs into one of `languages`.

            L∞ = n·H(r) / (n·s + 1)    nats per target token

        with n words per sentence, s syllables per word, r the `synonym_rate`, and
        H(r) = -r ln r - (1 - r) ln(1 - r) the entropy of the choice of synonym. The additional token is
        `</s>`, which costs nothing since the source determines the length.
        """
        return self._irreducible(self.synonym_rate, self.target_syllables)

    def irreducible_of(self, task: str) -> float:
        """Return `irreducible` of a task; `xx` has no synonyms (r = 0) and its own syllables."""
        return self._irreducible(*self._choices(task))

    def power_law_limit_of(self, task: str) -> float | None:
        """Return the limit of the power law of the losses of a task; None if s ≤ 1.

            H - C K^-(s-1),    C = n (l ln V - H(r)) / ((s - 1) Z (n l + 1)),    Z = Σ_{k≤K} k^-s

        with K concepts, s the exponent of the task, n the words of a sentence, l the syllables of a
        word, V the `syllable_inventory`, and H the irreducible loss. A model that holds the m commonest
        concepts meets others with the probability

            Σ_{m<k≤K} k^-s / Z ≈ (m^-(s-1) - K^-(s-1)) / ((s - 1) Z)

        and each of them costs it `unknown_cost_of`. So its loss is H + C (m^-(s-1) - K^-(s-1)): it reaches H
        with m = K, but a power law through the losses of smaller models has a lower limit. With K = ∞ this
        is the law of Michaud et al. 2023, "The quantization model of neural scaling".
        """
        s = self.zipf_exponent_of(task)
        if s <= 1:
            return None
        total = float((np.arange(1, self.concepts + 1) ** -s).sum())
        unheld: float = self.concepts ** (1 - s) / ((s - 1) * total)
        return self.irreducible_of(task) - self.unknown_cost_of(task) * unheld

    def unknown_cost_of(self, task: str) -> float:
        """Return the loss above the irreducible one of a model that knows no concept, in nats a token.

            n (l ln V - H(r)) / (n l + 1)

        in the symbols of `power_law_limit_of`: all syllables are equally likely under it, which costs l ln V
        nats a word instead of H(r). If a model does not know concepts of total probability q, multiply by q.
        """
        (rate, syllables), words = self._choices(task), self.words_per_sentence
        cost = syllables * log(self.syllable_inventory) - _entropy(rate)
        return words * cost / (words * syllables + 1)

    def _choices(self, task: str) -> tuple[float, int]:
        """Return the rate of synonyms and the syllables of a word in the target language of a task."""
        if task.partition("-")[2] == SOURCE_LANGUAGE:
            return 0.0, self.source_syllables
        return self.synonym_rate, self.target_syllables

    def _irreducible(self, rate: float, syllables: int) -> float:
        words = self.words_per_sentence
        return words * _entropy(rate) / (words * syllables + 1)


def check_languages(languages: tuple[str, ...]) -> None:
    """Check the target languages.

    Raises:
        ValueError: If there are none, one is repeated, is not made of letters, or is the source language.
    """
    require(len(languages) > 0, "`languages` must name at least one target language, but is empty.")
    for language in languages:
        require(
            re.fullmatch("[a-z]{2,8}", language) is not None and language != SOURCE_LANGUAGE,
            f"`languages` must be 2 to 8 letters a-z, not {SOURCE_LANGUAGE}, but one is {language!r}.",
        )
        require(languages.count(language) == 1, f"`languages` must differ, but {language} is there twice.")


def _entropy(rate: float) -> float:
    """Return the entropy of a binary choice, in nats."""
    return sum(-p * log(p) for p in (rate, 1 - rate) if p > 0)


def require(holds: bool, message: str) -> None:
    """Raise ValueError with a message unless a condition holds."""
    if not holds:
        raise ValueError(message)

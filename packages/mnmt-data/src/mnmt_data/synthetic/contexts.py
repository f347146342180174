"""Languages with contexts, `kind = "contexts"`: their `[data.synthetic]` table and source sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import permute, random_units, stream_key
from mnmt_data.study import Ranges, check_ranges
from mnmt_data.synthetic.config import MOST_SENTENCES, SOURCE_LANGUAGE, check_languages, require
from mnmt_data.synthetic.teacher import Teacher

Rows = NDArray[np.int64]

MOST_ODDS = 2**25
"""Most probabilities of a language, words^(context + 1): 256 MB."""

MOST_PAIRS = 2**22
"""Most pairs of an exact test set."""

_BLOCK = 2**15


@dataclass(frozen=True, kw_only=True)
class ContextsConfig:
    """Languages in which every target word depends smoothly on `context` neighbouring source words.

    A source sentence is a sequence of independent, equally frequent words. Target word i depends on source
    words i to i + `context` - 1, through a fixed random teacher of its language (see `teacher.Teacher`). So a
    model learns a function instead of a list. No word is rare, so that a model is limited by its size rather
    than by its data. Every word is one token.

    All tasks have the same source sentences. Train, dev and test have the same distribution and may overlap.

    Raises:
        ValueError: If a field is out of its range, or there are too many contexts for a table.
    """

    RANGES: ClassVar[Ranges] = {
        f"[2, {MOST_ODDS}]": ("words",),
        "[1, 24]": ("context",),
        "[1, 10000]": ("words_per_sentence", "dimensions"),
        "[1, 1e6]": ("features",),
        "[0, 1]": ("shared_features",),
        "[0, inf)": ("roughness", "sharpness"),
        MOST_SENTENCES: ("train_sentences", "dev_sentences", "test_sentences"),
        f"[0, {MOST_ODDS}]": ("test_contexts",),
    }

    kind: Literal["contexts"] = "contexts"
    """Kind of languages."""

    languages: tuple[str, ...] = ("aa", "bb")
    """Target languages; each makes a task with the source language, `xx-aa`."""

    words: int = 16
    """Words of the source language, and of each target language."""

    context: int = 3
    """Source words that a target word depends on."""

    words_per_sentence: int = 4
    """Words of a source sentence; its target has `context` - 1 words fewer."""

    dimensions: int = 4
    """Coordinates of a source word; with fewer, words are more similar."""

    features: int = 256
    """Features of the teachers."""

    shared_features: float = 0.0
    """Share of the features that all target languages have in common: it controls synergy. A larger share
    contains a smaller one. At 1 the tasks differ only in their target tag, and f(p) = 1 for a model that
    ignores it."""

    roughness: float = 2.0
    """How fast the probabilities change with the source words: larger values need more parameters."""

    sharpness: float = 2.0
    """Standard deviation of the logits: at 0 words are equally probable, at large values one is certain."""

    train_sentences: int = 100_000
    """Training pairs of each task."""

    dev_sentences: int = 1000
    """Development pairs of each task."""

    test_sentences: int = 1000
    """Test pairs of each task, unless it is exact."""

    exact_test: bool = False
    """Whether test sets represent the whole distribution instead of a sample: every context occurs once at
    each position with every target word, whose probability is the weight of the pair. The loss is exact if a
    model's prediction depends only on position and context, as with targets of one word; otherwise it is
    nearly exact. There are words^(context + 1) pairs for each target word of a sentence."""

    test_contexts: int = 0
    """Number of random contexts at each position of an exact test set; 0 takes all. Loss and irreducible loss
    are then exact over these contexts."""

    seed: int = 0
    """Seed of the teachers and of the sentences."""

    def __post_init__(self) -> None:
        check_ranges(self)
        fewest = self.context
        require(
            self.words_per_sentence >= fewest,
            f"`words_per_sentence` must be at least `context` ({fewest}), but is {self.words_per_sentence}.",
        )
        check_languages(self.languages)
        require(
            self.exact_test or not self.test_contexts,
            "`test_contexts` needs `exact_test = true`; otherwise `test_sentences` says how many there are.",
        )
        self._check_size()

    def _check_size(self) -> None:
        contexts = self.words**self.context
        require(
            self.test_contexts <= contexts,
            f"`test_contexts` must be at most `words` ** `context` ({contexts:,}), "
            f"but is {self.test_contexts:,}.",
        )
        power = f"`words` ** (`context` + 1) ({self.words}**{self.context + 1})"
        odds = self.words ** (self.context + 1)
        require(odds <= MOST_ODDS, f"{power} must be at most {MOST_ODDS:,}; make either smaller.")
        pairs = (self.test_contexts or self.words**self.context) * self.words * self.target_words
        require(
            not self.exact_test or pairs <= MOST_PAIRS,
            f"`exact_test` must be false, or the contexts fewer: it would have {pairs:,} pairs, at most "
            f"{MOST_PAIRS:,} are allowed.",
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The language pairs: `xx-aa` and so on."""
        return tuple(f"{SOURCE_LANGUAGE}-{language}" for language in self.languages)

    @property
    def target_words(self) -> int:
        """Words of a target sentence."""
        return self.words_per_sentence - self.context + 1

    @property
    def teacher(self) -> Teacher:
        """The teacher of every language."""
        return Teacher(
            words=self.words,
            context=self.context,
            dimensions=self.dimensions,
            features=self.features,
            shared=self.shared_features,
            roughness=self.roughness,
            sharpness=self.sharpness,
            seed=self.seed,
        )

    def sentences(self, split: str, task: str) -> int:
        """Return the number of pairs of a task's split: train, dev or test."""
        counts = {"train": self.train_sentences, "dev": self.dev_sentences, "test": self.test_sentences}
        return counts[split]

    def irreducible_of(self, task: str) -> float:
        """Return the loss of a perfect model, the entropy of a target word, in nats per target token.

            L∞ = m·H / (m + 1),    H = -mean over contexts of Σ_y p(y|context) ln p(y|context)

        with m target words; the additional token is `</s>`, which costs nothing. The mean is over all
        contexts, or over those of an exact test set of `test_contexts`.
        """
        words = self.target_words
        contexts = contexts_of(test_sources(self), self).ravel() if self.test_contexts else None
        return words * self.teacher.entropy(task.partition("-")[2], contexts) / (words + 1)

    def power_law_limit_of(self, task: str) -> float | None:
        """Return None: no limit other than the irreducible loss is known."""
        return None


def contexts_of(sentences: Rows, config: ContextsConfig) -> Rows:
    """Return each target word's context, as a row of `Teacher.probabilities`: (sentences, target words)."""
    contexts = np.zeros((len(sentences), config.target_words), dtype=np.int64)
    for position in range(config.context):
        contexts = contexts * config.words + sentences[:, position : position + config.target_words]
    return contexts


def test_sources(config: ContextsConfig) -> Rows:
    """Return the source sentences of an exact test set: (contexts, words a sentence).

    All contexts, or `test_contexts` random ones, occur once at each position.

    Every word after the first `context` is the one `context` positions before it, shifted by a constant of
    the position. So the contexts at a position are a permutation of those at the position before.
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

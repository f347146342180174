"""Sentence pairs with noise of known kinds, from a corpus folder or synthetic, for selection.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.studies import write_text
from mnmt_data.filters import normalise

TASK, OTHER = "en-de", "en-fr"
CLEAN = "clean"
NOISE = {"misaligned": 0.15, "wrong language": 0.15, "copy": 0.15}
FEWEST_WORDS = 4

Pair = tuple[str, str]
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The corpus with its noise."""

    train: dict[Pair, str]
    """{pair: the kind of its noise, or "clean"}."""

    held_out: Mapping[str, Sequence[Pair]]
    """Clean pairs: `dev`, `test`, and `trusted`."""


def write_synthetic_text(folder: Path, sentences: int) -> Path:
    """Write random sentences and their word-by-word translations into two languages."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True)
    ranks = np.minimum(random.zipf(1.4, (sentences, 8)), 5000)
    for task in (TASK, OTHER):
        for language in task.split("-"):
            lines = (" ".join(word(int(rank), language) for rank in row) for row in ranks)
            write_text(folder / f"train.{task}.{language}", "\n".join(lines))
    return folder


def word(rank: int, language: str) -> str:
    """Return the word of a concept in a language: its number, in syllables of that language's consonants."""
    consonants = {"en": "bdgkl", "de": "mnprs", "fr": "tvwzj"}[language]
    digits = np.base_repr(rank, 25)
    numbers = [int(digit, 36) for digit in digits]
    return "".join(consonants[number % 5] + "aeiou"[number // 5] for number in numbers)


def read_texts(corpus: Path, *, held_out: int, seed: int) -> Texts:
    """Read pairs of distinct sources and distinct targets; hold some out and spoil the rest."""
    by_source = {src: (src, tgt) for src, tgt in read_pairs(corpus, TASK) if is_usable(src, tgt)}
    by_target = {tgt: (src, tgt) for src, tgt in by_source.values()}
    pairs = shuffled(list(by_target.values()), seed)
    ends = (0, *(held_out * times for times in (1, 2, 5)), len(pairs))
    dev, test, trusted, rest = (pairs[start:end] for start, end in pairwise(ends))
    other = {src: tgt for src, tgt in read_pairs(corpus, OTHER) if src != tgt}
    noisy = dict(shuffled(list(spoil(rest, other).items()), seed))
    return Texts(train=noisy, held_out={"dev": dev, "test": test, "trusted": trusted})


def spoil(pairs: Sequence[Pair], other: Mapping[str, str]) -> dict[Pair, str]:
    """Return {pair: kind}, with the share of each kind that `NOISE` states.

    Args:
        pairs: Clean pairs in random order.
        other: {source: its translation into another language}, for some of them.
    """
    counts = {kind: round(share * len(pairs)) for kind, share in NOISE.items()}
    foreign = dict.fromkeys([src for src, _ in pairs if src in other][: counts["wrong language"]])
    rest = [pair for pair in pairs if pair[0] not in foreign]
    misaligned, rest = rest[: counts["misaligned"]], rest[counts["misaligned"] :]
    copies, rest = rest[: counts["copy"]], rest[counts["copy"] :]
    return {
        **dict.fromkeys(rest, CLEAN),
        **{
            (pair[0], next_pair[1]): "misaligned"
            for pair, next_pair in pairwise((*misaligned, misaligned[0]))
        },
        **{(src, other[src]): "wrong language" for src in foreign},
        **{(src, src): "copy" for src, _ in copies},
    }


def shuffled(items: Sequence[Item], seed: int) -> list[Item]:
    """Return the items in random order."""
    return [items[index] for index in np.random.default_rng(seed).permutation(len(items))]


def read_pairs(corpus: Path, task: str) -> Iterator[Pair]:
    """Yield the training pairs of a corpus folder, normalised as preparation does."""
    sides = [corpus / f"train.{task}.{language}" for language in task.split("-")]
    for pair in zip(*(side.read_text(encoding="utf-8").split("\n") for side in sides), strict=True):
        src, tgt = map(normalise, pair)
        yield src, tgt


def is_usable(src: str, tgt: str) -> bool:
    """Return whether a pair is long enough to tell it from noise."""
    return src != tgt and min(len(src.split()), len(tgt.split())) >= FEWEST_WORDS

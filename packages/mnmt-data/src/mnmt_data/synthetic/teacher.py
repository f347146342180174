"""Fixed random teachers: the probability of each target word given its context of source words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_units, stream_key

Values = NDArray[np.float64]

_COMMON = "*"  # not the name of a language
_MOST_ANGLES = 2**24
"""Maximal number of angles in memory: 128 MB, and the same again for their cosines."""


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """The probabilities of target words as a function of random features of source words.

    Each source word is a point with random coordinates. A context x of c words is the concatenation of c
    points. The logit of target word y is

        σ √(2/F) Σ_j u_yj cos(ρ v_j·x / √(c d) + b_j)

    with F features, v and u standard normal, and b uniform in [0, 2π): random Fourier features (Rahimi and
    Recht 2007), so that the logits approximate a draw from a Gaussian process of smooth functions.
    """

    words: int
    """Words of the source language, and of the target language."""
    context: int
    """c, the source words that a target word depends on."""
    dimensions: int
    """d, coordinates of a source word."""
    features: int
    """F."""
    shared: float
    """Share of the features, with their u, that all target languages have in common."""
    roughness: float
    """ρ, how fast the logits change with the source words."""
    sharpness: float
    """σ, the standard deviation of the logits."""
    seed: int
    """Seed of all draws."""

    def probabilities(self, language: str) -> Values:
        """Return p(target word | context): (words^context, words), each row of which sums to 1.

        The source words of row r are the digits of r to the base `words`, the first word first.
        """
        return _probabilities(self, language)

    def entropy(self, language: str, contexts: NDArray[np.int64] | None = None) -> float:
        """Return the mean entropy of a target word in nats, over some contexts or all, equally frequent."""
        probabilities = self.probabilities(language)
        if contexts is not None:
            probabilities = probabilities[contexts]
        logs = np.log(probabilities, where=probabilities > 0, out=np.zeros_like(probabilities))
        return float(-(probabilities * logs).sum() / len(probabilities))


@lru_cache(maxsize=4)
def _probabilities(teacher: Teacher, language: str) -> Values:
    words, context, features = teacher.words, teacher.context, teacher.features
    points = _normals((words, teacher.dimensions), teacher.seed, "points", _COMMON)
    directions = _features(teacher, language, "directions", (features, context, teacher.dimensions))
    phases = 2 * pi * _features(teacher, language, "phases", (features,), normal=False)
    readout = _features(teacher, language, "readout", (features, words))
    directions *= teacher.roughness / sqrt(context * teacher.dimensions)
    readout *= teacher.sharpness * sqrt(2 / features)
    # Plain sums in a fixed order: the bits of a BLAS's products depend on the number of its threads.
    of_words = [np.einsum("wd,fd->wf", points, directions[:, position]) for position in range(context)]
    logits = np.concatenate(list(_logits(phases, of_words, readout)))
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Values = odds / odds.sum(axis=1, keepdims=True)
    probabilities.flags.writeable = False
    return probabilities


def _logits(angles: Values, of_words: list[Values], readout: Values) -> Iterator[Values]:
    """Yield the logits of all contexts, piece by piece: (contexts, words) together.

    Args:
        angles: (features,) sums of phases and terms of the words before.
        of_words: (words, features) terms of every word, for each remaining position.
        readout: (features, words).
    """
    first, *later = of_words
    for of_word in first:
        if len(later) > 1 and len(first) ** len(later) * len(readout) > _MOST_ANGLES:
            yield from _logits(angles + of_word, later, readout)
        else:
            yield _logits_of(angles + of_word, later, readout)


def _logits_of(angles: Values, of_words: list[Values], readout: Values) -> Values:
    for of_word in of_words:
        angles = angles[..., None, :] + of_word
    logits: Values = np.einsum("cf,fw->cw", np.cos(angles).reshape(-1, len(readout)), readout)
    return logits


def _features(
    teacher: Teacher, language: str, name: str, shape: tuple[int, ...], *, normal: bool = True
) -> Values:
    """Draw an array of all features, (features, …): first the common ones, then the language's."""
    draw = _normals if normal else _uniforms
    common, private = (draw(shape, teacher.seed, name, owner) for owner in (_COMMON, language))
    shared = np.arange(teacher.features) < round(teacher.shared * teacher.features)
    return np.where(shared.reshape(-1, *(1,) * (len(shape) - 1)), common, private)


def _uniforms(shape: tuple[int, ...], seed: int, *labels: str) -> Values:
    return random_units(stream_key(seed, "teacher", *labels), 0, int(np.prod(shape))).reshape(shape)


def _normals(shape: tuple[int, ...], seed: int, *labels: str) -> Values:
    """Draw standard normal numbers (Box and Muller 1958)."""
    radius, angle = _uniforms((2, *shape), seed, *labels)
    normals: Values = np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * pi * angle)
    return normals

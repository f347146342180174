"""The certificate that an exported model equals the trained one: a comparison on the same pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnmt_model.export.greedy_check import GAP_TOLERANCE, GreedyTranslation, worst_translation
from mnmt_model.export.tokenizer_check import TokenizerCheck

TOLERANCE = 1e-4
"""Largest accepted relative difference of a sentence's log-probability between engines in float32.

Another order of summation causes about 1e-6, a scaled softmax or another activation above 1e-2."""

OURS, TRANSFORMERS, CTRANSLATE2 = "mnmt-model", "transformers", "ctranslate2"


@dataclass(frozen=True, kw_only=True)
class PairScores:
    """Log-probabilities of one pair under every engine."""

    testset: str
    task: str
    row: int
    """Row in the test set, from 0."""
    tokens: int
    """Tokens of the target, `</s>` included."""
    log_probs: Mapping[str, float]
    """{engine: log p(target | source)}, in nats."""
    token_differences: Mapping[str, float]
    """{other engine: largest absolute difference of a token's log-probability from ours}."""

    def difference(self, engine: str) -> float:
        """Return ``|theirs - ours|``, in nats."""
        return abs(self.log_probs[engine] - self.log_probs[OURS])

    def relative_difference(self, engine: str) -> float:
        """Return ``|theirs - ours| / max(|ours|, 1)``, relative to at least one nat."""
        return self.difference(engine) / max(abs(self.log_probs[OURS]), 1.0)

    @property
    def location(self) -> str:
        """File and line of the pair, for messages."""
        return location_of(self.testset, self.task, self.row)


def location_of(testset: str, task: str, row: int) -> str:
    """Return file and line of a pair of a test set, for messages; rows count from 0."""
    return f"line {row + 1} of {testset}.{task}"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The result of comparing an exported model with the trained one."""

    weights_sha256: str
    """SHA-256 of model.safetensors."""
    changed_weights: tuple[str, ...]
    """Names of the weights that differ in any bit from the checkpoint's."""
    vocabulary_sha256: str
    """SHA-256 of the SentencePiece model."""
    versions: Mapping[str, str]
    engines: tuple[str, ...]
    """Engines other than ours."""
    tolerance: float
    """Largest accepted `PairScores.relative_difference`."""
    pairs: tuple[PairScores, ...]
    translations: tuple[GreedyTranslation, ...]
    """Sources of the first pairs, translated by transformers."""
    tokenizer: TokenizerCheck

    @property
    def failures(self) -> tuple[str, ...]:
        """Disagreements, one sentence each; empty if the export equals the trained model."""
        failures = [f"{name} differs from the checkpoint's" for name in self.changed_weights]
        failures += [failure for engine in self.engines if (failure := self._failure(engine))]
        failures += self._wrong_translation()
        if self.tokenizer.num_different:
            first = self.tokenizer.different[0]["text"]
            failures.append(
                f"the tokenizer gives other ids for {self.tokenizer.num_different} sentences, first {first!r}"
            )
        return tuple(failures)

    def worst(self, engine: str) -> PairScores:
        """Return the pair with the largest difference between `engine` and ours, or NaN."""
        return max(self.pairs, key=lambda pair: np.nan_to_num(pair.relative_difference(engine), nan=np.inf))

    def _wrong_translation(self) -> list[str]:
        worst = worst_translation(self.translations)
        # Not `>`, so that NaN fails.
        if worst.gap <= GAP_TOLERANCE:
            return []
        return [
            f"the greedy translation of {worst.location} under {TRANSFORMERS} has a token that is "
            f"{worst.gap:.3g} nats below {OURS}'s best"
        ]

    def _failure(self, engine: str) -> str | None:
        pair = self.worst(engine)
        # Not `>`, so that NaN fails.
        if pair.relative_difference(engine) <= self.tolerance:
            return None
        ours, theirs = pair.log_probs[OURS], pair.log_probs[engine]
        return f"{pair.location} has log-probability {ours:.6g}, but {theirs:.6g} under {engine}"


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """Return the content of certificate.json."""
    summary = {
        engine: {
            "largest_relative_difference": certificate.worst(engine).relative_difference(engine),
            "largest_difference": max(pair.difference(engine) for pair in certificate.pairs),
            "largest_token_difference": max(pair.token_differences[engine] for pair in certificate.pairs),
        }
        for engine in certificate.engines
    }
    return {
        "agrees": not certificate.failures,
        "failures": list(certificate.failures),
        "tolerance": certificate.tolerance,
        "engines": summary,
        "num_pairs": len(certificate.pairs),
        "largest_gap": worst_translation(certificate.translations).gap,
        "translations": [vars(translation) for translation in certificate.translations],
        "tokenizer": vars(certificate.tokenizer),
        "weights_sha256": certificate.weights_sha256,
        "changed_weights": list(certificate.changed_weights),
        "vocabulary_sha256": certificate.vocabulary_sha256,
        "versions": dict(certificate.versions),
        "pairs": [vars(pair) for pair in certificate.pairs],
    }

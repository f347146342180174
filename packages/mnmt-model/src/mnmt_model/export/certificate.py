"""The proof that an exported model is the trained one: log-probabilities of the same pairs, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnmt_model.export.tokenizer_check import TokenizerCheck

TOLERANCE = 1e-4
"""Largest relative difference of a sentence's log-probability between two engines in float32.

Sums in another order change it by some 1e-6, a scaled softmax or another activation by more than 1e-2."""

OURS, TRANSFORMERS, CTRANSLATE2 = "mnmt-model", "transformers", "ctranslate2"


@dataclass(frozen=True, kw_only=True)
class PairScores:
    """One pair under every engine."""

    testset: str
    task: str
    row: int
    """In the test set, from 0."""
    tokens: int
    """Of the target, `</s>` included."""
    log_probs: Mapping[str, float]
    """{engine: log p(target | source)}, in nats."""
    token_differences: Mapping[str, float]
    """{engine other than ours: largest absolute difference of a token's log-probability from ours}."""

    def difference(self, engine: str) -> float:
        """``|theirs - ours|``, in nats."""
        return abs(self.log_probs[engine] - self.log_probs[OURS])

    def relative_difference(self, engine: str) -> float:
        """``|theirs - ours| / max(|ours|, 1)``: a nearly certain target is measured against one nat."""
        return self.difference(engine) / max(abs(self.log_probs[OURS]), 1.0)

    @property
    def place(self) -> str:
        """Where the pair is, for messages."""
        return f"line {self.row + 1} of {self.testset}.{self.task}"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was compared, and what came out."""

    weights_sha256: str
    """Of model.safetensors."""
    changed_weights: tuple[str, ...]
    """Weights that do not read back bit for bit."""
    vocabulary_sha256: str
    """Of the SentencePiece model."""
    versions: Mapping[str, str]
    engines: tuple[str, ...]
    """Besides ours."""
    tolerance: float
    """Of `PairScores.relative_difference`."""
    pairs: tuple[PairScores, ...]
    tokenizer: TokenizerCheck

    @property
    def failures(self) -> tuple[str, ...]:
        """What disagrees, a sentence each; nothing if the export is the trained model."""
        failures = [f"{name} differs from the checkpoint's" for name in self.changed_weights]
        failures += [failure for engine in self.engines if (failure := self._failure(engine))]
        if self.tokenizer.num_different:
            first = self.tokenizer.different[0]["text"]
            failures.append(
                f"the tokenizer gives other ids for {self.tokenizer.num_different} sentences, first {first!r}"
            )
        return tuple(failures)

    def worst(self, engine: str) -> PairScores:
        """The pair in which `engine` differs most from ours; NaN is worst."""
        return max(self.pairs, key=lambda pair: np.nan_to_num(pair.relative_difference(engine), nan=np.inf))

    def _failure(self, engine: str) -> str | None:
        pair = self.worst(engine)
        # Not `>`, so that NaN fails.
        if pair.relative_difference(engine) <= self.tolerance:
            return None
        ours, theirs = pair.log_probs[OURS], pair.log_probs[engine]
        return f"{pair.place} has log-probability {ours:.6g}, but {theirs:.6g} under {engine}"


def describe(certificate: Certificate) -> dict[str, Any]:
    """The content of certificate.json."""
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
        "tokenizer": vars(certificate.tokenizer),
        "weights_sha256": certificate.weights_sha256,
        "changed_weights": list(certificate.changed_weights),
        "vocabulary_sha256": certificate.vocabulary_sha256,
        "versions": dict(certificate.versions),
        "pairs": [vars(pair) for pair in certificate.pairs],
    }

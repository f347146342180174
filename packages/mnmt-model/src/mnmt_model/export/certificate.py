"""The proof that an exported model is the trained one: what both compute of the same pairs, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnmt_model.export.greedy_check import GAP_TOLERANCE, GreedyTranslation, worst_translation
from mnmt_model.export.tokenizer_check import TokenizerCheck

TOLERANCE = 1e-4
"""Largest relative difference of a sentence's log-probability between two engines in float32.

Another order of summation changes it by about 1e-6, a scaled softmax or another activation by over 1e-2."""

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
        """Return ``|theirs - ours| / max(|ours|, 1)``: a nearly certain target is compared with one nat."""
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
    """Names of the weights that do not read back bit for bit."""
    vocabulary_sha256: str
    """SHA-256 of the SentencePiece model."""
    versions: Mapping[str, str]
    engines: tuple[str, ...]
    """Engines other than ours."""
    tolerance: float
    """Largest `PairScores.relative_difference` that agrees."""
    pairs: tuple[PairScores, ...]
    translations: tuple[GreedyTranslation, ...]
    """Sources of the first pairs, translated by transformers."""
    tokenizer: TokenizerCheck

    @property
    def failures(self) -> tuple[str, ...]:
        """Disagreements, one sentence each; empty if the export is the trained model."""
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
        """Return the pair on which `engine` differs most from ours; NaN counts as most."""
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


_TABLE_PAIRS = 20
"""Pairs in the table of certificate.md; certificate.json has all."""


def certificate_page(content: Mapping[str, Any]) -> str:
    """Return the text of certificate.md.

    Args:
        content: The content of certificate.json.
    """
    return "\n".join(
        [
            *_verdict(content),
            *_engine_table(content),
            *_translations(content),
            *_tokenizer(content),
            *_files(content),
            *_pair_table(content),
        ]
    )


def _verdict(content: Mapping[str, Any]) -> Iterator[str]:
    yield "# Certificate of an exported model\n"
    if content["agrees"]:
        engines = " and ".join(content["engines"])
        yield f"**Agrees.** Under {engines} this is the model that was trained.\n"
    else:
        yield "**Does not agree.** Do not use this folder.\n"
        yield from (f"- {failure}" for failure in content["failures"])
        yield ""


def _engine_table(content: Mapping[str, Any]) -> Iterator[str]:
    yield "## Log-probabilities\n"
    yield (
        f"Of {content['num_pairs']} test pairs, log p(target | source) in nats, `</s>` included, compared "
        f"with {OURS}'s. Relative differences are |theirs - ours| / max(|ours|, 1) and must be at most "
        f"{content['tolerance']:g}.\n"
    )
    yield "| engine | largest relative difference | largest difference | largest difference of a token |"
    yield "|--|--|--|--|"
    for engine, largest in content["engines"].items():
        yield f"| {engine} | " + " | ".join(f"{value:.2e}" for value in largest.values()) + " |"
    yield ""


def _translations(content: Mapping[str, Any]) -> Iterator[str]:
    tokens = sum(translation["tokens"] for translation in content["translations"])
    yield "## Greedy translations\n"
    yield (
        f"{TRANSFORMERS} translated {len(content['translations'])} sources of these pairs, {tokens} tokens "
        f"in all. Under {OURS} each token is at most {content['largest_gap']:.2e} nats below the likeliest "
        f"one; {GAP_TOLERANCE:g} is allowed.\n"
    )


def _tokenizer(content: Mapping[str, Any]) -> Iterator[str]:
    counts = content["tokenizer"]
    yield "## Token ids\n"
    yield "| sentences of these pairs | |"
    yield "|--|--|"
    yield f"| {counts['equal']} | the same ids |"
    yield f"| {counts['tie']} | another segmentation that is as probable |"
    yield f"| {counts['literal']} | their text holds a special token |"
    yield f"| {counts['num_different']} | other ids |"
    yield ""


def _files(content: Mapping[str, Any]) -> Iterator[str]:
    yield "## What was compared\n"
    yield f"- weights: SHA-256 `{content['weights_sha256']}`"
    yield f"- vocabulary: SHA-256 `{content['vocabulary_sha256']}`"
    yield "- versions: " + ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    yield ""


def _pair_table(content: Mapping[str, Any]) -> Iterator[str]:
    engines = [OURS, *content["engines"]]
    yield "## Pairs\n"
    yield f"The first {min(_TABLE_PAIRS, content['num_pairs'])}; certificate.json has all.\n"
    yield "| test set | line | tokens | " + " | ".join(engines) + " |"
    yield "|--|--|--|" + "--|" * len(engines)
    for pair in content["pairs"][:_TABLE_PAIRS]:
        values = " | ".join(f"{pair['log_probs'][engine]:.5f}" for engine in engines)
        yield f"| {pair['testset']}.{pair['task']} | {pair['row'] + 1} | {pair['tokens']} | {values} |"
    yield ""

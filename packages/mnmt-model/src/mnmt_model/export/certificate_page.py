"""certificate.md: the certificate for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mnmt_model.export.certificate import OURS

_SHOWN = 20
"""Pairs in the table; certificate.json has all."""


def page(content: Mapping[str, Any]) -> str:
    """The text of certificate.md.

    Args:
        content: That of certificate.json.
    """
    return "\n".join(
        [*_verdict(content), *_engines(content), *_tokenizer(content), *_files(content), *_pairs(content)]
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


def _engines(content: Mapping[str, Any]) -> Iterator[str]:
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


def _pairs(content: Mapping[str, Any]) -> Iterator[str]:
    engines = [OURS, *content["engines"]]
    yield "## Pairs\n"
    yield f"The first {min(_SHOWN, content['num_pairs'])}; certificate.json has all.\n"
    yield "| test set | line | tokens | " + " | ".join(engines) + " |"
    yield "|--|--|--|" + "--|" * len(engines)
    for pair in content["pairs"][:_SHOWN]:
        values = " | ".join(f"{pair['log_probs'][engine]:.5f}" for engine in engines)
        yield f"| {pair['testset']}.{pair['task']} | {pair['row'] + 1} | {pair['tokens']} | {values} |"
    yield ""

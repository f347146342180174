"""Compare the token ids of an exported tokenizer with those in the prepared data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mnmt_data.store import EOS, UNK
from mnmt_model.export.tokenizer import UNIGRAM, special_tokens

Kind = Literal["equal", "tie", "literal", "different"]

_TIE = 1e-5
"""Largest relative difference of log-probabilities between segmentations that is due to rounding."""


@dataclass(kw_only=True)
class TokenizerCheck:
    """Counts of sentences by outcome of the comparison."""

    equal: int = 0
    """The same ids."""
    tie: int = 0
    """Another, equally probable segmentation, such as "9" + "99" for "99" + "9": SentencePiece rounds to
    float32, tokenizers to float64."""
    literal: int = 0
    """Other ids because the text contains a special token such as `</s>`."""
    different: list[dict[str, Any]] = field(default_factory=list)
    """The first ten sentences with other ids for another reason."""
    num_different: int = 0
    """Number of all such sentences."""

    def add(self, kind: Kind, text: str, expected: Sequence[int], exported: Sequence[int]) -> None:
        """Count a sentence."""
        if kind != "different":
            setattr(self, kind, getattr(self, kind) + 1)
            return
        self.num_different += 1
        if len(self.different) < 10:
            self.different.append({"text": text, "expected": list(expected), "found": list(exported)})


def add_tags(proto: Any, text: str, ids: Sequence[int]) -> str:
    """Add the tags at the start and end of `ids` to `text`."""
    special = set(special_tokens(proto))
    tags = {
        id_: piece.piece for id_, piece in enumerate(proto.pieces) if id_ > UNK and piece.piece in special
    }
    inner = [token for token in ids if token != EOS]
    first = tags.get(inner[0], "") if inner else ""
    last = tags.get(inner[-1], "") if len(inner) > 1 else ""
    return " ".join(part for part in (first, text, last) if part)


def check_sentences(
    check: TokenizerCheck,
    proto: Any,
    encode: Callable[[Sequence[str]], list[list[int]]],
    texts: Sequence[str],
    expected: Sequence[Sequence[int]],
) -> None:
    """Compare the ids that `encode` gives `texts` with the expected ones, and count the outcomes in `check`.

    Args:
        check: The counts so far.
        proto: The SentencePiece model.
        encode: The exported tokenizer.
        texts: Sentences of the corpus, without tags.
        expected: Their ids in the prepared data, with tags and `</s>`.
    """
    exported = encode([add_tags(proto, text, ids) for text, ids in zip(texts, expected, strict=True)])
    for text, ids, theirs in zip(texts, expected, exported, strict=True):
        check.add(_kind(proto, text, ids, theirs), text, ids, theirs)


def _kind(proto: Any, text: str, expected: Sequence[int], exported: Sequence[int]) -> Kind:
    if list(expected) == list(exported):
        return "equal"
    if any(token in text for token in special_tokens(proto)) or re.search(r"<0x[0-9A-F]{2}>", text):
        return "literal"
    ours, theirs = (sum(proto.pieces[token].score for token in ids) for ids in (expected, exported))
    is_tie = proto.trainer_spec.model_type == UNIGRAM and abs(ours - theirs) <= _TIE * abs(ours)
    return "tie" if is_tie else "different"

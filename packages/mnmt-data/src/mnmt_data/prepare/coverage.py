"""How well a vocabulary suits a language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store.vocabulary import UNK


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Counts of some text and of its tokens, tags and `</s>` aside."""

    tokens: int = 0
    words: int = 0
    """Stretches without white space."""
    characters: int = 0
    byte_tokens: int = 0
    """Tokens that stand for one byte of a character without a piece."""
    unknown_tokens: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        )

    def to_dict(self) -> dict[str, float]:
        """Tokens a word and a character, and the shares of tokens that are bytes or unknown."""
        return {
            "tokens_per_word": self.tokens / max(self.words, 1),
            "tokens_per_character": self.tokens / max(self.characters, 1),
            "byte_share": self.byte_tokens / max(self.tokens, 1),
            "unknown_share": self.unknown_tokens / max(self.tokens, 1),
        }


def measure(
    lines: Sequence[str], tokens: NDArray[np.integer], *, extra: int, is_byte: NDArray[np.bool_]
) -> Coverage:
    """Count lines and their tokens.

    Args:
        lines: Text.
        tokens: (all tokens of all lines,).
        extra: Tokens of each line that are not of its text: the tag, `</s>`.
        is_byte: (vocabulary size,) which ids stand for bytes.
    """
    return Coverage(
        tokens=tokens.size - extra * len(lines),
        words=sum(len(line.split()) for line in lines),
        characters=sum(map(len, lines)),
        byte_tokens=int(np.count_nonzero(is_byte[tokens])),
        unknown_tokens=int(np.count_nonzero(tokens == UNK)),
    )

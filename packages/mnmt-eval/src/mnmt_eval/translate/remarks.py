"""What a reader of translations should know of some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mnmt_eval.translate.translation import Translation
from mnmt_eval.translate.window import Line

_NAMED = 20
"""Lines that a remark names; of more it says how many."""


@dataclass(frozen=True, kw_only=True)
class Remarks:
    """Lines that were not translated as others are."""

    in_parts: Sequence[int] = ()
    """Numbers of lines that were too long and translated in parts."""

    truncated: Sequence[int] = ()
    """Numbers of lines whose translation the maximal length cut off."""

    def after(self, group: Iterable[tuple[Line, Translation]]) -> Remarks:
        """These, and those on further translations."""
        pairs = list(group)
        in_parts = [line.number for line, translation in pairs if translation.parts > 1]
        truncated = [line.number for line, translation in pairs if translation.truncated]
        return Remarks(in_parts=[*self.in_parts, *in_parts], truncated=[*self.truncated, *truncated])

    def told(self, *, max_source: int | None) -> Iterator[str]:
        """The remarks, a line each."""
        if self.in_parts:
            yield f"longer than {max_source} tokens, so translated in parts: {_lines(self.in_parts)}"
        if self.truncated:
            yield f"cut off at its maximal length, the translation of {_lines(self.truncated)}"


def _lines(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:_NAMED]))
    more = len(numbers) - _NAMED
    return f"line{'s' * (len(numbers) > 1)} {named}" + (f" and {more:,} more" if more > 0 else "")

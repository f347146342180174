"""What a reader of translations should know of some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from mnmt_eval.translate.translation import Translation
from mnmt_eval.translate.window import Line

_NAMED = 20
"""Lines that a remark names; of others it says how many."""


@dataclass(frozen=True, kw_only=True)
class SomeLines:
    """Lines of a text, of which the first are known by number: there may be millions."""

    first: Sequence[int] = ()
    """Numbers of the first of them."""

    count: int = 0
    """How many there are."""

    def and_also(self, numbers: Sequence[int]) -> SomeLines:
        """These and further ones, that come after them."""
        return SomeLines(first=[*self.first, *numbers][:_NAMED], count=self.count + len(numbers))

    def __str__(self) -> str:
        more = self.count - len(self.first)
        named = ", ".join(map(str, self.first))
        return f"line{'s' * (self.count > 1)} {named}" + (f" and {more:,} more" if more else "")


@dataclass(frozen=True, kw_only=True)
class Remarks:
    """Lines that were not translated as others are."""

    in_parts: SomeLines = field(default_factory=SomeLines)
    """Lines that were too long and translated in parts."""

    truncated: SomeLines = field(default_factory=SomeLines)
    """Lines whose translation the maximal length cut off."""

    @classmethod
    def read(cls, content: Mapping[str, Mapping[str, Any]]) -> Self:
        """What `asdict` made of some."""
        return cls(**{name: SomeLines(**lines) for name, lines in content.items()})

    def after(self, group: Iterable[tuple[Line, Translation]]) -> Remarks:
        """These, and those on further translations."""
        pairs = list(group)
        in_parts = [line.number for line, translation in pairs if translation.parts > 1]
        truncated = [line.number for line, translation in pairs if translation.truncated]
        return Remarks(
            in_parts=self.in_parts.and_also(in_parts), truncated=self.truncated.and_also(truncated)
        )

    def told(self, *, max_source: int | None) -> Iterator[str]:
        """The remarks, a line each."""
        if self.in_parts.count:
            yield f"longer than {max_source} tokens, so translated in parts: {self.in_parts}"
        if self.truncated.count:
            yield f"cut off at its maximal length, the translation of {self.truncated}"

"""Text in many languages, unit by unit, and the sentence pairs of any two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.fetch.languages import ENGLISH
from mnmt_data.fetch.request import Pair
from mnmt_data.store.corpus_folder import Bitext

Units = Mapping[Any, str]
"""{what identifies a unit in every language: its text in one}."""
Column = list[str | None]


class ParallelText:
    """Units in English, where all of them were written, and in the languages they were translated into.

    A unit whose translation equals the English was left untranslated and counts as missing, in every pair: a
    pair of two other languages looks at the English too.
    """

    def __init__(self, english: Units) -> None:
        self._keys = list(english)
        self._columns: dict[str, Column] = {ENGLISH: list(english.values())}

    def add(self, code: str, units: Units) -> int:
        """Add a language.

        Returns:
            How many units are translated into it.
        """
        english = zip(self._keys, self._columns[ENGLISH], strict=True)
        column: Column = [text if (text := units.get(key)) != original else None for key, original in english]
        self._columns[code] = column
        return len(column) - column.count(None)

    @property
    def codes(self) -> list[str]:
        """The languages, English first."""
        return list(self._columns)

    def bitext(self, src: str, tgt: str) -> Bitext:
        """The distinct pairs of units in two languages whose sides differ, in the order of the English."""
        rows = self._rows((src, tgt), ((src, tgt),))
        return Bitext(src=[row[0] for row in rows], tgt=[row[1] for row in rows])

    def multiway(self, codes: Sequence[str], pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Bitext]]:
        """The pairs made of the units that all languages have: row i is the same unit in every pair.

        A unit is left out if the sides of one of `pairs` are the same.

        Raises:
            DataError: If no unit is in all languages.
        """
        rows = self._rows(codes, pairs)
        if not rows:
            raise DataError(f"--multiway: no unit is in all of {', '.join(codes)}; ask for fewer languages.")
        columns = dict(zip(codes, map(list, zip(*rows, strict=True)), strict=True))
        return ((pair, Bitext(src=columns[pair[0]], tgt=columns[pair[1]])) for pair in pairs)

    def _rows(self, codes: Sequence[str], pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
        """The distinct rows of some columns that are complete and differ within each of `pairs`."""
        sides = [(codes.index(src), codes.index(tgt)) for src, tgt in pairs]
        distinct: dict[tuple[str, ...], None] = {}
        for row in zip(*(self._columns[code] for code in codes), strict=True):
            texts = tuple(text for text in row if text is not None)
            if len(texts) == len(codes) and all(texts[src] != texts[tgt] for src, tgt in sides):
                distinct[texts] = None
        return list(distinct)

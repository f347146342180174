"""Text in many languages, unit by unit, and the corpus folder that is written from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.fetch.config import ENGLISH, FetchConfig, Pair, Selection
from mnmt_data.store.atomic_file import checksum
from mnmt_data.store.corpus_folder import Bitext, write_bitext

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


DESCRIPTION = "corpus.json"


def check_folder(folder: Path) -> None:
    """Refuse to replace anything but a corpus that was fetched earlier.

    Raises:
        DataError: If `folder` holds something else, which must not be lost.
    """
    taken = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    if taken and not (folder / DESCRIPTION).is_file():
        raise DataError(f"{folder}: holds other files; name a new folder.")


def publish(
    folder: Path,
    text: ParallelText,
    request: FetchConfig,
    selection: Selection,
    *,
    provenance: Mapping[str, Any],
    report: Callable[[str], None],
) -> None:
    """Write the pairs of each task into `folder`, with a corpus.json, in place of an earlier corpus.

    Pairs of languages that have no text in common are left out.

    Raises:
        DataError: If `folder` holds something else, there are no pairs, or they cannot be written.
    """
    check_folder(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        counts = _write(partial, _bitexts(text, request, selection), request.testset, report)
        if not counts:
            raise DataError(f"{folder}: no two of the languages have text in common; nothing was written.")
        _describe(partial, counts, request, provenance)
        _replace(folder, partial)
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror or error}; nothing was written.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _bitexts(text: ParallelText, request: FetchConfig, selection: Selection) -> Iterator[tuple[Pair, Bitext]]:
    if request.multiway:
        return text.multiway(list(selection.names), selection.pairs)
    return ((pair, text.bitext(*pair)) for pair in selection.pairs)


def _write(
    folder: Path, bitexts: Iterator[tuple[Pair, Bitext]], testset: str, report: Callable[[str], None]
) -> dict[str, int]:
    """Write one task after the other, and counts the pairs of each."""
    counts: dict[str, int] = {}
    for pair, bitext in bitexts:
        task = "-".join(pair)
        report(f"{task}: {len(bitext):,} pairs" if bitext.src else f"{task}: no pairs, left out")
        if bitext.src:
            write_bitext(folder, testset, task, bitext)
            counts[f"{testset}.{task}"] = len(bitext)
    return counts


def _describe(
    folder: Path, counts: dict[str, int], request: FetchConfig, provenance: Mapping[str, Any]
) -> None:
    description = {
        "schema": 1,
        "origin": ENGLISH,
        "multiway": request.multiway,
        "provenance": dict(provenance),
        "counts": counts,
        "sha256": {path.name: checksum(path) for path in sorted(folder.iterdir())},
    }
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _replace(folder: Path, partial: Path) -> None:
    """Put the new folder in the place of the old one, which is gone only once the new one stands there."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)

"""Text in many languages, aligned by unit, and its corpus folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.fetch.apt import Report
from mnmt_data.fetch.config import FetchConfig, LanguageSelection, Pair
from mnmt_data.fetch.languages import ENGLISH
from mnmt_data.store.atomic_file import checksum, replace_folder, write_json
from mnmt_data.store.corpus_folder import DESCRIPTION, Bitext, write_bitext

Units = Mapping[Any, str]
"""{key of a unit, the same in every language: its text in one language}."""
Column = list[str | None]


class ParallelText:
    """Units in English, their original language, and in the languages of their translations.

    A translation that equals the English counts as missing in every pair, also in one without English.
    """

    def __init__(self, english: Units) -> None:
        self._keys = list(english)
        self._columns: dict[str, Column] = {ENGLISH: list(english.values())}

    def add(self, code: str, units: Units) -> int:
        """Add a language.

        Returns:
            The number of units translated into it.
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
        """Return the distinct pairs of units in two languages whose sides differ, in English order."""
        sides = zip(self._columns[src], self._columns[tgt], strict=True)
        pairs: dict[tuple[str, str], None] = {}
        for one, other in sides:
            if one is not None and other is not None and one != other:
                pairs[one, other] = None
        return Bitext(src=[one for one, _ in pairs], tgt=[other for _, other in pairs])


def check_folder(folder: Path) -> None:
    """Check that a folder is new, empty, or a corpus that was fetched earlier.

    Raises:
        DataError: If `folder` holds other files, which must not be lost.
    """
    occupied = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    if occupied and not (folder / DESCRIPTION).is_file():
        raise DataError(f"{folder}: holds other files; name a new folder.")


def publish(
    folder: Path,
    text: ParallelText,
    config: FetchConfig,
    selection: LanguageSelection,
    *,
    provenance: Mapping[str, Any],
    files: Mapping[str, bytes] = MappingProxyType({}),
    report: Report,
) -> None:
    """Write the pairs of each task and corpus.json into `folder`, replacing an earlier corpus.

    Pairs of languages without common text are left out. `files` are {name: content} of other files to write.

    Raises:
        DataError: If `folder` holds something else, there are no pairs, or they cannot be written.
    """
    check_folder(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        counts = _write(partial, text, selection.pairs, config.testset, report)
        if not counts:
            raise DataError(f"{folder}: no two of the languages have text in common; nothing was written.")
        for name, content in files.items():
            (partial / name).write_bytes(content)
        _describe(partial, counts, provenance)
        replace_folder(folder, partial)
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror or error}; nothing was written.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(
    folder: Path, text: ParallelText, pairs: Sequence[Pair], testset: str, report: Report
) -> dict[str, int]:
    """Write one task after the other, and return the pairs of each."""
    counts: dict[str, int] = {}
    for pair in pairs:
        task, bitext = "-".join(pair), text.bitext(*pair)
        report(f"{task}: {len(bitext):,} pairs" if bitext.src else f"{task}: no pairs, left out")
        if bitext.src:
            write_bitext(folder, testset, task, bitext)
            counts[f"{testset}.{task}"] = len(bitext)
    return counts


def _describe(folder: Path, counts: dict[str, int], provenance: Mapping[str, Any]) -> None:
    description = {
        "schema": 1,
        "origin": ENGLISH,
        "provenance": dict(provenance),
        "counts": counts,
        "sha256": {path.name: checksum(path) for path in sorted(folder.iterdir())},
    }
    write_json(folder / DESCRIPTION, description)

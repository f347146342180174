"""Folders of gettext catalogues as parallel text of two languages, aligned by the English string."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.readers.catalogue_folder import ENGLISH, CatalogueFile, find_catalogues
from mnmt_data.readers.interface_text import MIN_WORDS, TextForm, accelerator_mark
from mnmt_data.readers.language_codes import best_tag, languages, serves
from mnmt_data.readers.reader import BadLine, Block, Choice, blocks_of, every_block

logger = logging.getLogger(__name__)

Sides = tuple[CatalogueFile | None, CatalogueFile | None]
"""The catalogues of a program in the source and the target language; None for English."""
Key = tuple[str, str]
"""Context and English."""


@dataclass(frozen=True, kw_only=True)
class CataloguePairs:
    """Reads the strings of catalogues as `mnmt-data fetch gettext` writes them, a program at a time."""

    catalogues: tuple[Sides, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The catalogues."""
        return tuple(file.path for sides in self.catalogues for file in sides if file is not None)

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield blocks of pairs.

        Args:
            skip_bad: Whether catalogues that cannot be read are listed in the blocks, as a line each, and not
                refused.
            choice: Which blocks are wanted.

        Raises:
            DataError: If a catalogue is broken.
        """
        yield from blocks_of(self._pairs(), skip_bad=skip_bad, choice=choice)

    def _pairs(self) -> Iterator[tuple[str, str] | BadLine]:
        for sides in self.catalogues:
            try:
                yield from _pairs_of(*sides)
            except DataError as error:
                yield BadLine(row=0, what=str(error), text="")


def open_catalogues(folder: Path, task: str) -> CataloguePairs | None:
    """Open a folder of .po and .mo files; None if there are none in it and below.

    Raises:
        DataError: If a language of the task has none there.
    """
    files = find_catalogues(folder, report=logger.warning)
    if not files:
        return None
    tags = {file.language.replace("@", "_"): file.language for file in files}
    by_place = {(file.domain, file.language): file for file in files}
    names = []
    for code in languages(task):
        tag = ENGLISH if serves(ENGLISH, code) else best_tag(tuple(tags), code)
        if tag is None:
            raise DataError(
                f"{folder}: has no catalogues of {code}; it has those of {', '.join(sorted(tags))}."
            )
        names.append(tags.get(tag, ENGLISH))
    domains = dict.fromkeys(file.domain for file in files)
    sides = ([by_place.get((domain, name)) for name in names] for domain in domains)
    is_there = [name != ENGLISH for name in names]
    return CataloguePairs(
        catalogues=tuple((src, tgt) for src, tgt in sides if [src is not None, tgt is not None] == is_there)
    )


def _pairs_of(src: CatalogueFile | None, tgt: CatalogueFile | None) -> Iterator[tuple[str, str]]:
    """Yield the strings that a program has in both languages, of enough words and translated."""
    tables = [_strings(file) for file in (src, tgt) if file is not None]
    keys = [key for key in tables[0] if key in tables[-1]]
    form = TextForm(mark=accelerator_mark([english for _, english in keys]))
    for key in keys:
        english = form.text(key[1])
        texts = [form.text(table[key]) for table in tables]
        if len(english.split()) >= MIN_WORDS and english not in texts:
            yield (english if src is None else texts[0]), (english if tgt is None else texts[-1])


def _strings(file: CatalogueFile) -> dict[Key, str]:
    """Return {key: translation}; of two with one key the first counts."""
    table: dict[Key, str] = {}
    for context, english, translation in file.read().strings():
        table.setdefault((context, english), translation)
    return table

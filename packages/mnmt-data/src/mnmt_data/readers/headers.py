"""The columns of a table of lines, by its header, by the study, or because there are just two."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mnmt_data.readers.columns import Table
from mnmt_data.readers.language_codes import LANGUAGE_NAMES, base_language, is_code, languages, serves

logger = logging.getLogger(__name__)

COLUMN_WORDS = frozenset({"src", "tgt", "source", "target", "sentence", "translation", "score", "id"})
"""Words in names of columns; they tell a header from sentences of one word."""

_LABEL = r"[.,+-]*\d[\d.,+-]*|\S*://.*"
"""Pattern of a number or an address."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The columns of a table of lines."""

    has_header: bool
    width: int
    """Columns of every line."""

    src: int
    tgt: int
    scores: tuple[int, ...]
    """Places from 0."""


def layout_of(
    table: Table, cells: Sequence[str], following: Sequence[Sequence[str]] = (), *, needs_header: bool
) -> Layout:
    """Return the columns of a table of lines, given the cells of its first lines.

    The first line is a header if its names tell the sides of the task, the study names columns by it, or it
    seems to be one; but not if the second repeats a code of it, as where each line has its languages. A table
    without a header has the columns that the study numbers, or exactly two of text beside numbered scores.

    Args:
        table: The table.
        cells: The cells of its first line.
        following: The cells of some lines after it.
        needs_header: Whether even two columns must be named.

    Raises:
        DataError: If there is no column of a score, or several serve one side.
        ValueError: If the sides are not known.
    """
    numbers = [str(number) for number in range(1, len(cells) + 1)]
    is_by_name = any(isinstance(column, str) for _, column in table.columns)
    second = next(iter(following), ())
    is_repeated = any(one == other and is_code(one) for one, other in zip(cells, second, strict=False))
    seems_header = names_columns(cells, table.task) and not is_repeated
    may_be_name = not table.columns and not is_repeated and all(map(_may_be_name, cells))
    may_be_header = is_by_name or seems_header or may_be_name
    names = cells if may_be_header else numbers
    sides = table.sides(names)
    if sides is None and (seems_header or table.columns):
        what = "seems to be a header with" if seems_header else "has"
        raise ValueError(f"{what} {table.no_sides(table.renamed(names))}")
    has_header = may_be_header and sides is not None
    if sides is None:
        names, sides = numbers, _two_columns(table, [cells, *following], needs_header)
    elif not has_header and not is_repeated and _are_names(cells, following, sides):
        has_header = True
        _say_once(f"{table.path}: the first line is taken for names of columns: {', '.join(cells)}")
    names = table.renamed(names)
    scores = tuple(score.place(table.path, names) for score in table.scores)
    return Layout(has_header=has_header, width=len(cells), src=sides[0], tgt=sides[1], scores=scores)


@lru_cache(maxsize=256)  # a table is opened for every few blocks
def _say_once(warning: str) -> None:
    logger.warning("%s", warning)


def _two_columns(table: Table, rows: Sequence[Sequence[str]], needs_header: bool) -> tuple[int, int]:
    """Return the sides of a table without a header that has exactly two columns of text beside scores."""
    cells, scores = rows[0], {score.column for score in table.scores}
    sides = [place for place in range(len(cells)) if place + 1 not in scores]
    labels = [place for place in sides if _has_only_labels(rows, place)]
    if len(sides) == 2 and not needs_header and not labels:
        return table.in_order(*sides)
    if len(cells) == 1:
        separator = "a comma" if needs_header else "a tab"
        raise ValueError(f"has 1 column and no second side; put {separator} between columns, no other mark")
    named = zip(languages(table.task), table.in_order(*_likely_texts(cells, sides)), strict=True)
    example = table.toml(*(f"{code} = {place + 1}" for code, place in named))
    what = f"has {counted(cells)} and no header that names {table.task}"
    if labels and len(sides) == 2:
        what += f", and column {labels[0] + 1} has only numbers, addresses or codes"
    raise ValueError(f"{what}; write {example}, with the numbers of the two columns")


def _has_only_labels(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Return whether the first lines of a column, two or more, are numbers, addresses or codes.

    One code must be of a language with two letters, while `the` and `der` may begin a list of words.
    """
    cells = [row[place].strip() for row in rows if place < len(row)]
    codes = [is_code(cell) for cell in cells]
    if all(codes) and not any(len(base_language(cell)) == 2 for cell in cells):
        return False
    return len(cells) > 1 and all(map(_is_label, cells, codes))


def _is_label(cell: str, code: bool) -> bool:
    return code or re.fullmatch(_LABEL, cell) is not None


def _are_names(cells: Sequence[str], following: Sequence[Sequence[str]], sides: tuple[int, int]) -> bool:
    """Return whether a line that no code names is a header: lower-case words above lines of several words."""
    texts = [row[place] for row in following for place in sides if place < len(row)]
    words = [len(text.split()) > 1 for text in texts]
    are_words = all(re.fullmatch(r"[a-z][\w.:-]*", cells[place].strip()) for place in sides)
    return are_words and all(map(_may_be_name, cells)) and 2 * sum(words) > len(words)


def _likely_texts(cells: Sequence[str], places: Sequence[int]) -> tuple[int, int]:
    """Return two columns for an example: those of text, rather than numbers, addresses and codes."""
    label = rf"{_LABEL}|\S+\.\S+"
    texts = [p for p in places if not is_code(cells[p]) and not re.fullmatch(label, cells[p])]
    first, second = texts if len(texts) == 2 else (0, 1)
    return first, second


def _may_be_name(cell: str) -> bool:
    """Return whether a cell can be the name of a column, rather than a number, an address or a sentence."""
    return re.fullmatch(rf"{_LABEL}|.{{41,}}|.*\s.*[.!?…。！？]", cell.strip()) is None


def counted(cells: Sequence[str]) -> str:
    """Return the number of columns of a line."""
    return "1 column" if len(cells) == 1 else f"{len(cells)} columns"


def names_columns(cells: Sequence[str], task: str) -> bool:
    """Return whether cells seem to be a header.

    A header has only codes of languages, or only words, at least two of them typical of columns.

    Args:
        cells: The first line of a table.
        task: The language pair; its codes are typical of columns.
    """
    codes = {cell.lower() if len(cell) == 2 else cell for cell in map(str.strip, cells)}
    if len(codes) > 1 and all(map(is_code, codes)) and any(len(base_language(code)) == 2 for code in codes):
        return True  # while `the` and `der`, which are codes too, may begin a list of words
    if not all(re.fullmatch(r"[\w.:-]*", cell.strip()) for cell in cells):
        return False
    typical = {cell.lower() for cell in cells if any(_is_typical(word, task) for word in _words(cell))}
    return len(typical) > 1


def _words(cell: str) -> list[str]:
    return re.split(r"[\W\d_]+", cell.lower())


def _is_typical(word: str, task: str) -> bool:
    return (
        word in COLUMN_WORDS or word in LANGUAGE_NAMES or any(serves(word, code) for code in languages(task))
    )

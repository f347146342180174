"""Files of candidate translations, as `mnmt-eval translate --n-best` and other tools write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.text import (
    fairseq_hypotheses,
    holds_numbers,
    holds_objects,
    is_fairseq,
    is_moses,
    moses_candidates,
    read_lines,
    read_objects,
    split_rows,
    text_of,
)

Candidates = tuple[str, ...]
"""The candidates for the translation of a line, at least one, in the order of the file."""


def read_candidates(path: Path, column: str | None = None) -> list[Candidates]:
    r"""Read the candidates of each source line.

    Args:
        path: TSV or `.csv`, a candidate a row: number of its source line, score, text; or columns with names,
            of which one is `line`. Or JSON lines, an object a source line with `line` and the list `n_best`
            of objects that have `text`, or an object a candidate. Or Moses' `0 ||| text ||| …`, or the output
            of fairseq-generate. The candidates of a source line follow each other, and source lines are
            numbered from 1 (or 0).
        column: The column with the text, by its name in the first line, or its number if there are no names;
            or a key of JSON lines. By default `text`, or the third column.

    Raises:
        EvalError: If the file is neither, or its line numbers have gaps.
        OSError: If the file cannot be read.
    """
    lines = read_lines(path)
    if not lines:
        raise EvalError(f"{path}: must have at least one candidate, but is empty.")
    if is_fairseq(lines):
        return fairseq_hypotheses(path, lines)
    read = _json_candidates if holds_objects(lines) else _table_candidates
    read = moses_candidates if is_moses(lines[:1]) else read
    sources: list[Candidates] = []
    expected = None
    for number, group in groupby(read(path, lines, column), key=lambda row: row[1]):
        candidates = list(group)
        if number != expected and not (expected is None and number in (0, 1)):
            allowed = "0 or 1" if expected is None else f"{expected - 1} or {expected}"
            raise EvalError(f"{candidates[0][0]}: must be of source line {allowed}, but is of {number}.")
        expected = number + 1
        sources.append(tuple(text for _, _, text in candidates))
    return sources


def _table_candidates(path: Path, lines: Sequence[str], column: str | None) -> Iterator[tuple[str, int, str]]:
    rows = split_rows(path, lines)
    place, names = rows[0]
    has_names = not any(cell.isdecimal() for cell in names)
    if not has_names:
        names = [str(number) for number in range(1, len(names) + 1)]
    line, text = ("line", column or "text") if has_names else ("1", column or "3")
    if column is None and not has_names and len(names) != 3:
        raise EvalError(f"{place}: must have line number, score and text, but has {len(names)} columns.")
    if line not in names:
        raise EvalError(
            f"{place}: must be number of the source line, score and text with tabs between, or name columns, "
            f"one of them `line`, but is {'<TAB>'.join(names)[:40]!r}."
        )
    for name in (line, text):
        if names.count(name) != 1:
            raise EvalError(f"{path}: must have one column {name!r}, but its columns are {', '.join(names)}.")
    _refuse_numbers(path, names, [cells for _, cells in rows[has_names:]], text, line)
    for place, cells in rows[has_names:]:
        yield place, _whole(cells[names.index(line)], place), cells[names.index(text)]


def _refuse_numbers(
    path: Path, names: Sequence[str], rows: Sequence[Sequence[str]], text: str, line: str
) -> None:
    """Refuse a column of numbers where another column has the text."""
    numbers = [holds_numbers(cells) for cells in zip(*rows, strict=True)]
    others = [name for name, each in zip(names, numbers, strict=True) if not each and name != line]
    if rows and numbers[names.index(text)] and others:
        cell = rows[0][names.index(text)]
        raise EvalError(
            f"{path}: column {text} holds only numbers, such as {cell}; name that of the text with --column, "
            f"as in --column {others[0]}."
        )


def _json_candidates(path: Path, lines: Sequence[str], column: str | None) -> Iterator[tuple[str, int, str]]:
    for place, record in read_objects(path, lines):
        number, candidates = record.get("line"), record.get("n_best", [record])
        if number is None or not _are_candidates(candidates, column):
            raise EvalError(
                f"{place}: must be a JSON object with `line` and `text`, or with a list `n_best` of such."
            )
        for each in candidates:
            yield place, _whole(number, place), text_of(each, column or "text", place, "--column")


def _are_candidates(candidates: object, column: str | None) -> bool:
    """Return whether a value is a list of objects, each with `text` where no other key is named."""
    if not isinstance(candidates, list) or not candidates:
        return False
    return all(isinstance(each, dict) and (column is not None or "text" in each) for each in candidates)


def _whole(value: object, place: str) -> int:
    if not str(value).isdecimal():
        raise EvalError(f"{place}: must have the number of its source line, but has {value!r}.")
    return int(str(value))

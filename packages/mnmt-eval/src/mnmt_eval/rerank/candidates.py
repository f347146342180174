"""Files of candidate translations, as `mnmt-eval translate --n-best` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.text import read_lines

Candidates = tuple[str, ...]
"""The candidates for the translation of a line, at least one, in the order of the file."""


def read_candidates(path: Path) -> list[Candidates]:
    r"""Read the candidates of each source line.

    Args:
        path: TSV, a candidate a row: number of its source line, score, text. Or JSON lines, an object a
            source line with `line` and the list `n_best` of objects that have `text`, or an object a
            candidate. The candidates of a source line follow each other, and source lines are numbered from 1
            (or 0).

    Raises:
        EvalError: If the file is neither, or its line numbers have gaps.
        OSError: If the file cannot be read.
    """
    lines = read_lines(path)
    if not lines:
        raise EvalError(f"{path}: must have at least one candidate, but is empty.")
    read_line = _json_candidates if lines[0].startswith("{") else _table_candidates
    rows = [
        (place, *pair)
        for place, line in ((f"{path}:{number}", line) for number, line in enumerate(lines, start=1))
        for pair in read_line(line, place)
    ]
    sources: list[Candidates] = []
    expected = None
    for number, group in groupby(rows, key=lambda row: row[1]):
        candidates = list(group)
        if number != expected and not (expected is None and number in (0, 1)):
            allowed = "0 or 1" if expected is None else f"{expected - 1} or {expected}"
            raise EvalError(f"{candidates[0][0]}: must be of source line {allowed}, but is of {number}.")
        expected = number + 1
        sources.append(tuple(text for _, _, text in candidates))
    return sources


def _table_candidates(line: str, place: str) -> Iterator[tuple[int, str]]:
    cells = line.split("\t")
    if len(cells) != 3:
        raise EvalError(f"{place}: must have line number, score and text, but has {len(cells)} columns.")
    yield _whole(cells[0], place), cells[2]


def _json_candidates(line: str, place: str) -> Iterator[tuple[int, str]]:
    try:
        record: dict[str, Any] = json.loads(line)
        number = _whole(record["line"], place)
        for candidate in record.get("n_best", [record]):
            yield number, str(candidate["text"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, EvalError):
            raise
        raise EvalError(
            f"{place}: must be a JSON object with `line` and `text`, or with a list `n_best` of such."
        ) from None


def _whole(value: object, place: str) -> int:
    if not str(value).isdecimal():
        raise EvalError(f"{place}: must have the number of its source line, but has {value!r}.")
    return int(str(value))

"""Scores of sentences made elsewhere: by COMET, MetricX, a language model or people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from mnmt_data.readers import File, lines_of
from mnmt_eval.compare.config import ScoreFile
from mnmt_eval.compare.systems import TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.text import holds_objects, read_objects, split_rows

NUMBERS = ("id", "seg_id", "segment_id")
"""Names of columns with the numbers of sentences."""
_MISSING = ("", "none", "null", "nan", "na", "-")
_SMALL = 1.5
"""Scores of at most this size have four decimals, larger ones two."""


@dataclass(frozen=True, kw_only=True)
class ScoredElsewhere(Metric):
    """The mean of scores from a file.

    Statistics: the score, and 1; both 0 for a sentence that lacks the score of some system.
    """

    name: str = ""
    signature: str = ""
    higher_is_better: bool = True
    decimals: int = 2

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """Refuse, since only the file knows the scores.

        Raises:
            EvalError: Always.
        """
        raise EvalError(f"{self.name}: has scores from a file, and computes none.")

    def values(self, totals: Floats) -> Floats:
        """Return the mean of the scores; nan where no sentence has one; see `Metric`."""
        sums, counts = totals[..., 0], totals[..., 1]
        means = np.full(np.shape(sums), np.nan)
        return np.asarray(np.divide(sums, counts, out=means, where=counts > 0))

    def remark(self, statistics: Floats) -> str:
        """Return the number of sentences without scores; see `Metric`."""
        if not (missing := int((statistics[:, 1] == 0).sum())):
            return ""
        return f"{missing:,} of {len(statistics):,} sentences lack a score and are left out of {self.name}"


_Rows = Sequence[tuple[str, Mapping[str, Any]]]
"""The place of each row, and its cells by name."""


def read_scores(file: ScoreFile, translated: TranslatedText) -> tuple[ScoredElsewhere, dict[str, Floats]]:
    """Return the metric of a table with a column for each system, and the statistics of each system.

    Raises:
        EvalError: If a system has no column, or not a score for each sentence, or a score is no number.
        DataError: If the file cannot be read.
    """
    content = File(file.path).read()
    rows = _rows(file.path, lines_of(content, str(file.path)))
    scores = np.array([_column(file.path, rows, name) for name in translated.names], dtype=np.float64)
    sentences = len(translated.outputs[0].lines)
    if len(rows) != sentences:
        raise EvalError(
            f"{file.path}: must have a row for each of {sentences} sentences, but has {len(rows)}."
        )
    is_scored = ~np.isnan(scores).any(axis=0)
    if not is_scored.any():
        raise EvalError(f"{file.path}: no sentence has a score of {file.name} for every system.")
    metric = ScoredElsewhere(
        name=file.name,
        signature=f"scores:{file.path.name}|sha256:{sha256(content).hexdigest()[:12]}",
        higher_is_better=file.higher_is_better,
        decimals=4 if np.nanmax(np.abs(scores)) <= _SMALL else 2,
    )
    sums = np.where(is_scored, np.nan_to_num(scores), 0.0)
    counts = is_scored.astype(np.float64)
    pairs = zip(translated.names, sums, strict=True)
    return metric, {name: np.column_stack([row, counts]) for name, row in pairs}


def _rows(path: Path, lines: Sequence[str]) -> _Rows:
    """Return the rows of JSON lines, TSV or CSV, in the order of the sentences."""
    if holds_objects(lines):
        rows: _Rows = list(read_objects(path, lines))
    else:
        names, *others = split_rows(path, lines) or [("", ())]
        rows = [(place, dict(zip(names[1], cells, strict=True))) for place, cells in others]
    _check_order(path, rows)
    return rows


def _column(path: Path, rows: _Rows, system: str) -> list[float]:
    names = rows[0][1] if rows else {}
    if system not in names:
        raise EvalError(f"{path}: must have a column {system}, but has {', '.join(names) or 'none'}.")
    return [_number(row.get(system), f"{place}: {system}") for place, row in rows]


def _check_order(path: Path, rows: _Rows) -> None:
    """Refuse rows whose numbers of sentences, each another one, do not ascend."""
    for key in NUMBERS:
        numbers = [number for _, row in rows if (number := _as_number(row.get(key))) is not None]
        if len(set(numbers)) == len(rows) and numbers != sorted(numbers):
            raise EvalError(f"{path}: must have the sentences in their order; sort its rows by {key}.")


def _number(value: Any, place: str) -> float:
    """Return a score, nan if it is missing, or refuse it."""
    if (number := _as_number(value)) is None:
        raise EvalError(f"{place} must be a number, or None where it is missing, but is {str(value)[:40]!r}.")
    return number


def _as_number(value: Any) -> float | None:
    """Return a finite number, or nan if it is missing; None if it is neither."""
    if value is None or str(value).strip().lower() in _MISSING:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None

"""Scores of sentences made elsewhere: by COMET, MetricX, a language model or people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from mnmt_data.readers import File, lines_of
from mnmt_eval.compare.config import ScoreFiles
from mnmt_eval.compare.systems import SystemOutput, TranslatedText
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.text import holds_objects, read_objects, split_rows

VALUES = ("score", "prediction", "COMET")
"""Names of columns with scores, after the metric's own; MetricX calls them `prediction`."""
OUTPUTS = ("hypothesis", "mt", "translation")
"""Names of columns with the outputs that were scored."""
NUMBERS = ("id", "seg_id", "segment_id")
"""Names of columns with the numbers of sentences."""
_MISSING = ("", "none", "null", "nan", "na", "-")
_SMALL = 1.5
"""Scores of at most this size have four decimals, larger ones two."""


@dataclass(frozen=True, kw_only=True)
class ScoredElsewhere(Metric):
    """The mean of scores from files.

    Statistics: the score, and 1; both 0 for a sentence that lacks the score of some system.
    """

    name: str = ""
    signature: str = ""
    higher_is_better: bool = True
    decimals: int = 2

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """Refuse, since only files know the scores.

        Raises:
            EvalError: Always.
        """
        raise EvalError(f"{self.name}: has scores from files, and computes none.")

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


@dataclass(frozen=True, kw_only=True)
class _Column:
    """The scores of one system in a file."""

    path: Path
    label: str = ""
    """The system's name; empty if the file does not say."""
    values: Sequence[float]
    outputs: Sequence[str] = ()
    """The outputs that were scored; empty if unknown."""


_Rows = Sequence[tuple[str, Mapping[str, Any]]]
"""The place of each row, and its cells by name."""


def read_scores(files: ScoreFiles, translated: TranslatedText) -> tuple[ScoredElsewhere, dict[str, Floats]]:
    """Return the metric of some files, and the statistics of each system.

    A column belongs to the system of its name or, in COMET's and MetricX's files, to that whose outputs were
    scored; files of bare numbers belong to the systems in their order.

    Raises:
        EvalError: If a file is none of scores, a score is no number, or a system lacks scores.
        DataError: If a file cannot be read.
    """
    contents = [File(path).read() for path in files.paths]
    columns = [
        column
        for path, content in zip(files.paths, contents, strict=True)
        for column in _read(path, content, files.name, translated.names)
    ]
    bare = iter([column for column in columns if not column.label and not column.outputs])
    by_system = [_column_of(output, columns, bare, files) for output in translated.outputs]
    if (rest := next(bare, None)) is not None:
        raise EvalError(f"{rest.path}: is one file too many for {files.name} of {len(by_system)} systems.")
    for column, output in zip(by_system, translated.outputs, strict=True):
        if len(column.values) != len(output.lines):
            raise EvalError(
                f"{column.path}: must have {len(output.lines)} scores of {output.system.name}, one for each "
                f"sentence, but has {len(column.values)}."
            )
    scores = np.array([column.values for column in by_system], dtype=np.float64)
    is_scored = ~np.isnan(scores).any(axis=0)
    if not is_scored.any():
        raise EvalError(f"{by_system[0].path}: no sentence has a score of {files.name} for every system.")
    digest = sha256(b"".join(contents)).hexdigest()[:12]
    metric = ScoredElsewhere(
        name=files.name,
        signature=f"scores:{files.paths[0].name}|sha256:{digest}",
        higher_is_better=files.higher_is_better,
        decimals=4 if np.nanmax(np.abs(scores)) <= _SMALL else 2,
    )
    sums = np.where(is_scored, np.nan_to_num(scores), 0.0)
    counts = is_scored.astype(np.float64)
    pairs = zip(translated.names, sums, strict=True)
    return metric, {name: np.column_stack([row, counts]) for name, row in pairs}


def _column_of(
    output: SystemOutput, columns: Sequence[_Column], bare: Iterator[_Column], files: ScoreFiles
) -> _Column:
    """Return the scores of a system: by its name, else by its outputs, else the next of bare numbers."""
    name, lines = output.system.name, [_normalise(line) for line in output.lines]
    of_name = [column for column in columns if column.label == name and not column.outputs]
    known = [*of_name, *(column for column in columns if column.outputs == lines)]
    for other in known[1:]:
        if repr(other.values) != repr(known[0].values):  # nan is the same as nan
            raise EvalError(f"{other.path}: has other scores of {name} than {known[0].path}; name one.")
    column = known[0] if known else next(bare, None)
    if column is None:
        held = ", ".join(dict.fromkeys(each.label or str(each.path) for each in columns))
        raise EvalError(
            f"{files.paths[0]}: must hold scores of {name} as it is here, but holds those of "
            f"{held or 'nothing'}; name the columns like the systems, or give a file for each."
        )
    return column


def _read(path: Path, content: bytes, name: str, systems: Sequence[str]) -> list[_Column]:
    """Return the columns of a file."""
    lines = lines_of(content, str(path))
    if lines and lines[0].lstrip().startswith("{") and not holds_objects(lines):
        lines = ["".join(lines)]  # an object on several lines
    rows = list(read_objects(path, lines)) if holds_objects(lines) else _split(path, lines)
    if len(rows) == 1 and all(map(_are_segments, rows[0][1].values())):
        return [_of_comet(path, *each, name) for each in rows[0][1].items()]
    named = [system for system in systems if rows and system in rows[0][1]]
    if not named:
        return [_column(path, rows, name, systems=systems)]
    _check_order(path, rows)
    return [_Column(path=path, label=system, values=_values(rows, system)) for system in named]


def _are_segments(value: object) -> bool:
    """Return whether a value is a list of objects, as `comet-score --to_json` has one for each system."""
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _of_comet(path: Path, label: str, segments: Sequence[Mapping[str, Any]], name: str) -> _Column:
    rows = [(f"{path}: {label}: segment {number}", each) for number, each in enumerate(segments, start=1)]
    return _column(path, rows, name, label=label)


def _split(path: Path, lines: Sequence[str]) -> _Rows:
    """Return the rows of TSV or CSV; where the first line is a number, the only column is `score`."""
    if lines and _as_number(lines[0]) is not None:
        return [(f"{path}:{number}", {"score": line}) for number, line in enumerate(lines, start=1)]
    names, *rows = split_rows(path, lines) or [("", ())]
    return [(place, dict(zip(names[1], cells, strict=True))) for place, cells in rows]


def _column(path: Path, rows: _Rows, name: str, *, label: str = "", systems: Sequence[str] = ()) -> _Column:
    """Return the scores of one system, and the outputs that were scored."""
    names = rows[0][1] if rows else {}
    if "system" in names:
        raise EvalError(f"{path}: has a row for each system; make a column for each, or a file for each.")
    if (key := next((key for key in (name, *VALUES) if key in names), None)) is None:
        listed = ", ".join([*systems, name, *VALUES])
        raise EvalError(f"{path}: must have columns of {listed}, but has {', '.join(names) or 'none'}.")
    texts = [next((row[each] for each in OUTPUTS if each in row), None) for _, row in rows]
    outputs = [_normalise(str(text)) for text in texts if text is not None]
    if not outputs:
        _check_order(path, rows)
    return _Column(path=path, label=label, values=_values(rows, key), outputs=outputs)


def _check_order(path: Path, rows: _Rows) -> None:
    """Refuse rows whose numbers of sentences, each another one, do not ascend."""
    for key in NUMBERS:
        numbers = [number for _, row in rows if (number := _as_number(row.get(key))) is not None]
        if len(set(numbers)) == len(rows) and numbers != sorted(numbers):
            raise EvalError(f"{path}: must have the sentences in their order; sort its rows by {key}.")


def _values(rows: _Rows, key: str) -> list[float]:
    return [_number(row.get(key), f"{place}: {key}") for place, row in rows]


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


def _normalise(line: str) -> str:
    """Return a line as `comet-score` sees it, which would end it at a carriage return."""
    return line.replace("\r", " ").strip()

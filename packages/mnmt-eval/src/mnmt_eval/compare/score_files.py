"""Scores of sentences made elsewhere: by COMET, MetricX, a language model or people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(kw_only=True)
class _Column:
    """The scores of one system in a file."""

    path: Path
    label: str = ""
    """The system's name; empty if the file does not say."""
    values: list[float] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    """The outputs that were scored; empty if unknown."""


def read_scores(files: ScoreFiles, translated: TranslatedText) -> tuple[ScoredElsewhere, dict[str, Floats]]:
    """Return the metric of some files, and the statistics of each system.

    A column belongs to the system of its name or, in COMET's and MetricX's files, to that whose outputs were
    scored; files of bare numbers belong to the systems in their order.

    Raises:
        EvalError: If a file is missing or none, a score is no number, or a system lacks scores.
    """
    columns = [column for path in files.paths for column in _read(path, files.name, translated.names)]
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
    digest = sha256(b"".join(File(path).read() for path in files.paths)).hexdigest()[:12]
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


def _read(path: Path, name: str, systems: Sequence[str]) -> list[_Column]:
    """Return the columns of a file."""
    if not path.is_file():
        raise EvalError(f"{path}: no such file of scores.")
    lines = lines_of(File(path).read(), str(path))
    if lines and lines[0].lstrip().startswith("{") and not holds_objects(lines):
        lines = ["".join(lines)]  # an object on several lines
    if len(lines) == 1 and holds_objects(lines):
        ((_, document),) = read_objects(path, lines)
        if document and all(isinstance(segments, list) for segments in document.values()):
            return [_of_comet(path, label, segments, name) for label, segments in document.items()]
    return _columns(path, _rows(path, lines, systems), name, systems)


def _of_comet(path: Path, label: str, segments: Sequence[Any], name: str) -> _Column:
    """Return the column of one of the systems of `comet-score --to_json`."""
    column = _Column(path=path, label=label)
    for number, segment in enumerate(segments, start=1):
        if not isinstance(segment, dict):
            raise EvalError(f"{path}: {label}: segment {number} must be an object, but is {segment!r}.")
        _append(column, segment, _value_key(path, segment, name), f"{path}: {label}: segment {number}")
    return column


def _rows(path: Path, lines: Sequence[str], systems: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the place and the cells by name of each line; of bare numbers the name is `score`."""
    if holds_objects(lines):
        return list(read_objects(path, lines))
    is_table = path.suffix == ".csv" or any("\t" in line for line in lines[:1])
    if not is_table and lines and lines[0].strip() not in systems:
        return [(f"{path}:{number}", {"score": line}) for number, line in enumerate(lines, start=1)]
    rows = split_rows(path, lines)
    if rows and len(rows[0][1]) == 2 and rows[0][1][0] in systems and _as_number(rows[0][1][1]) is not None:
        names: Sequence[str] = ("system", "score")  # as mt-metrics-eval has them, without names
    else:
        names, rows = (rows[0][1], rows[1:]) if rows else ((), [])
    return [(place, dict(zip(names, cells, strict=True))) for place, cells in rows]


def _columns(
    path: Path, rows: Sequence[tuple[str, dict[str, Any]]], name: str, systems: Sequence[str]
) -> list[_Column]:
    """Return a column a system: of its name, or of the rows that name it; else the scores of one system."""
    keys = rows[0][1].keys() if rows else ()
    named = {system: _Column(path=path, label=system) for system in systems if system in keys}
    if "system" not in keys and named:
        for place, record in rows:
            for system, column in named.items():
                column.values.append(_number(record.get(system), place, system))
        return list(named.values())
    columns: dict[str, _Column] = {}
    for place, record in rows:
        label = str(record.get("system", ""))
        column = columns.setdefault(label, _Column(path=path, label=label))
        _append(column, record, _value_key(path, record, name, systems), place)
    return list(columns.values())


def _value_key(path: Path, record: Mapping[str, Any], name: str, systems: Sequence[str] = ()) -> str:
    """Return the name of the scores among those of a record."""
    for key in (name, *VALUES):
        if key in record:
            return key
    listed = ", ".join([*systems, name, *VALUES])
    raise EvalError(f"{path}: must have columns of {listed}, but has {', '.join(record) or 'none'}.")


def _append(column: _Column, record: Mapping[str, Any], key: str, place: str) -> None:
    column.values.append(_number(record[key], place, key))
    if (text := next((record[each] for each in OUTPUTS if each in record), None)) is not None:
        column.outputs.append(_normalise(str(text)))


def _number(value: Any, place: str, what: str) -> float:
    """Return a score; nan if it is missing.

    Raises:
        EvalError: If it is neither.
    """
    if (number := _as_number(value)) is None:
        excerpt = str(value)[:40]
        raise EvalError(f"{place}: {what} must be a number, or None where it is missing, but is {excerpt!r}.")
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

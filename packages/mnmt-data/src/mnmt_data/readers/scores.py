"""Scores of pairs from other tools: columns of a table, or a file beside the text, one number a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import CODECS, File, plain_name
from mnmt_data.readers.columns import ScoreColumn, Table
from mnmt_data.readers.language_codes import ANY_CASE, languages, serves
from mnmt_data.readers.lines import Line, Lines
from mnmt_data.readers.reader import Block, Choice, Reader, every_block
from mnmt_data.readers.text_pairs import TextPairs


def with_scores(reader: Reader, scores: Sequence[ScoreColumn]) -> Reader:
    """Return a reader whose blocks have scores, each from a file beside the text or else from a column.

    Args:
        reader: The reader of the text.
        scores: The scores to read.

    Raises:
        DataError: If a score has no file, and the format has no columns, or no numbered ones.
    """
    files = {score: path for score in scores if (path := _file_beside(reader, score.name)) is not None}
    columns = tuple(score for score in scores if score not in files)
    if (
        isinstance(reader, Table)
        and not reader.is_numbered
        and (numbered := [one for one in columns if isinstance(one.column, int)])
    ):
        what = f"[data.scores] `{numbered[0].name}` must have the name of a key as its `column`"
        raise DataError(f"{reader.path}: {what}, but has the number {numbered[0].column}.")
    if isinstance(reader, Table):
        reader = replace(reader, scores=columns)
    elif columns:
        expected = _expected(reader, columns[0].name)
        raise DataError(f"{expected}: no such file; [data.scores] needs a number for each pair, a line each.")
    return ScoredReader(reader=reader, files=files) if files else reader


@dataclass(frozen=True, kw_only=True)
class ScoredReader:
    """Reads pairs, and their scores from files with one number a line."""

    reader: Reader
    files: dict[ScoreColumn, Path]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read, with the scores last."""
        return (*self.reader.paths, *self.files.values())

    def blocks(self, *, skip_bad: bool = False, choice: Choice = every_block) -> Iterator[Block]:
        """Yield the blocks of the pairs with their scores.

        Args:
            skip_bad: Whether to list pairs whose score is not a number in the blocks instead of raising.
            choice: Selects the blocks to read.

        Raises:
            DataError: As the reader; or if a file of scores is missing or broken, a line is not a number, or
                the number of lines differs (which is known if the last block is selected).
        """
        texts = {score: Lines(File(path), skip_bad=skip_bad) for score, path in self.files.items()}
        end, is_end_known = 0, True
        for block in self.reader.blocks(skip_bad=skip_bad, choice=choice):
            if is_end_known := len(block) > 0:
                for score, lines in texts.items():
                    lines.skip(block.first - end)  # the lines of blocks that are not selected
                    block = self._scored(block, score, lines, skip_bad)
                end = block.first + len(block)
            yield block
        for score, lines in texts.items() if is_end_known else ():
            if lines.take(1):
                raise DataError(
                    f"{self.files[score]}: has more lines than there are pairs of {self.paths[0]}."
                )

    def _scored(self, block: Block, score: ScoreColumn, lines: Lines, skip_bad: bool) -> Block:
        path = self.files[score]
        texts: list[Line] = list(lines.take(len(block)))
        if len(texts) < len(block):
            raise DataError(
                f"{path}: has {lines.count()} lines, fewer than there are pairs of {self.paths[0]}."
            )
        bad = {line.row: line for line in block.bad}
        values = score.values(texts, block.first, f"{path}:", bad if skip_bad else None)
        listed = tuple(bad[row] for row in sorted(bad))
        return replace(block, scores={**block.scores, score.name: values}, bad=listed)


def _file_beside(reader: Reader, name: str) -> Path | None:
    expected = _expected(reader, name)
    return next((path for path in (expected, *_compressed(expected)) if path.is_file()), None)


def _compressed(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in CODECS]


def _expected(reader: Reader, name: str) -> Path:
    """Return the path of the uncompressed file of a score: `x.bicleaner` for texts `x.en` and `x.de`."""
    path = reader.paths[0]
    if not isinstance(reader, TextPairs):
        return path.with_name(f"{path.name}.{name}")
    plain = plain_name(path)
    src = languages(reader.task)[0]
    codes = rf"(?<![A-Za-z0-9])(?:{re.escape(src)}|{ANY_CASE})(?![A-Za-z0-9])"
    spans = [match.span() for match in re.finditer(codes, plain) if serves(match[0], src)]
    if not spans:
        return path.with_name(f"{plain}.{name}")
    start, end = spans[-1]
    return path.with_name(plain[:start] + name + plain[end:])

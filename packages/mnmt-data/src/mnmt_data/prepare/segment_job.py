"""A segment, written by a worker process: from the text of some parts to token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mnmt_data.counter_rng import random_order, stream_key
from mnmt_data.filters import FilterReport
from mnmt_data.prepare.workspace import SCORE, Workspace, read_part
from mnmt_data.store.corpus_folder import Bitext, write_bitext
from mnmt_data.store.description import CoverageInfo
from mnmt_data.store.direction import Direction, TargetTag
from mnmt_data.store.groups import Groups, write_groups
from mnmt_data.store.prepared import VOCABULARY, shard_path, text_folder
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.scores import Scores, write_scores
from mnmt_data.store.segments import SegmentInfo, write_segment
from mnmt_data.store.shards import segment_path
from mnmt_data.store.vocabulary import UNK, Vocabulary

TOO_MANY_TOKENS = "too many tokens"
"""Name of the filter by `max_length`, which comes after that of characters."""


@dataclass(frozen=True, kw_only=True)
class SegmentJob:
    """A segment to write: some rows of some parts."""

    space: Workspace
    split: str
    task: str
    """The direction in which the pairs are stored."""
    number: int
    """The segment's number in its shard."""
    rows: tuple[tuple[Path, NDArray[np.int64]], ...]
    """(part, rows of it), in order."""
    tasks: tuple[str, ...]
    """The tasks that read the pairs: in this direction, the opposite, or both."""
    max_length: int
    """Most tokens of a side of a training pair, as each of these tasks reads it."""
    target_tag: TargetTag
    shuffle_seed: int | None = None
    """Seed of the order of the rows, where the shard is shuffled afterwards."""
    scores: tuple[str, ...] = ()
    """The scores that the pairs have."""

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self.rows)

    @property
    def path(self) -> Path:
        """Path of the segment."""
        if self.shuffle_seed is not None:
            return self.space.unshuffled(self.task, self.number)
        return segment_path(shard_path(self.space.folder, self.split, self.task), self.number)

    @property
    def mark(self) -> str:
        """Name of the mark that says that the segment is complete."""
        return f"encoded/{self.split}.{self.task}.{self.number:05}"

    def lengths(self, src: Ragged, tgt: Ragged) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return {task: its source and target lengths, (pairs,) each}, tags included."""
        directions = {
            task: Direction(swapped=task != self.task, target_tag=self.target_tag) for task in self.tasks
        }
        return {task: direction.lengths(src.lengths, tgt.lengths) for task, direction in directions.items()}


@dataclass(frozen=True, kw_only=True)
class EncodedSegment:
    """Counts of a segment that was written."""

    infos: Mapping[str, SegmentInfo]
    """{task that reads the pairs: counts as it reads them}."""
    filters: FilterReport
    """Training pairs dropped as too long."""
    src: Coverage
    tgt: Coverage

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return next(iter(self.infos.values())).pairs

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as a value for JSON."""
        return asdict(self) | {"filters": self.filters.to_dict()}

    @classmethod
    def from_dict(cls, table: dict[str, Any]) -> Self:
        """Return the counts from the value of `to_dict`."""
        return cls(
            infos={task: SegmentInfo(**info) for task, info in table["infos"].items()},
            filters=FilterReport.from_dict(table["filters"]),
            src=Coverage(**table["src"]),
            tgt=Coverage(**table["tgt"]),
        )


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """The pairs of a segment that come from one part."""

    text: Bitext
    origins: list[str] | None
    src: Ragged
    tgt: Ragged
    scores: Mapping[str, Scores]
    filters: FilterReport
    coverage: tuple[Coverage, Coverage]


def run_segment_job(job: SegmentJob) -> None:
    """Write a segment, the text if it is not training text, and the mark, in this order."""
    pieces = [_encode(job, *_read(path, rows, job.scores)) for path, rows in job.rows]
    if job.split != "train":
        _write_text(job, pieces)
    src, tgt = (Ragged.concatenate([getattr(piece, side) for piece in pieces]) for side in ("src", "tgt"))
    scores = {name: np.concatenate([piece.scores[name] for piece in pieces]) for name in job.scores}
    encoded = EncodedSegment(
        infos={task: SegmentInfo.of(*lengths) for task, lengths in job.lengths(src, tgt).items()},
        filters=sum((piece.filters for piece in pieces), FilterReport()),
        src=sum((piece.coverage[0] for piece in pieces), Coverage()),
        tgt=sum((piece.coverage[1] for piece in pieces), Coverage()),
    )
    del pieces  # frees a copy of all token ids before they are copied again
    if job.shuffle_seed is not None:
        order = random_order(stream_key(job.shuffle_seed, "encoded", job.task, job.number), len(src))
        src = src.take(order)
        tgt = tgt.take(order)
        scores = {name: values[order] for name, values in scores.items()}
    job.path.parent.mkdir(exist_ok=True)
    write_scores(job.path, scores)
    write_segment(job.path, src, tgt)
    job.space.set_mark(job.mark, encoded.to_dict())


def _read(
    path: Path, rows: NDArray[np.int64], names: Sequence[str]
) -> tuple[Bitext, list[str] | None, dict[str, Scores]]:
    columns = {name: f"{SCORE}{name}" for name in names}
    batch = read_part(path, "src", "tgt", "origin", *columns.values()).take(pa.array(rows))
    src, tgt, origins = (batch.column(name).to_pylist() for name in ("src", "tgt", "origin"))
    has_origins = any(origin is not None for origin in origins)
    text, known = Bitext(src=src, tgt=tgt), [origin or "" for origin in origins] if has_origins else None
    return text, known, {name: batch.column(column).to_numpy() for name, column in columns.items()}


def _encode(job: SegmentJob, text: Bitext, origins: list[str] | None, scores: Mapping[str, Scores]) -> _Piece:
    path = job.space.folder / VOCABULARY
    vocab, is_byte = _vocabulary(path, path.stat().st_mtime_ns)
    src, tgt = (vocab.encode_ragged(side, num_threads=1) for side in (text.src, text.tgt))
    filters = FilterReport()
    if job.split == "train":
        sides = [side for lengths in job.lengths(src, tgt).values() for side in lengths]
        short = np.maximum.reduce(sides) <= job.max_length
        filters = _too_many_tokens(text, np.flatnonzero(~short))
        if not short.all():
            rows = np.flatnonzero(short)
            text, src, tgt = text.take(rows.tolist()), src.take(rows), tgt.take(rows)
            scores = {name: values[rows] for name, values in scores.items()}
    coverage = measure(text.src, src.values, is_byte=is_byte), measure(text.tgt, tgt.values, is_byte=is_byte)
    # The text of training pairs is not needed any more; it would take ten times the memory of its token ids.
    written_text = Bitext(src=[], tgt=[]) if job.split == "train" else text
    return _Piece(
        text=written_text,
        origins=origins,
        src=src,
        tgt=tgt,
        scores=scores,
        filters=filters,
        coverage=coverage,
    )


def _too_many_tokens(text: Bitext, rows: NDArray[np.int64]) -> FilterReport:
    dropped = text.take(rows.tolist())
    return FilterReport.of(TOO_MANY_TOKENS, dropped.src, dropped.tgt)


def _write_text(job: SegmentJob, pieces: list[_Piece]) -> None:
    folder = text_folder(job.space.folder)
    stored = Bitext(
        src=[line for piece in pieces for line in piece.text.src],
        tgt=[line for piece in pieces for line in piece.text.tgt],
    )
    for task in job.tasks:
        text = stored if task == job.task else Bitext(src=stored.tgt, tgt=stored.src)
        write_bitext(folder, job.split, task, text, replace_opposite=False)
        if any(piece.origins is not None for piece in pieces):
            origins = [origin for piece in pieces for origin in piece.origins or [""] * len(piece.text)]
            groups = Groups.of(text.src, origins=origins, language=task.split("-")[0])
            write_groups(folder, job.split, task, groups)


@lru_cache(maxsize=1)
def _vocabulary(path: Path, modified: int) -> tuple[Vocabulary, NDArray[np.bool_]]:
    """Load the vocabulary once a file version: `modified` is part of the cache key."""
    vocab = Vocabulary.load(path)
    return vocab, vocab.byte_tokens


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Counts of some text and of its tokens, `</s>` aside."""

    tokens: int = 0
    words: int = 0
    """Stretches without white space."""
    characters: int = 0
    byte_tokens: int = 0
    """Tokens that encode one byte of a character without a piece."""
    unknown_tokens: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        )

    def rates(self) -> CoverageInfo:
        """Return the tokens per word and per character, and the shares of byte and unknown tokens."""
        return CoverageInfo(
            tokens_per_word=self.tokens / max(self.words, 1),
            tokens_per_character=self.tokens / max(self.characters, 1),
            byte_share=self.byte_tokens / max(self.tokens, 1),
            unknown_share=self.unknown_tokens / max(self.tokens, 1),
        )


def measure(lines: Sequence[str], tokens: NDArray[np.integer], *, is_byte: NDArray[np.bool_]) -> Coverage:
    """Count lines and their tokens.

    Args:
        lines: Text.
        tokens: (all tokens of all lines,), a `</s>` of each among them.
        is_byte: (vocabulary size,) bool: whether the id encodes a byte.
    """
    return Coverage(
        tokens=tokens.size - len(lines),
        words=sum(len(line.split()) for line in lines),
        characters=sum(map(len, lines)),
        byte_tokens=int(np.count_nonzero(is_byte[tokens])),
        unknown_tokens=int(np.count_nonzero(tokens == UNK)),
    )

"""Checks of every source on a sample: sides swapped, shifted, unrelated, or in a wrong language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters import normalise
from mnmt_data.filters.alignment import Gains, find_shift, offset_gains, unrelated_rows
from mnmt_data.filters.side_languages import SideLanguages, passages_of
from mnmt_data.prepare.inputs import Source
from mnmt_data.readers import ScoredReader
from mnmt_data.readers.reader import Block
from mnmt_data.readers.text_pairs import TextPairs

FIRST_PAIRS = 4096
"""Pairs of a source's first block that are looked at: all of a test set."""

RUN_PAIRS = 256
"""Consecutive pairs that are looked at in later blocks, and between gaps of a longer first one."""

FIRST_PASSAGES, PASSAGES = 128, 8
"""Passages of the first block, and of a later one, whose languages are identified."""

SWAPPED_SHARE = 0.05
"""Share of passages with swapped sides from which on to warn."""

FOREIGN_SHARE = 0.25
"""Share of passages in another language from which on to warn."""

FEWEST_PASSAGES = 4
"""Fewest passages to warn of."""

NEARLY_NONE = 0.03
"""Share of the sample that does not count as another place."""

SIDES = ("source", "target")
_ZERO = ord("P")


@dataclass(frozen=True, kw_only=True)
class SourceSample:
    """What the sampled pairs of a source look like."""

    rows: NDArray[np.int64]
    """(pairs,) the numbers of the pairs in the source, rising."""

    gains: Gains
    """(offsets, pairs) see `alignment`."""

    languages: SideLanguages

    @classmethod
    def of(cls, block: Block, task: str) -> Self:
        """Look at some pairs of a block."""
        is_first = block.first == 0
        runs = list(_runs(len(block), FIRST_PAIRS if is_first else RUN_PAIRS))
        texts = [[[normalise(line) for line in side[run]] for run in runs] for side in (block.src, block.tgt)]
        pairs = list(zip(*texts, strict=True))
        passages = [(one, other) for run in pairs for one, other in passages_of(*run) if one != other]
        limit = FIRST_PASSAGES if is_first else PASSAGES
        return cls(
            rows=block.first + np.concatenate([np.arange(run.start, run.stop) for run in runs]),
            gains=np.concatenate([offset_gains(src, tgt) for src, tgt in pairs], axis=1),
            languages=SideLanguages.of(task, passages[:: -(-len(passages) // limit) or 1]),
        )

    @classmethod
    def joined(cls, blocks: Sequence[SourceSample]) -> Self:
        """Return the sample of some blocks, in their order."""
        return cls(
            rows=np.concatenate([block.rows for block in blocks]),
            gains=np.concatenate([block.gains for block in blocks], axis=1),
            languages=sum((block.languages for block in blocks), SideLanguages()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the sample as a value for JSON, each gain as the character of its tenths above `_ZERO`."""
        tenths = (np.rint(self.gains * 10) + _ZERO).astype(np.uint8)
        return {
            "rows": self.rows.tolist(),
            "gains": [row.tobytes().decode("ascii") for row in tenths],
            "languages": asdict(self.languages),
        }

    @classmethod
    def from_dict(cls, table: dict[str, Any]) -> Self:
        """Return the sample from the value of `to_dict`."""
        tenths = np.array([list(row.encode("ascii")) for row in table["gains"]], dtype=np.float32)
        src, tgt = table["languages"]["foreign"]
        return cls(
            rows=np.array(table["rows"], dtype=np.int64),
            gains=(tenths - np.float32(_ZERO)) / np.float32(10),
            languages=SideLanguages(**{**table["languages"], "foreign": (src, tgt)}),
        )


def _runs(pairs: int, most: int) -> Iterator[slice]:
    """Yield all pairs of a block, or runs of `RUN_PAIRS` in the middle of equal parts of it."""
    if pairs <= most:
        yield slice(0, pairs)
        return
    count = most // RUN_PAIRS
    for number in range(count):
        start = pairs * (2 * number + 1) // (2 * count) - RUN_PAIRS // 2
        yield slice(start, start + RUN_PAIRS)


def source_warnings(source: Source, samples: Iterable[SourceSample]) -> Iterator[str]:
    """Yield a line for everything that is wrong with a source by the samples of its blocks.

    Args:
        source: The source.
        samples: In the order of its blocks.
    """
    blocks = list(samples)
    if not blocks:
        return
    sample = SourceSample.joined(blocks)
    yield from _language_warnings(source, sample.languages)
    yield from _alignment_warnings(source, sample)


def _language_warnings(source: Source, languages: SideLanguages) -> Iterator[str]:
    codes, passages = source.task.split("-"), languages.passages
    if languages.swapped >= max(FEWEST_PASSAGES, SWAPPED_SHARE * passages):
        share = f"{languages.swapped / passages:.0%} of a sample"
        what = f"in {share} the source is in {codes[1]} and the target in {codes[0]}"
        yield f"{_files(source)}: the sides are swapped: {what}; exchange them"
        return
    for number, code in enumerate(codes):
        counts = languages.foreign[number]
        if sum(counts.values()) >= max(FEWEST_PASSAGES, FOREIGN_SHARE * passages):
            language = max(counts, key=lambda label: (counts[label], label))
            what = f"is in {language} and not in {code} in {counts[language] / passages:.0%} of a sample"
            yield f"{_files(source, number)}: the {SIDES[number]} {what}; give the text of {source.task}"


def _alignment_warnings(source: Source, sample: SourceSample) -> Iterator[str]:
    if (shift := find_shift(sample.gains)) is not None:
        lines = "a line" if abs(shift.offset) == 1 else f"{abs(shift.offset)} lines"
        one, other = SIDES if shift.offset > 0 else SIDES[::-1]
        where = _where(sample.rows, shift.rows)
        what = f"the {one} lacks {lines} there, or the {other} has {lines} too many"
        yield f"{_files(source)}: the sides are shifted by {lines} {where}; {what}"
    elif _is_known(sample.languages) and (rows := unrelated_rows(sample.gains)) is not None:
        where = _where(sample.rows, rows)
        yield f"{_files(source)}: the sides are no translations of each other {where}; mend their order"


def _is_known(languages: SideLanguages) -> bool:
    """Return whether most text is in its languages; made-up sentences may have no lengths to compare."""
    return 2 * languages.expected > languages.passages


def _where(rows: NDArray[np.int64], places: slice) -> str:
    """Say between which pairs of the source, counted from 1, some places of the sample lie."""
    first, last = (int(rows[place]) + 1 for place in (places.start, places.stop - 1))
    starts_at_once = places.start <= NEARLY_NONE * len(rows)
    if places.stop >= (1 - NEARLY_NONE) * len(rows):
        return "from the first pair on" if starts_at_once else f"from about pair {first:,} on"
    return f"up to about pair {last:,}" if starts_at_once else f"from about pair {first:,} to {last:,}"


def _files(source: Source, side: int | None = None) -> str:
    """Name the files of a source, or the one of a side."""
    reader = source.reader.reader if isinstance(source.reader, ScoredReader) else source.reader
    if not isinstance(reader, TextPairs) or reader.src.path == reader.tgt.path:
        return str(reader.paths[0])
    return " and ".join(map(str, reader.paths[:2])) if side is None else str(reader.paths[side])

"""The first stage: every source through the filters, block by block, into part files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

from mnmt_data.errors import DataError
from mnmt_data.filters import CleanBlock, Cleaner, FilterReport, clean_block, normalise
from mnmt_data.filters.keys import pair_keys
from mnmt_data.filters.normalise import Form
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.inputs import Inputs, Source
from mnmt_data.prepare.workers import Workers
from mnmt_data.prepare.workspace import Parts, Workspace, write_part
from mnmt_data.readers.reader import Block

_LINE_BREAKS = re.compile("[\r\n\ufeff]")

CleanedSplits = dict[str, dict[str, Parts]]
"""{split: {task: its parts}}."""


@dataclass(frozen=True, kw_only=True)
class CleanJob:
    """A block to clean."""

    source: str
    block: Block
    path: Path
    """The part file to write."""
    cleaner: Cleaner
    unfiltered: bool
    """Whether every pair stays unchanged, as those of test sets and of synthetic languages do."""

    def __len__(self) -> int:
        return len(self.block)


def clean(config: DataConfig, inputs: Inputs, space: Workspace, workers: Workers) -> CleanedSplits:
    """Write the parts that are missing, and a mark for every source that is done.

    Raises:
        DataError: If a source is broken, or a split and task without a single pair.
    """
    counts: dict[str, int] = {}
    jobs = _jobs(config, inputs, space, counts)
    for job, _ in workers.run("clean", run_clean_job, jobs):
        _mark_done(space, counts, before=job.source)
    _mark_done(space, counts)
    return _cleaned_splits(inputs, space)


def run_clean_job(job: CleanJob) -> None:
    """Clean a block, and write the pairs that are left."""
    if job.unfiltered:
        cleaned = _unfiltered(job.block, job.cleaner.config.normalisation)
    else:
        cleaned = clean_block(job.block, job.cleaner)
    write_part(job.path, cleaned, read=len(job.block))


def _jobs(config: DataConfig, inputs: Inputs, space: Workspace, counts: dict[str, int]) -> Iterator[CleanJob]:
    """Yield the blocks whose parts are missing; count the blocks of each source read to its end."""
    for source in inputs.sources:
        if space.mark(f"parts/{source.name}") is not None:
            continue
        unfiltered = source.split != "train" or bool(inputs.irreducible)
        cleaner = Cleaner(config.clean, source.task, languages=config.languages)
        number, bad = 0, BadShare(config)
        skip_bad = config.on_bad_line == "skip" and source.split == "train"
        for number, block in enumerate(source.reader.blocks(skip_bad=skip_bad), start=1):
            bad.add(block)
            path = space.part(source.name, number - 1)
            if not path.exists():
                yield CleanJob(
                    source=source.name, block=block, path=path, cleaner=cleaner, unfiltered=unfiltered
                )
        bad.check(source)
        counts[source.name] = number


@dataclass
class BadShare:
    """Counts the lines of a source that could not be read."""

    config: DataConfig
    pairs: int = 0
    bad: int = 0
    first: str = ""
    """What is wrong with the first."""

    def add(self, block: Block) -> None:
        """Count the lines of a block."""
        self.pairs += len(block)
        self.bad += len(block.bad)
        self.first = self.first or next((line.what for line in block.bad), "")

    def check(self, source: Source) -> None:
        """Check that no more lines than `max_bad_share` were bad.

        Raises:
            DataError: If more were; the message has the first.
        """
        if self.bad > self.config.max_bad_share * self.pairs:
            counts = f"{self.bad:,} of {self.pairs:,} lines cannot be read"
            limit = f"more than `max_bad_share` ({self.config.max_bad_share:g}) allows"
            raise DataError(f"{source.reader.paths[0]}: {counts}, {limit}; the first: {self.first}")


def _mark_done(space: Workspace, counts: dict[str, int], *, before: str | None = None) -> None:
    """Mark the sources read to their end; results come in order, so those `before` a source are complete."""
    for source in list(takewhile(lambda name: name != before, counts)):
        space.set_mark(f"parts/{source}", counts.pop(source))


def _unfiltered(block: Block, form: Form) -> CleanBlock:
    """Return all pairs, unchanged but for line breaks, so that each stays on a line of its own."""
    src, tgt = ([_LINE_BREAKS.sub(" ", line) for line in side] for side in (block.src, block.tgt))
    return CleanBlock(
        src=src,
        tgt=tgt,
        rows=np.arange(block.first, block.first + len(block), dtype=np.int64),
        origins=block.origins,
        keys=pair_keys(
            [normalise(line, form) for line in src], [normalise(line, form) for line in tgt], near=False
        ),
        report=FilterReport(),
    )


def _cleaned_splits(inputs: Inputs, space: Workspace) -> CleanedSplits:
    parts: CleanedSplits = {}
    for split, task in dict.fromkeys((source.split, source.task) for source in inputs.sources):
        sources = inputs.of(split, task)
        pairs = Parts(path for source in sources for path in _paths(space, source))
        if not pairs.read:
            raise DataError(f"{sources[0].reader.paths[0]}: has no lines; give at least one sentence pair.")
        parts.setdefault(split, {})[task] = pairs
    return parts


def _paths(space: Workspace, source: Source) -> Iterator[Path]:
    for number in range(space.mark(f"parts/{source.name}")):
        yield space.part(source.name, number)

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
from mnmt_data.prepare.workers import Progress, Report, Workers
from mnmt_data.prepare.workspace import Parts, Workspace, write_part
from mnmt_data.readers.reader import Block

_LINE_BREAKS = re.compile("[\r\n\ufeff]")

AllParts = dict[str, dict[str, Parts]]
"""{split: {task: its parts}}"""


@dataclass(frozen=True, kw_only=True)
class CleanJob:
    """A block to clean, and where what is left of it goes."""

    source: str
    block: Block
    path: Path
    cleaner: Cleaner
    as_it_is: bool
    """Whether every pair stays, unchanged: those of test sets and of made languages do."""

    def __len__(self) -> int:
        return len(self.block)


def clean(config: DataConfig, inputs: Inputs, space: Workspace, workers: Workers, report: Report) -> AllParts:
    """Write the parts that are not there yet, and a mark for every source that is done.

    Raises:
        DataError: If a source is broken, or a split and task without a single pair.
    """
    counts: dict[str, int] = {}
    jobs = _jobs(config, inputs, space, counts)
    with Progress("clean", report) as progress:
        for job, _ in workers.run(run_clean_job, jobs):
            progress.add(len(job))
            _mark_done(space, counts, before=job.source)
    _mark_done(space, counts)
    return _all_parts(inputs, space)


def run_clean_job(job: CleanJob) -> None:
    """Clean a block and writes what is left of it."""
    if job.as_it_is:
        cleaned = _as_it_is(job.block, job.cleaner.config.normalisation)
    else:
        cleaned = clean_block(job.block, job.cleaner)
    write_part(job.path, cleaned, read=len(job.block))


def _jobs(config: DataConfig, inputs: Inputs, space: Workspace, counts: dict[str, int]) -> Iterator[CleanJob]:
    """Blocks whose parts are missing; counts the blocks of each source once it is read to its end."""
    for source in inputs.sources:
        if space.mark(f"parts/{source.name}") is not None:
            continue
        as_it_is = source.split != "train" or bool(inputs.irreducible)
        cleaner = Cleaner(config.clean, source.task, languages=config.languages)
        number = 0
        for number, block in enumerate(source.reader.blocks(), start=1):
            path = space.part(source.name, number - 1)
            if not path.exists():
                yield CleanJob(source=source.name, block=block, path=path, cleaner=cleaner, as_it_is=as_it_is)
        counts[source.name] = number


def _mark_done(space: Workspace, counts: dict[str, int], *, before: str | None = None) -> None:
    """Mark sources read to their end; since results come in order, all are back of those `before`."""
    for source in list(takewhile(lambda name: name != before, counts)):
        space.set_mark(f"parts/{source}", counts.pop(source))


def _as_it_is(block: Block, form: Form) -> CleanBlock:
    """All pairs, unchanged but that each stays on a line of its own when it is written."""
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


def _all_parts(inputs: Inputs, space: Workspace) -> AllParts:
    parts: AllParts = {}
    for split, task in dict.fromkeys((source.split, source.task) for source in inputs.sources):
        sources = inputs.of(split, task)
        found = Parts(path for source in sources for path in _paths(space, source))
        if not found.read:
            raise DataError(f"{sources[0].reader.paths[0]}: has no lines; give at least one sentence pair.")
        parts.setdefault(split, {})[task] = found
    return parts


def _paths(space: Workspace, source: Source) -> Iterator[Path]:
    for number in range(space.mark(f"parts/{source.name}")):
        yield space.part(source.name, number)

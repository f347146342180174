"""The first stage: every source through the filters, block by block, into part files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np

from mnmt_data.errors import DataError
from mnmt_data.filters import CleanBlock, Cleaner, FilterReport, clean_block, normalise
from mnmt_data.filters.keys import pair_keys
from mnmt_data.filters.normalise import Form
from mnmt_data.filters.report import BAD_LINE
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.inputs import Inputs, Source
from mnmt_data.prepare.source_checks import SourceSample, source_warnings
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Parts, Workspace, read_header, read_sample, write_part
from mnmt_data.readers.reader import PAIR_BYTES, Block

_LINE_BREAKS = re.compile("[\r\n\ufeff]")

_SMALLEST_SHARE = 2**20
"""Fewest bytes of a source for each job that reads it: cleaning must outweigh another reading."""

SCORE_BLOCKS = 20
"""Blocks of a source from which a message about a threshold takes the range of scores."""

CleanedSplits = dict[str, dict[str, Parts]]
"""{split: {task: its parts}}."""


@dataclass(frozen=True, kw_only=True)
class CleanJob:
    """Some of the blocks of a source, to read and to clean."""

    source: Source
    share: int
    """The job cleans block i if i % `shares` == `share`."""
    shares: int
    """Number of jobs that read the source at the same time."""
    space: Workspace
    cleaner: Cleaner
    unfiltered: bool
    """Whether every pair stays unchanged, as in test sets and synthetic languages."""
    skip_bad: bool
    sampled: bool
    """Whether to take a sample for `source_checks`."""

    def __len__(self) -> int:
        """Estimate the number of pairs to clean."""
        return self.source.bytes // self.shares // PAIR_BYTES

    def wants(self, number: int) -> bool:
        """Return whether to clean a block: it is of this share, and its part is missing."""
        return number % self.shares == self.share and not self.path(number).exists()

    def path(self, number: int) -> Path:
        """Return the path of the part that a block becomes."""
        return self.space.part(self.source.name, number)


def clean(config: DataConfig, inputs: Inputs, space: Workspace, stages: Stages) -> CleanedSplits:
    """Write the parts that are missing, and a mark for every source that is done.

    Raises:
        DataError: If a source is broken, a split and task has no pair, or no training pair passes the score
            thresholds.
    """
    jobs = list(_jobs(config, inputs, space, stages.count))
    left = Counter(job.source.name for job in jobs)
    done = PairsCleaned(space, {job.source.name for job in jobs})
    for job, blocks in stages.run("clean", run_clean_job, jobs, pairs_done=done):
        left[job.source.name] -= 1
        if not left[job.source.name]:
            if job.skip_bad:
                _check_bad_share(config, job, blocks)
            space.set_mark(f"parts/{job.source.name}", blocks)
    warnings = _warnings(inputs, space)
    space.set_mark("warnings", warnings)
    for line in warnings:
        stages.report(f"warning: {line}")
    parts = _cleaned_splits(inputs, space)
    for task, pairs in parts.get("train", {}).items():
        if not len(pairs) and (drops := threshold_drops(config, inputs, task, pairs)):
            path = inputs.of("train", task)[0].reader.paths[0]
            raise DataError(f"{path}: no training pair of {task} is left; {drops}.")
    return parts


def threshold_drops(config: DataConfig, inputs: Inputs, task: str, pairs: Parts) -> str:
    """Describe the score threshold that dropped most training pairs; `""` if it dropped at most half.

    The range of scores is that of the first `SCORE_BLOCKS` blocks of each source.
    """
    dropped = {name: pairs.filters.counts.get(name, 0) for name in config.min_scores}
    name = max(dropped, key=lambda name: dropped[name], default="")
    if 2 * dropped.get(name, 0) <= pairs.read:
        return ""
    blocks = [
        block.scores[name]
        for source in inputs.of("train", task)
        for block in islice(source.reader.blocks(skip_bad=config.on_bad_line == "skip"), SCORE_BLOCKS)
    ]
    scores = np.concatenate(blocks)
    what = f"`min` ({config.min_scores[name]:g}) of [data.scores] `{name}` dropped {dropped[name]:,}"
    span = f"from {np.nanmin(scores):g} to {np.nanmax(scores):g}"
    return f"{what} of {pairs.read:,}, and the first {len(scores):,} scores go {span}; make it lower"


def run_clean_job(job: CleanJob) -> int:
    """Clean the blocks that the job wants, and write the pairs that are left.

    Returns:
        The blocks of the source.
    """
    number = 0
    blocks = job.source.reader.blocks(skip_bad=job.skip_bad, choice=job.wants)
    # Read the next block before writing a part: if the reader fails at the end of its file, as for one score
    # too many, the last part stays missing, and a call that continues from the parts fails again.
    for number, (block, _) in enumerate(pairwise(chain(blocks, [None])), start=1):
        if block is None or not len(block):
            continue
        if job.unfiltered:
            cleaned = _unfiltered(block, job.cleaner.config.normalisation)
        else:
            cleaned = clean_block(block, job.cleaner)
        sample = SourceSample.of(block, job.source.task).to_dict() if job.sampled else None
        write_part(job.path(number - 1), cleaned, read=len(block), sample=sample)
    return number


def _jobs(config: DataConfig, inputs: Inputs, space: Workspace, count: int) -> list[CleanJob]:
    """Return the jobs of the sources that are not done, the largest first.

    A source gets its share of the processes, by bytes. Each of its jobs reads all of it, which costs less
    than cleaning, and cleans its share of the blocks.
    """
    sources = [source for source in inputs.sources if space.mark(f"parts/{source.name}") is None]
    total = sum(source.bytes for source in sources)
    cleaners = {
        task: Cleaner(config.clean, task, languages=config.languages, min_scores=config.min_scores)
        for task in dict.fromkeys(source.task for source in sources)
    }
    jobs = [
        CleanJob(
            source=source,
            share=share,
            shares=shares,
            space=space,
            cleaner=cleaners[source.task],
            unfiltered=source.split != "train" or bool(inputs.irreducible),
            skip_bad=config.on_bad_line == "skip" and source.split == "train",
            sampled=not inputs.irreducible,
        )
        for source in sources
        for shares in [num_shares(source.bytes, total, count)]
        for share in range(shares)
    ]
    return sorted(jobs, key=len, reverse=True)


def num_shares(size: int, total: int, count: int) -> int:
    """Return how many jobs read a source of `size` bytes, of `total` for `count` processes."""
    return max(1, min(-(-count * size // max(total, 1)), size // _SMALLEST_SHARE))


@dataclass
class PairsCleaned:
    """Counts the pairs that all processes have cleaned since the counter was made."""

    space: Workspace
    sources: set[str]
    pairs: int = 0
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self()
        self.pairs = 0

    def __call__(self) -> int:
        """Return the current number of pairs."""
        for path in self.space.parts(self.sources):
            if path.name not in self.names:
                self.names.add(path.name)
                self.pairs += read_header(path)["read"]
        return self.pairs


def _warnings(inputs: Inputs, space: Workspace) -> list[str]:
    """Return a line for everything that samples of the cleaned sources show to be wrong with them."""
    lines: list[str] = []
    for source in inputs.sources:
        samples = map(SourceSample.from_dict, filter(None, map(read_sample, _paths(space, source))))
        lines += source_warnings(source, samples)
    return lines


def _check_bad_share(config: DataConfig, job: CleanJob, blocks: int) -> None:
    """Check that at most the share `max_bad_share` of a source's lines was bad.

    Raises:
        DataError: If more lines were bad; the message quotes the first.
    """
    parts = Parts(map(job.path, range(blocks)))
    bad = parts.filters.counts.get(BAD_LINE, 0)
    if bad > config.max_bad_share * parts.read:
        counts = f"{bad:,} of {parts.read:,} lines cannot be read"
        limit = f"more than `max_bad_share` ({config.max_bad_share:g}) allows"
        _, first = parts.filters.samples[BAD_LINE][0]
        raise DataError(f"{job.source.reader.paths[0]}: {counts}, {limit}; the first: {first}")


def _unfiltered(block: Block, form: Form) -> CleanBlock:
    """Return all pairs unchanged, but with spaces for line breaks."""
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

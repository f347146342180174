"""The stage that looks for copies of dev and test sentences in the training text, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.filters import LeakConfig, LeakFinder
from mnmt_data.filters.words import fold, words_of
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.dev_test_sets import HeldOutSet, HeldOutSets
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Parts, Workspace, read_part
from mnmt_data.store.atomic_file import atomic_file, write_json
from mnmt_data.store.description import SentenceInfo

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Leaks:
    """The pairs of a task that are copies of dev and test sentences."""

    rows: NDArray[np.int64]
    """(copies,) the pairs, rising."""

    matches: Mask
    """(copies, rules, sets) whether the rule finds the pair to be a copy of a sentence of the set."""

    inside: Mask
    """(sentences,) see `LeakMatches`."""

    @property
    def first_rules(self) -> NDArray[np.int64]:
        """(copies,) the number of the first rule by which each is a copy."""
        return np.asarray(self.matches.any(axis=2).argmax(axis=1))

    def counts(self, among: Mask) -> NDArray[np.int64]:
        """Count pairs in the mask `among`, (pairs,), by the first rule that finds them: (sets, rules)."""
        matches = self.matches[among[self.rows]]
        is_first = matches & (matches.cumsum(axis=1) == 1)
        return np.asarray(is_first.sum(axis=0).T)


@dataclass(frozen=True, kw_only=True)
class LeakJob:
    """A part of training text to search."""

    sentences: Path
    """JSON of {set: its sentences, normalised}."""
    config: LeakConfig
    part: Path
    path: Path
    """The file to write."""
    pairs: int

    def __len__(self) -> int:
        return self.pairs


def find_leaks(
    config: DataConfig, train: Mapping[str, Parts], sets: HeldOutSets, space: Workspace, stages: Stages
) -> tuple[dict[str, Leaks], dict[str, SentenceInfo]]:
    """Search all training text; parts searched by an earlier call are not read again.

    Returns:
        {task: its leaks}, of every trained task.
        {set: its sentences}.
    """
    path = space.work / "leaks" / "sentences.json"
    sentences = {split: _sentences(config, tasks) for split, tasks in sets.items()}
    write_json(path, sentences)
    jobs = {task: list(_jobs(config, task, pairs, path)) for task, pairs in train.items()}
    missing = (job for of_task in jobs.values() for job in of_task if not job.path.exists())
    for _ in stages.run("leaks", run_leak_job, missing):
        pass
    total = sum(map(len, sentences.values()))
    leaks = {task: _leaks(of_task, train[task], total) for task, of_task in jobs.items()}
    inside = np.logical_or.reduce([of_task.inside for of_task in leaks.values()])
    return leaks, _sentence_counts(sentences, inside, config.leaks)


def _sentence_counts(
    sentences: Mapping[str, list[str]], inside: Mask, config: LeakConfig
) -> dict[str, SentenceInfo]:
    texts = list(chain(*sentences.values()))
    lengths = np.bincount(words_of(fold(texts)).texts, minlength=len(texts))
    counts, start = {}, 0
    for name, lines in sentences.items():
        rows = slice(start, start + len(lines))
        words, is_inside = lengths[rows], inside[rows]
        counts[name] = SentenceInfo(
            sentences=len(lines),
            short=int(np.count_nonzero(words < config.min_words)),
            inside=int(np.count_nonzero(is_inside)),
            inside_ngrams=int(np.count_nonzero(is_inside & (words >= config.ngram_words))),
        )
        start = rows.stop
    return counts


def run_leak_job(job: LeakJob) -> None:
    """Search a part, and write its rows that are copies."""
    finder = _finder(job.sentences, job.sentences.stat().st_mtime_ns, job.config)
    batch = read_part(job.part, "src", "tgt")
    matches = finder.find(batch.column("src").to_pylist(), batch.column("tgt").to_pylist())
    rows = np.flatnonzero(matches.rules.any(axis=(1, 2)))
    with atomic_file(job.path) as file:
        np.savez(file, rows=rows, matches=matches.rules[rows], inside=matches.inside)


def _sentences(config: DataConfig, tasks: Mapping[str, HeldOutSet]) -> list[str]:
    """Return the distinct sentences of either side of the sets of some tasks, normalised, in order."""
    sides = (side for of_task in tasks.values() for side in of_task.texts(config.clean.normalisation))
    return sorted(set(chain.from_iterable(sides)))


def _jobs(config: DataConfig, task: str, train: Parts, sentences: Path) -> Iterator[LeakJob]:
    for part, pairs in zip(train.paths, np.diff(train.starts).tolist(), strict=True):
        path = sentences.with_name(f"{part.stem}.npz")
        yield LeakJob(sentences=sentences, config=config.leaks, part=part, path=path, pairs=pairs)


def _leaks(jobs: list[LeakJob], train: Parts, sentences: int) -> Leaks:
    rows, matches, inside = [], [], np.zeros(sentences, dtype=np.bool_)
    for job, start in zip(jobs, train.starts.tolist(), strict=False):
        with np.load(job.path) as file:
            rows.append(file["rows"] + start)
            matches.append(file["matches"])
            inside |= file["inside"]
    return Leaks(rows=np.concatenate(rows), matches=np.concatenate(matches), inside=inside)


@lru_cache(maxsize=1)
def _finder(sentences: Path, modified: int, config: LeakConfig) -> LeakFinder:
    """Index the sentences once a file version: `modified` is part of the cache key."""
    return LeakFinder(json.loads(sentences.read_text(encoding="utf-8")), config)

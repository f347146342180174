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
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.dev_test_sets import HeldOutSet, HeldOutSets
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Parts, Workspace, read_part
from mnmt_data.store.atomic_file import atomic_file, write_json

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Leaks:
    """The pairs of a task that are copies of dev and test sentences."""

    rows: NDArray[np.int64]
    """(copies,) the pairs, rising."""

    matches: Mask
    """(copies, rules, sets) whether the rule finds the pair to be a copy of a sentence of the set."""

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
) -> dict[str, Leaks]:
    """Return {task: its leaks} of every trained task; do not read again what an earlier call has searched."""
    path = space.work / "leaks" / "sentences.json"
    write_json(path, {split: _sentences(config, tasks) for split, tasks in sets.items()})
    jobs = {task: list(_jobs(config, task, pairs, path)) for task, pairs in train.items()}
    missing = (job for of_task in jobs.values() for job in of_task if not job.path.exists())
    for _ in stages.run("leaks", run_leak_job, missing):
        pass
    return {task: _leaks(of_task, train[task]) for task, of_task in jobs.items()}


def run_leak_job(job: LeakJob) -> None:
    """Search a part, and write its rows that are copies."""
    finder = _finder(job.sentences, job.sentences.stat().st_mtime_ns, job.config)
    batch = read_part(job.part, "src", "tgt")
    matches = finder.find(batch.column("src").to_pylist(), batch.column("tgt").to_pylist())
    rows = np.flatnonzero(matches.any(axis=(1, 2)))
    with atomic_file(job.path) as file:
        np.savez(file, rows=rows, matches=matches[rows])


def _sentences(config: DataConfig, tasks: Mapping[str, HeldOutSet]) -> list[str]:
    """Return the distinct sentences of either side of the sets of some tasks, normalised, in order."""
    sides = (side for of_task in tasks.values() for side in of_task.texts(config.clean.normalisation))
    return sorted(set(chain.from_iterable(sides)))


def _jobs(config: DataConfig, task: str, train: Parts, sentences: Path) -> Iterator[LeakJob]:
    for part, pairs in zip(train.paths, np.diff(train.starts).tolist(), strict=True):
        path = sentences.with_name(f"{part.stem}.npz")
        yield LeakJob(sentences=sentences, config=config.leaks, part=part, path=path, pairs=pairs)


def _leaks(jobs: list[LeakJob], train: Parts) -> Leaks:
    rows, matches = [], []
    for job, start in zip(jobs, train.starts.tolist(), strict=False):
        with np.load(job.path) as file:
            rows.append(file["rows"] + start)
            matches.append(file["matches"])
    return Leaks(rows=np.concatenate(rows), matches=np.concatenate(matches))


@lru_cache(maxsize=1)
def _finder(sentences: Path, modified: int, config: LeakConfig) -> LeakFinder:
    """Index the sentences once a file version: `modified` is part of the cache key."""
    return LeakFinder(json.loads(sentences.read_text(encoding="utf-8")), config)

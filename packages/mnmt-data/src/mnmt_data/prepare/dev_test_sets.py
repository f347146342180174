"""Dev and test sets: given, sampled from a test corpus, or taken out of the training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import Words, mix, stream_key
from mnmt_data.errors import DataError
from mnmt_data.filters import LeakFinder, normalise
from mnmt_data.filters.normalise import Form
from mnmt_data.prepare.clean import CleanedSplits, threshold_drops
from mnmt_data.prepare.config import DEV_AND_TEST, DataConfig
from mnmt_data.prepare.inputs import Inputs
from mnmt_data.prepare.workspace import Parts

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class HeldOutSet:
    """The dev set or a test set of a task: some pairs of some parts."""

    parts: Parts
    rows: Rows
    copies: int = 0
    """Pairs left out of a dev set because they are copies of test sentences."""

    def texts(self, form: Form) -> tuple[list[str], list[str]]:
        """Return the sources and targets, normalised."""
        pairs = list(self.parts.values(self.rows, "src", "tgt"))
        src, tgt = ([normalise(pair[side], form) for pair in pairs] for side in (0, 1))
        return src, tgt


HeldOutSets = dict[str, dict[str, HeldOutSet]]
"""{split: {task: set}}, of all splits but train."""


def dev_and_test_sets(
    config: DataConfig, inputs: Inputs, parts: CleanedSplits, candidates: Mapping[str, Mask]
) -> HeldOutSets:
    """Return the dev and test sets of all tasks, zero-shot ones too.

    No dev set has a copy of a test sentence. A set that both directions share is listed once, under the task
    that is named first.

    Args:
        config: The sizes of the sets.
        inputs: The origin of the text, for messages.
        parts: All text.
        candidates: {task: mask of the training pairs to take sets from, (pairs,)}, for all training text.

    Raises:
        DataError: If there are too few pairs, a held_out pair has a blank side, or a dev set is left empty.
    """
    sets: HeldOutSets = {split: {} for split in dict.fromkeys((*DEV_AND_TEST, *parts)) if split != "train"}
    for task in config.evaluated:
        for split in sets:
            if task in parts.get(split, {}):
                held_out = _given_set(config, split, task, parts[split][task])
                _check_sides(held_out, inputs, split, task)
                sets[split][task] = held_out
        absent = [split for split in DEV_AND_TEST if task not in sets[split]]
        missing = [split for split in absent if (split, task) not in inputs.opposites]
        if missing:
            sets_from_train = _sample_from_train(
                config, inputs, task, parts["train"][task], candidates[task], missing
            )
            for split, pairs in sets_from_train.items():
                sets[split][task] = pairs
    tests = {
        f"{split} {task}": list(chain(*pairs.texts(config.clean.normalisation)))
        for split in sets
        for task, pairs in sets[split].items()
        if split != "dev"
    }
    finder = LeakFinder(tests, config.leaks)
    sets["dev"] = {task: _apart(config, task, dev, finder) for task, dev in sets["dev"].items()}
    return sets


def sampled_side(task: str, tasks: Sequence[str]) -> str:
    """Return `src` or `tgt`: the side whose sentences decide which pairs of a task are held out.

    It is the side whose language occurs in more tasks, or first. So tasks with the same sentences on that
    side (n-way corpora, both directions of a pair) hold out the same ones.

    Args:
        task: A task, perhaps a zero-shot one.
        tasks: The tasks that are trained on.
    """
    counts = Counter(language for other in tasks for language in other.split("-"))
    order = [language for language, _ in counts.most_common()]
    src, tgt = ((order.index(code) if code in order else len(order), code) for code in task.split("-"))
    return "tgt" if tgt < src else "src"


def sampling_ranks(keys: Words, seed: int) -> Words:
    """Return the rank of each sentence in a seeded order: a hash of its key, the same in any corpus."""
    return mix(keys ^ stream_key(seed, "held out")[0])


@dataclass
class SplitSampler:
    """Takes the first rows of a corpus in seeded order as the test set, and the last ones as the dev set.

    Rows are added part by part; only the sets and one part are in memory. Rows of equal rank stay in order.
    """

    sizes: dict[str, int]
    """{"test" or "dev": number of rows}, for the sets to sample."""

    _samples: dict[str, tuple[Words, Rows]] = field(default_factory=dict, init=False)

    def add(self, ranks: Words, rows: Rows) -> None:
        """Add rows, each with its rank."""
        for split, size in self.sizes.items():
            before = self._samples.get(split, (np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)))
            values = [np.concatenate(both) for both in zip(before, (ranks, rows), strict=True)]
            order = np.lexsort((values[1], values[0]))
            ends = order[:size] if split == "test" else order[max(len(order) - size, 0) :]
            self._samples[split] = (values[0][ends], values[1][ends])

    def rows(self, split: str) -> Rows:
        """Return the rows of a set, rising: (size,)."""
        return np.sort(self._samples[split][1])


def _given_set(config: DataConfig, split: str, task: str, parts: Parts) -> HeldOutSet:
    """Return all pairs; of a test corpus at most `test_sentences`."""
    if split not in config.test_corpora:
        return HeldOutSet(parts=parts, rows=np.arange(len(parts)))
    everything = np.ones(len(parts), dtype=bool)
    sampler = _sample(config, task, parts, everything, {"test": config.test_sentences})
    return HeldOutSet(parts=parts, rows=sampler.rows("test"))


def _check_sides(held_out: HeldOutSet, inputs: Inputs, split: str, task: str) -> None:
    """Refuse a blank side, which no metric can score.

    Raises:
        DataError: If there is one; the message names the files and the number of the pair.
    """
    sides = held_out.parts.values(held_out.rows, "src", "tgt")
    for row, (src, tgt) in zip(held_out.rows.tolist(), sides, strict=True):
        if not (src.strip() and tgt.strip()):
            path = inputs.of(split, task)[0].reader.paths[:2][0 if tgt.strip() else -1]
            raise DataError(f"{path}: pair {row + 1} of the {split} set has a blank side; give its text.")


def _sample_from_train(
    config: DataConfig, inputs: Inputs, task: str, train: Parts, candidates: Mask, splits: Iterable[str]
) -> dict[str, HeldOutSet]:
    sizes = {split: getattr(config, f"{split}_sentences") for split in splits}
    if (usable := int(np.count_nonzero(candidates))) <= sum(sizes.values()):
        sets = " and ".join(f"`{split}_sentences` ({size})" for split, size in sizes.items())
        path = inputs.of("train", task)[0].reader.paths[0]
        drops = threshold_drops(config, inputs, task, train) or "make these smaller or give more text"
        raise DataError(f"{path}: has {usable} usable pairs, too few for {sets}; {drops}.")
    sampler = _sample(config, task, train, candidates, sizes)
    return {split: HeldOutSet(parts=train, rows=sampler.rows(split)) for split in sizes}


def _sample(
    config: DataConfig, task: str, parts: Parts, candidates: Mask, sizes: dict[str, int]
) -> SplitSampler:
    sampler = SplitSampler(sizes)
    for rows, (keys,) in parts.columns(f"{sampled_side(task, config.tasks)}_key"):
        usable = np.flatnonzero(candidates[rows])
        sampler.add(sampling_ranks(keys[usable], config.seed), usable + rows.start)
    return sampler


def _apart(config: DataConfig, task: str, dev: HeldOutSet, finder: LeakFinder) -> HeldOutSet:
    """Return a dev set without copies of the test sentences of a finder."""
    copies = finder.find(*dev.texts(config.clean.normalisation)).rules.any(axis=(1, 2))
    if copies.all():
        what = f"every dev pair of {task} has a sentence of a test set, or a copy of one"
        raise DataError(f"[data] {what}; give others, or make [data.leaks] laxer.")
    return HeldOutSet(parts=dev.parts, rows=dev.rows[~copies], copies=int(np.count_nonzero(copies)))

"""Dev and test sets: given, sampled from a test corpus, or taken out of the training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mnmt_data.counter_rng import Words, mix, stream_key
from mnmt_data.errors import DataError
from mnmt_data.filters import is_held_out
from mnmt_data.prepare.clean import AllParts
from mnmt_data.prepare.config import CARVED, DataConfig
from mnmt_data.prepare.inputs import Inputs
from mnmt_data.prepare.workspace import Parts

Rows = NDArray[np.int64]


def side_of(task: str, tasks: Sequence[str]) -> str:
    """`src` or `tgt`: the side whose sentences decide which pairs of a task are held out.

    It is the side in the language that more of the tasks have, the first of several. So tasks with the same
    sentences there (n-way corpora, both directions of a pair) hold out the same ones.

    Args:
        task: One of the tasks, or a zero-shot one.
        tasks: Those that are trained on.
    """
    counts = Counter(language for other in tasks for language in other.split("-"))
    order = [language for language, _ in counts.most_common()]
    src, tgt = ((order.index(code) if code in order else len(order), code) for code in task.split("-"))
    return "tgt" if tgt < src else "src"


def places(keys: Words, seed: int) -> Words:
    """Where a seeded order has each sentence: a 64-bit hash of its key, the same wherever the sentence is."""
    return mix(keys ^ stream_key(seed, "held out")[0])


@dataclass
class Ends:
    """The rows at the beginning (the test set) and the end (the dev set) of the seeded order of a corpus.

    Rows come in parts; no more than the sets and one part are held. Rows of one place are in their own order.
    """

    sizes: dict[str, int]
    """{"test" or "dev": rows}, only those to take."""

    _taken: dict[str, tuple[Words, Rows]] = field(default_factory=dict, init=False)

    def add(self, places: Words, rows: Rows) -> None:
        """Look at more rows, each with its place."""
        for split, size in self.sizes.items():
            before = self._taken.get(split, (np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)))
            values = [np.concatenate(both) for both in zip(before, (places, rows), strict=True)]
            order = np.lexsort((values[1], values[0]))
            ends = order[:size] if split == "test" else order[max(len(order) - size, 0) :]
            self._taken[split] = (values[0][ends], values[1][ends])

    def rows(self, split: str) -> Rows:
        """(size,) the rows of a set, rising."""
        return np.sort(self._taken[split][1])


Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The dev set or a test set of a task: some pairs of some parts."""

    parts: Parts
    rows: Rows

    def keys(self) -> Keys:
        """(rows, 2) of its source and target sentences."""
        pairs = list(self.parts.values(self.rows, "src_key", "tgt_key"))
        return np.array(pairs, dtype=np.uint64).reshape(-1, 2)

    def without(self, held_out: Keys) -> HeldOut:
        """The pairs neither of whose sentences is among `held_out`, which rises."""
        src, tgt = self.keys().T
        return HeldOut(parts=self.parts, rows=self.rows[~is_held_out(src, tgt, held_out)])


Sets = dict[str, dict[str, HeldOut]]
"""{split: {task: set}}, of all splits but train."""


def held_out_sets(
    config: DataConfig, inputs: Inputs, parts: AllParts, candidates: Mapping[str, Mask]
) -> Sets:
    """The dev and test sets of all tasks, zero-shot ones too; no dev set has a sentence of a test set.

    Args:
        config: How large the sets are.
        inputs: Where the text is from, for messages.
        parts: All text.
        candidates: {task: (pairs,) which training pairs may be carved out}, of every task with training text.

    Raises:
        DataError: If there are too few of them, or nothing is left of a dev set.
    """
    sets: Sets = {split: {} for split in dict.fromkeys((*CARVED, *parts)) if split != "train"}
    for task in config.evaluated:
        for split in sets:
            if task in parts.get(split, {}):
                sets[split][task] = _given(config, split, task, parts[split][task])
        missing = [split for split in CARVED if task not in sets[split]]
        if missing:
            carved = _carved(config, inputs, task, parts["train"][task], candidates[task], missing)
            for split, pairs in carved.items():
                sets[split][task] = pairs
    tests = sentence_keys(pairs for split in sets if split != "dev" for pairs in sets[split].values())
    sets["dev"] = {task: _dev(task, sets["dev"][task], tests) for task in config.evaluated}
    return sets


def sentence_keys(sets: Iterable[HeldOut]) -> Keys:
    """(distinct sentences,) the keys of all sentences of either side, rising."""
    return np.unique(np.concatenate([np.empty((0, 2), dtype=np.uint64), *(pairs.keys() for pairs in sets)]))


def _given(config: DataConfig, split: str, task: str, parts: Parts) -> HeldOut:
    """All pairs; of a test corpus at most `test_sentences`."""
    if split not in config.test_corpora:
        return HeldOut(parts=parts, rows=np.arange(len(parts)))
    ends = _ends(config, task, parts, np.ones(len(parts), dtype=bool), {"test": config.test_sentences})
    return HeldOut(parts=parts, rows=ends.rows("test"))


def _carved(
    config: DataConfig, inputs: Inputs, task: str, train: Parts, candidates: Mask, splits: Iterable[str]
) -> dict[str, HeldOut]:
    sizes = {split: getattr(config, f"{split}_sentences") for split in splits}
    if (usable := int(np.count_nonzero(candidates))) <= sum(sizes.values()):
        sets = " and ".join(f"`{split}_sentences` ({size})" for split, size in sizes.items())
        path = inputs.of("train", task)[0].reader.paths[0]
        raise DataError(
            f"{path}: has {usable} usable pairs, too few for {sets}; make these smaller or give more text."
        )
    ends = _ends(config, task, train, candidates, sizes)
    return {split: HeldOut(parts=train, rows=ends.rows(split)) for split in sizes}


def _ends(config: DataConfig, task: str, parts: Parts, candidates: Mask, sizes: dict[str, int]) -> Ends:
    ends = Ends(sizes)
    for rows, (keys,) in parts.columns(f"{side_of(task, config.tasks)}_key"):
        usable = np.flatnonzero(candidates[rows])
        ends.add(places(keys[usable], config.seed), usable + rows.start)
    return ends


def _dev(task: str, dev: HeldOut, tests: Keys) -> HeldOut:
    left = dev.without(tests)
    if not len(left.rows):
        raise DataError(f"[data] every dev pair of {task} has a sentence of a test set; give others.")
    return left

"""The second stage: which pairs are trained on, and which make the dev and test sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.filters import (
    DUPLICATE,
    HELD_OUT,
    NEAR_DUPLICATE,
    FilterReport,
    first_occurrences,
    is_held_out,
)
from mnmt_data.filters.report import SAMPLES
from mnmt_data.prepare.clean import CleanedSplits
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.dev_test_sets import Keys, Mask, dev_and_test_sets, sentence_keys
from mnmt_data.prepare.inputs import Inputs
from mnmt_data.prepare.workspace import Parts, Workspace
from mnmt_data.store.atomic_file import atomic_file


def split_pairs(
    config: DataConfig, inputs: Inputs, parts: CleanedSplits, space: Workspace
) -> dict[str, FilterReport]:
    """Write which pairs each split and task has, for `split_rows` to read, unless that is done.

    Training pairs are dropped that occurred before, or that have a sentence, on either side, which a dev or
    test set of any task has, zero-shot tasks included. Synthetic languages drop none: they repeat themselves
    on purpose.

    Returns:
        {task: the training pairs dropped, by filter}.

    Raises:
        DataError: If there are too few pairs for the sets, or none are left to train on.
    """
    if (mark := space.mark("splits/done")) is None:
        synthetic = bool(inputs.irreducible)
        reports = _keep_all(parts, space) if synthetic else _split(config, inputs, parts, space)
        mark = {task: report.to_dict() for task, report in reports.items()}
        space.set_mark("splits/done", mark)
    return {task: FilterReport.from_dict(report) for task, report in mark.items()}


def split_rows(space: Workspace, split: str, task: str) -> NDArray[Any]:
    """Return the pairs of a split: of train a mask, (pairs,); of other splits the rows, (rows,)."""
    return np.asarray(np.load(space.split_path(split, task), mmap_mode="r"))


def parts_of(parts: CleanedSplits, split: str, task: str) -> Parts:
    """Return the parts that the rows of a split count: its own, or those of train it was taken from."""
    return parts.get(split, {}).get(task) or parts["train"][task]


def _keep_all(parts: CleanedSplits, space: Workspace) -> dict[str, FilterReport]:
    for split, tasks in parts.items():
        for task, pairs in tasks.items():
            rows = np.ones(len(pairs), dtype=bool) if split == "train" else np.arange(len(pairs))
            _save(space, split, task, rows)
    return {task: FilterReport() for task in parts["train"]}


def _split(
    config: DataConfig, inputs: Inputs, parts: CleanedSplits, space: Workspace
) -> dict[str, FilterReport]:
    reports = {
        task: _drop_repeated(config.clean.near_duplicates, task, pairs, space)
        for task, pairs in parts["train"].items()
    }
    candidates = {task: split_rows(space, "train", task) for task in parts["train"]}
    sets = dev_and_test_sets(config, inputs, parts, candidates)
    held_out = sentence_keys(pairs for tasks in sets.values() for pairs in tasks.values())
    for split, tasks in sets.items():
        for task, pairs_of_task in tasks.items():
            _save(space, split, task, pairs_of_task.rows)
    for task in config.tasks:
        reports[task] += _drop_held_out(task, parts["train"][task], held_out, space)
        if not split_rows(space, "train", task).any():
            raise DataError(f"[data] leaves no training pairs of {task}; make the test sets smaller.")
    return {task: reports[task] for task in config.tasks}


def _drop_repeated(near: bool, task: str, pairs: Parts, space: Workspace) -> FilterReport:
    """Keep the first of equal pairs, and if `near` the first of nearly equal ones."""
    mask, report = np.ones(len(pairs), dtype=bool), FilterReport()
    rules = {DUPLICATE: "pair_key"} | ({NEAR_DUPLICATE: "near_key"} if near else {})
    for name, column in rules.items():
        first = mask & _first_occurrences(pairs, column, space)
        report += _report(name, pairs, mask & ~first)
        mask = first
    _save(space, "train", task, mask)
    return report


def _first_occurrences(pairs: Parts, column: str, space: Workspace) -> Mask:
    """Return where a key occurs for the first time, (pairs,); the keys lie in a file meanwhile."""
    path = space.work / f"{column}.keys"
    with path.open("wb") as file:
        for _, (keys,) in pairs.columns(column):
            file.write(keys.tobytes())
    keys = np.memmap(path, dtype=np.uint64, mode="r") if len(pairs) else np.empty(0, dtype=np.uint64)
    first = first_occurrences(keys)
    path.unlink()
    return first


def _drop_held_out(task: str, pairs: Parts, held_out: Keys, space: Workspace) -> FilterReport:
    before = split_rows(space, "train", task)
    after = np.empty(len(pairs), dtype=bool)
    for rows, (src, tgt) in pairs.columns("src_key", "tgt_key"):
        after[rows] = before[rows] & ~is_held_out(src, tgt, held_out)
    report = _report(HELD_OUT, pairs, before & ~after)
    _save(space, "train", task, after)
    return report


def _report(name: str, pairs: Parts, dropped: Mask) -> FilterReport:
    rows = np.flatnonzero(dropped)
    first = list(pairs.values(rows[:SAMPLES], "src", "tgt"))
    samples = FilterReport.of(name, [src for src, _ in first], [tgt for _, tgt in first]).samples
    return FilterReport(counts={name: len(rows)}, samples=samples)


def _save(space: Workspace, split: str, task: str, rows: NDArray[Any]) -> None:
    with atomic_file(space.split_path(split, task)) as file:
        np.save(file, rows)

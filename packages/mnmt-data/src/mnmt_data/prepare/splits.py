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
from mnmt_data.prepare.clean import AllParts
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.dev_test_sets import Keys, Mask, held_out_sets, sentence_keys
from mnmt_data.prepare.inputs import Inputs
from mnmt_data.prepare.workspace import Parts, Workspace
from mnmt_data.store.atomic_file import atomic_file


def choose(config: DataConfig, inputs: Inputs, parts: AllParts, space: Workspace) -> dict[str, FilterReport]:
    """Write which pairs of every split and task are chosen, for `chosen_rows` to read, unless it is there.

    Training pairs are dropped that occurred before, or that have a sentence, on either side, which a dev or
    test set of any task has, be it a zero-shot one. Made languages drop none: what they repeat, they mean to.

    Returns:
        {task: what was dropped from its training pairs, by which rule}.

    Raises:
        DataError: As `held_out_sets`.
    """
    if (done := space.mark("chosen/done")) is None:
        made = bool(inputs.irreducible)
        reports = _choose_made(parts, space) if made else _choose(config, inputs, parts, space)
        done = {task: report.to_dict() for task, report in reports.items()}
        space.set_mark("chosen/done", done)
    return {task: FilterReport.from_dict(report) for task, report in done.items()}


def chosen_rows(space: Workspace, split: str, task: str) -> NDArray[Any]:
    """The choice for a split: of train, (pairs,) whether each is kept; of others, (rows,) which are."""
    return np.asarray(np.load(space.chosen(split, task), mmap_mode="r"))


def parts_of(parts: AllParts, split: str, task: str) -> Parts:
    """The parts that the chosen rows are rows of: a split's own, or those of train it was carved from."""
    return parts.get(split, {}).get(task) or parts["train"][task]


def _choose_made(parts: AllParts, space: Workspace) -> dict[str, FilterReport]:
    for split, tasks in parts.items():
        for task, pairs in tasks.items():
            rows = np.ones(len(pairs), dtype=bool) if split == "train" else np.arange(len(pairs))
            _save(space, split, task, rows)
    return {task: FilterReport() for task in parts["train"]}


def _choose(config: DataConfig, inputs: Inputs, parts: AllParts, space: Workspace) -> dict[str, FilterReport]:
    reports = {
        task: _drop_repeated(config.clean.near_duplicates, task, pairs, space)
        for task, pairs in parts["train"].items()
    }
    candidates = {task: chosen_rows(space, "train", task) for task in parts["train"]}
    sets = held_out_sets(config, inputs, parts, candidates)
    held_out = sentence_keys(pairs for tasks in sets.values() for pairs in tasks.values())
    for split, tasks in sets.items():
        for task, held in tasks.items():
            _save(space, split, task, held.rows)
    for task in config.tasks:
        reports[task] += _drop_held_out(task, parts["train"][task], held_out, space)
        if not chosen_rows(space, "train", task).any():
            raise DataError(f"[data] leaves no training pairs of {task}; make the test sets smaller.")
    return {task: reports[task] for task in config.tasks}


def _drop_repeated(near: bool, task: str, pairs: Parts, space: Workspace) -> FilterReport:
    """Keep the first of equal pairs, and if `near` of pairs that nearly are."""
    kept, report = np.ones(len(pairs), dtype=bool), FilterReport()
    rules = {DUPLICATE: "pair_key"} | ({NEAR_DUPLICATE: "near_key"} if near else {})
    for name, column in rules.items():
        first = kept & _first(pairs, column, space)
        report += _report(name, pairs, kept & ~first)
        kept = first
    _save(space, "train", task, kept)
    return report


def _first(pairs: Parts, column: str, space: Workspace) -> Mask:
    """(pairs,) where a key occurs for the first time; the keys of all pairs lie in a file meanwhile."""
    path = space.work / f"{column}.keys"
    with path.open("wb") as file:
        for _, (keys,) in pairs.columns(column):
            file.write(keys.tobytes())
    keys = np.memmap(path, dtype=np.uint64, mode="r") if len(pairs) else np.empty(0, dtype=np.uint64)
    first = first_occurrences(keys)
    path.unlink()
    return first


def _drop_held_out(task: str, pairs: Parts, held_out: Keys, space: Workspace) -> FilterReport:
    before = chosen_rows(space, "train", task)
    kept = np.empty(len(pairs), dtype=bool)
    for rows, (src, tgt) in pairs.columns("src_key", "tgt_key"):
        kept[rows] = before[rows] & ~is_held_out(src, tgt, held_out)
    report = _report(HELD_OUT, pairs, before & ~kept)
    _save(space, "train", task, kept)
    return report


def _report(name: str, pairs: Parts, dropped: Mask) -> FilterReport:
    rows = np.flatnonzero(dropped)
    first = list(pairs.values(rows[:SAMPLES], "src", "tgt"))
    shown = FilterReport.of(name, [src for src, _ in first], [tgt for _, tgt in first])
    return FilterReport(counts={name: len(rows)}, samples=shown.samples)


def _save(space: Workspace, split: str, task: str, rows: NDArray[Any]) -> None:
    with atomic_file(space.chosen(split, task)) as file:
        np.save(file, rows)

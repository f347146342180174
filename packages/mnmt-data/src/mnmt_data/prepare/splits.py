"""The second stage: which pairs are trained on, and which make the dev and test sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.filters import DEV_OR_TEST, DUPLICATE, NEAR_DUPLICATE, FilterReport, first_occurrences
from mnmt_data.filters.report import SAMPLES
from mnmt_data.prepare.clean import CleanedSplits
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.dev_test_sets import HeldOutSets, Mask, Rows, dev_and_test_sets
from mnmt_data.prepare.inputs import Inputs
from mnmt_data.prepare.leaks import Leaks, find_leaks
from mnmt_data.prepare.split_report import LEAK, DroppedPairs, SplitReport, loss_warnings, report_lines
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Parts, Workspace
from mnmt_data.store.atomic_file import atomic_file
from mnmt_data.study import structure


def split_pairs(
    config: DataConfig, inputs: Inputs, parts: CleanedSplits, space: Workspace, stages: Stages
) -> SplitReport:
    """Write the rows of each split and task, which `split_rows` reads, unless they are written.

    Repeated training pairs are dropped, and those with a sentence, on either side, of a dev or test set of
    any task, zero-shot tasks included, or with a copy of one by `LeakConfig`. Dev pairs that are such copies
    of test sentences are dropped too. Synthetic languages repeat pairs on purpose and keep all.

    Raises:
        DataError: If there are too few pairs for the sets, or no training pairs are left.
    """
    if (mark := space.mark("splits/done")) is None:
        synthetic = bool(inputs.irreducible)
        report = _keep_all(parts, space) if synthetic else _split(config, inputs, parts, space, stages)
        space.set_mark("splits/done", asdict(report))
    else:
        report = structure(mark, SplitReport, where="splits")
    for line in report_lines(config.leaks, report):
        stages.report(line)
    return report


def split_rows(space: Workspace, split: str, task: str) -> NDArray[Any]:
    """Return the pairs of a split: of train a mask, (pairs,); of other splits the rows, (rows,)."""
    return np.asarray(np.load(space.split_path(split, task), mmap_mode="r"))


def parts_of(parts: CleanedSplits, split: str, task: str) -> Parts:
    """Return the parts that the rows of a split refer to: its own, or train's if it is a sample of train."""
    return parts.get(split, {}).get(task) or parts["train"][task]


def _keep_all(parts: CleanedSplits, space: Workspace) -> SplitReport:
    for split, tasks in parts.items():
        for task, pairs in tasks.items():
            if split == "train":
                _keep_every_row(space, task, pairs)
            else:
                _save(space, split, task, np.arange(len(pairs)))
    return SplitReport(dropped={task: DroppedPairs() for task in parts["train"]})


def _split(
    config: DataConfig, inputs: Inputs, parts: CleanedSplits, space: Workspace, stages: Stages
) -> SplitReport:
    reports = {
        task: _drop_repeated(config.clean.near_duplicates, task, pairs, space)
        for task, pairs in parts["train"].items()
    }
    candidates = {task: split_rows(space, "train", task) for task in parts["train"]}
    trained = {task: pairs for task, pairs in parts["train"].items() if task in config.tasks}
    sets = dev_and_test_sets(config, inputs, parts, candidates)
    for split, tasks in sets.items():
        for task, pairs_of_task in tasks.items():
            _save(space, split, task, pairs_of_task.rows)
    leaks, sentences = find_leaks(config, trained, sets, space, stages)
    dropped = {
        task: _drop_leaks(config, task, pairs, sets, leaks[task], space) for task, pairs in trained.items()
    }
    return SplitReport(
        dropped={
            task: replace(report, filters=reports[task] + report.filters) for task, report in dropped.items()
        },
        dev_copies={task: dev.copies for task, dev in sets["dev"].items() if dev.copies},
        sentences=sentences,
        warnings=tuple(loss_warnings(config.leaks, dropped)),
    )


def _drop_repeated(near: bool, task: str, pairs: Parts, space: Workspace) -> FilterReport:
    """Keep the first of equal pairs, and if `near` the first of nearly equal ones."""
    _keep_every_row(space, task, pairs)
    report = FilterReport()
    rules = {DUPLICATE: "pair_key"} | ({NEAR_DUPLICATE: "near_key"} if near else {})
    for name, column in rules.items():
        report += _drop(name, task, pairs, space, _first_occurrences(pairs, column, space))
    return report


def _first_occurrences(pairs: Parts, column: str, space: Workspace) -> Iterator[Mask]:
    """Yield the mask of first occurrences of keys, part by part; keys and masks are in temporary files."""
    with TemporaryDirectory(dir=space.work) as temporary:
        folder = Path(temporary)
        # Fill the file before it is mapped: writing into a hole on a full disk would kill the process.
        with (folder / "keys").open("wb") as file, (folder / "first").open("wb") as answers:
            for _, (keys,) in pairs.columns(column):
                file.write(keys.tobytes())
                answers.write(bytes(len(keys)))
        if len(pairs):
            keys = np.memmap(folder / "keys", dtype=np.uint64, mode="r")
            first = np.memmap(folder / "first", dtype=np.bool_, mode="r+")
            first_occurrences(keys, out=first, folder=folder)
        yield from (first[rows] if len(pairs) else np.empty(0, dtype=bool) for rows in pairs.slices)


def _drop_leaks(
    config: DataConfig, task: str, pairs: Parts, sets: HeldOutSets, leaks: Leaks, space: Workspace
) -> DroppedPairs:
    """Drop the pairs of the dev and test sets, and copies of their sentences."""
    _check_some_are_left(task, space, remedy="give text that passes [data.clean], or make it laxer")
    report = _drop_rows(DEV_OR_TEST, task, pairs, space, _rows_of_sets(task, pairs, sets))
    candidates = int(np.count_nonzero(split_rows(space, "train", task)))
    counts = leaks.counts(split_rows(space, "train", task)).tolist()
    rules = config.leaks.rules
    for number, rule in enumerate(rules):
        rows = leaks.rows[leaks.first_rules == number]
        report += _drop_rows(f"{LEAK}{rule}", task, pairs, space, rows)
    _check_some_are_left(task, space, remedy="make the test sets smaller or [data.leaks] laxer")
    named = zip(sets, counts, strict=True)
    by_set = {name: dict(zip(rules, numbers, strict=True)) for name, numbers in named}
    return DroppedPairs(filters=report, candidates=candidates, leaks=by_set)


def _check_some_are_left(task: str, space: Workspace, *, remedy: str) -> None:
    if not split_rows(space, "train", task).any():
        raise DataError(f"[data] leaves no training pairs of {task}; {remedy}.")


def _rows_of_sets(task: str, pairs: Parts, sets: HeldOutSets) -> Rows:
    """Return the training pairs that were sampled as dev and test sets of the task, sorted."""
    of_task = [tasks[task].rows for tasks in sets.values() if task in tasks and tasks[task].parts is pairs]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *of_task]))


def _drop_rows(name: str, task: str, pairs: Parts, space: Workspace, rows: Rows) -> FilterReport:
    """Drop training pairs, given by rising rows."""
    return _drop(name, task, pairs, space, (_without(rows, part) for part in pairs.slices))


def _without(rows: Rows, part: slice) -> Mask:
    mask = np.ones(part.stop - part.start, dtype=bool)
    mask[rows[slice(*np.searchsorted(rows, (part.start, part.stop)))] - part.start] = False
    return mask


def _drop(name: str, task: str, pairs: Parts, space: Workspace, masks: Iterable[Mask]) -> FilterReport:
    """Keep the training pairs that are also in a mask, given part by part; report the others."""
    before = split_rows(space, "train", task)
    both = (before[rows] & mask for rows, mask in zip(pairs.slices, masks, strict=True))
    _save_mask(space, task, len(pairs), both)
    after = split_rows(space, "train", task)
    dropped = (rows.start + np.flatnonzero(before[rows] & ~after[rows]) for rows in pairs.slices)
    return _report(name, pairs, dropped)


def _report(name: str, pairs: Parts, dropped: Iterable[Rows]) -> FilterReport:
    count, first = 0, np.empty(0, dtype=np.int64)
    for rows in dropped:
        count += len(rows)
        first = np.concatenate((first, rows[:SAMPLES]))[:SAMPLES]
    texts = list(pairs.values(first, "src", "tgt"))
    samples = FilterReport.of(name, [src for src, _ in texts], [tgt for _, tgt in texts]).samples
    return FilterReport(counts={name: count}, samples=samples)


def _save(space: Workspace, split: str, task: str, rows: Rows) -> None:
    with atomic_file(space.split_path(split, task)) as file:
        np.save(file, rows)


def _keep_every_row(space: Workspace, task: str, pairs: Parts) -> None:
    ones = (np.ones(rows.stop - rows.start, dtype=bool) for rows in pairs.slices)
    _save_mask(space, task, len(pairs), ones)


def _save_mask(space: Workspace, task: str, size: int, blocks: Iterable[Mask]) -> None:
    """Write the mask of the training pairs, (size,), block by block."""
    with atomic_file(space.split_path("train", task)) as file:
        write_array_header_1_0(file, {"descr": "|b1", "fortran_order": False, "shape": (size,)})
        for block in blocks:
            file.write(block.tobytes())

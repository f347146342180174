"""Runs that `mnmt-eval score` scores: one after the other, or several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from mnmt_data.errors import UserError
from mnmt_data.jobs.workers import num_cores
from mnmt_eval.cli.progress import ScoreProgress, print_message
from mnmt_eval.runs import (
    ReferenceText,
    ScoreConfig,
    TextScores,
    TrainedRun,
    open_run,
    read_testsets,
    score_run,
)
from mnmt_eval.translate.workers import ForkedWorkers
from mnmt_model.checkpoints import CHECKPOINTS, find_checkpoints
from mnmt_model.runs import read_run
from mnmt_model.runs.run_record import Status

MEMORY = 2**31
"""Bytes that the models scored at a time on a CPU may have together."""

Result = tuple[Status, list[TextScores]] | Exception
"""A run's status, and its metrics on each test set; or why it cannot be scored."""


def score_all(
    folders: Sequence[Path], config: ScoreConfig, jobs: int, devices: Sequence[str]
) -> Iterator[tuple[Path, TextScores]]:
    """Score finished runs, `jobs` at a time, and yield the metrics of each test set."""
    progress = ScoreProgress(len(folders))
    try:
        yield from (
            _score_here(folders, config, progress)
            if jobs == 1
            else _score_apart(folders, config, progress, jobs, devices)
        )
    finally:
        progress.close()


def _score_here(
    folders: Sequence[Path], config: ScoreConfig, progress: ScoreProgress
) -> Iterator[tuple[Path, TextScores]]:
    """Score one run after the other."""
    for folder in folders:
        progress.start_run(folder.name)
        if (status := read_run(folder).status) != "finished":
            progress.skip(f"is {status}")
            continue
        run, texts = _open(folder, config)
        progress.start_translating(sum(map(len, texts)))
        for scores in score_run(run, texts, config, on_lines=progress.advance, on_export=progress.print):
            progress.report(scores)
            yield folder, scores


def _score_apart(
    folders: Sequence[Path], config: ScoreConfig, progress: ScoreProgress, jobs: int, devices: Sequence[str]
) -> Iterator[tuple[Path, TextScores]]:
    """Score several runs at a time, each in a process."""
    with ForkedWorkers(jobs, partial(_start, config, devices)) as workers:
        progress.count_runs()
        for folder, result in zip(folders, workers.map(folders), strict=True):
            progress.start_run(folder.name)
            if isinstance(result, Exception):
                raise result
            status, results = result
            if status != "finished":
                progress.skip(f"is {status}")
            for scores in results:
                progress.report(scores)
                yield folder, scores
            progress.advance(1)


def _start(config: ScoreConfig, devices: Sequence[str], number: int) -> Callable[[Path], Result]:
    """Return a function that scores a run in the process of this number, which has one core."""
    torch.set_num_threads(1)  # also since OpenMP's threads do not survive a fork
    return partial(_score_run, replace(config, device=devices[number % len(devices)]))


def _score_run(config: ScoreConfig, folder: Path) -> Result:
    """Return a run's status and, if it is finished, its metrics; or the mistake that ends the command."""
    try:
        if (status := read_run(folder).status) != "finished":
            return status, []
        return status, list(score_run(*_open(folder, config), config, on_export=print_message))
    except UserError as error:
        return error


def _open(folder: Path, config: ScoreConfig) -> tuple[TrainedRun, Sequence[ReferenceText]]:
    """Return a run and the test sets to score it on."""
    run = open_run(folder)
    return run, read_testsets(run.data, testsets=config.testsets, max_sentences=config.max_sentences)


def default_jobs(folders: Sequence[Path], devices: Sequence[str]) -> int:
    """Return one process a GPU, or a core; on a CPU one in all where cores would be idle.

    Each of several processes has one core. So there is one process a core if there are enough runs, and
    memory for their models; otherwise one process takes all cores.
    """
    if devices != ("cpu",):
        return max(1, min(len(devices), len(folders)))
    # Others may still be trained, and remove checkpoints meanwhile.
    sizes = [_model_bytes(folder) for folder in folders if read_run(folder).status == "finished"]
    at_a_time, cores = min(len(sizes), MEMORY // max([1, *sizes])), num_cores()
    return cores if at_a_time >= cores else 1


def _model_bytes(folder: Path) -> int:
    """Return the bytes of a finished run's model; 0 if it has lost its checkpoints."""
    newest = find_checkpoints(folder / CHECKPOINTS)[-1:]
    return sum(path.stat().st_size for checkpoint in newest for path in checkpoint.glob("model*.safetensors"))

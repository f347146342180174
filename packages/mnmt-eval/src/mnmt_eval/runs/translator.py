"""Translating with a trained run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mnmt_eval.errors import EvalError
from mnmt_eval.language.codes import languages_of
from mnmt_eval.runs.trained_run import TrainedRun, open_run
from mnmt_eval.search import SearchConfig
from mnmt_eval.translate import BATCH_TOKENS, WINDOW_LINES, Translator
from mnmt_eval.translate.translator import SearchAll
from mnmt_eval.translate.window import Found, Sources
from mnmt_eval.translate.workers import Workers
from mnmt_model.checkpoints import weights_checksum
from mnmt_model.transformer import IncrementalModel


@dataclass(frozen=True, kw_only=True)
class RunTranslator:
    """A trained run that translates."""

    run: TrainedRun
    translator: Translator[Any]

    def target_of(self, pair: str) -> str:
        """The target language of a pair that the run can translate.

        Raises:
            EvalError: If it is no pair, or its source language is in no task of the run's data.
            DataError: If its target language is no task's.
        """
        src, target = languages_of(pair)
        data = self.run.data
        data.vocab.tag(target)
        known = sorted({language for task in data.evaluated for language in languages_of(task)})
        if src not in known:
            raise EvalError(f"{data.folder}: has no task of {src}; its languages are {', '.join(known)}.")
        return target

    @property
    def made_with(self) -> dict[str, Any]:
        """All that decides what a line's translation is, but its pair."""
        loaded = self.run.loaded
        return {
            "run": loaded.record.run,
            "step": loaded.progress.step,
            "weights": weights_checksum(loaded.checkpoint),
            "data": self.run.data.fingerprint,
            "search": self.translator.config.signature,
            "n_best": self.translator.config.n_best,
            "max_source": self.translator.max_source,
        }


def open_translator(
    path: Path,
    *,
    config: SearchConfig,
    max_source: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
    window_lines: int = WINDOW_LINES,
) -> RunTranslator:
    """Load what a run translates with.

    Args:
        path: The run's folder, for its newest checkpoint; or a checkpoint, or an average of some.
        config: How to search.
        max_source: Most tokens of a source; as many as the longest sentence it was trained on by default.
        batch_tokens: Source tokens searched at a time.
        window_lines: Lines read, and sorted by length, before the first is translated.

    Raises:
        RunError: If the run cannot be loaded, or its data have another vocabulary by now.
        DataError: If its data cannot be opened.
        EvalError: If an argument is out of its range.
    """
    run = open_run(path)
    translator = Translator(
        model=run.loaded.model,
        vocab=run.data.vocab,
        config=config,
        max_source=run.max_length if max_source is None else max_source,
        batch_tokens=batch_tokens,
        window_lines=window_lines,
    )
    return RunTranslator(run=run, translator=translator)


@contextmanager
def searching(translator: Translator[Any], *, jobs: int, devices: tuple[str, ...]) -> Iterator[SearchAll]:
    """What searches batches: this process, or several that are forked from it.

    Args:
        translator: What searches one batch, with a model of ours on the CPU.
        jobs: Processes; with more than 1 each has a core.
        devices: Where; the processes take them in turn.
    """
    start = partial(_start, translator, devices)
    if jobs == 1:
        yield partial(map, start(0))
    else:
        with Workers(jobs, partial(_start_alone, start)) as workers:
            yield workers.map


def _start(
    translator: Translator[Any], devices: tuple[str, ...], number: int
) -> Callable[[Sources], list[Found]]:
    device = devices[number % len(devices)]
    model = translator.model
    assert isinstance(model, IncrementalModel)
    model.model.to(device)
    return replace(translator, device=device).search


def _start_alone(
    start: Callable[[int], Callable[[Sources], list[Found]]], number: int
) -> Callable[[Sources], list[Found]]:
    torch.set_num_threads(1)  # also since OpenMP's threads do not survive a fork
    return start(number)


def find_devices(name: str | None) -> tuple[str, ...]:
    """The devices to search on: those named, or every GPU, or the CPU.

    Nothing here initialises CUDA, which a process must not have done before others are forked from it.

    Raises:
        EvalError: If there is no such device.
    """
    count = torch.cuda.device_count()
    every = tuple(f"cuda:{i}" for i in range(count))
    choices: dict[str | None, tuple[str, ...]] = {None: every or ("cpu",), "cpu": ("cpu",)}
    choices |= {"cuda": every} if every else {}
    choices |= {device: (device,) for device in every}
    if name not in choices:
        raise EvalError(f"`device` must be one of {', '.join(filter(None, choices))}, but is {name!r}.")
    return choices[name]

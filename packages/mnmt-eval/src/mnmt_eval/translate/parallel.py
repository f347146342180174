"""Devices, and processes that search batches on them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import torch

from mnmt_eval.errors import EvalError
from mnmt_eval.translate.translator import SearchBatches, Translator
from mnmt_eval.translate.window import CandidateList, Sources
from mnmt_eval.translate.workers import ForkedWorkers

SearchBatch = Callable[[Sources], list[CandidateList]]


def find_devices(name: str | None) -> tuple[str, ...]:
    """Return the named devices, or by default every GPU, or the CPU if there is none.

    This does not initialise CUDA, which a process must not have done before others are forked from it.

    Raises:
        EvalError: If there is no such device.
    """
    count = torch.cuda.device_count()
    gpus = tuple(f"cuda:{i}" for i in range(count))
    choices: dict[str | None, tuple[str, ...]] = {None: gpus or ("cpu",), "cpu": ("cpu",)}
    choices |= {"cuda": gpus} if gpus else {}
    choices |= {device: (device,) for device in gpus}
    if name not in choices:
        raise EvalError(f"`device` must be one of {', '.join(filter(None, choices))}, but is {name!r}.")
    return choices[name]


@contextmanager
def search_in_parallel(
    translator: Translator, *, jobs: int, devices: tuple[str, ...]
) -> Iterator[SearchBatches]:
    """Provide a function that searches batches in this process, or in several that are forked from it.

    Args:
        translator: The translator.
        jobs: The number of processes; with more than 1 each has one core.
        devices: The devices; the processes take them in turn.
    """
    start = partial(_start, translator, devices)
    if jobs == 1:
        yield partial(map, start(0))
    else:
        with ForkedWorkers(jobs, partial(_start_on_one_core, start)) as workers:
            yield workers.map


def _start(translator: Translator, devices: tuple[str, ...], number: int) -> SearchBatch:
    engine = translator.engine.to(devices[number % len(devices)])
    return replace(translator, engine=engine).search


def _start_on_one_core(start: Callable[[int], SearchBatch], number: int) -> SearchBatch:
    torch.set_num_threads(1)  # also since OpenMP's threads do not survive a fork
    return start(number)

"""A trained run that is ready to translate, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of
from mnmt_eval.runs.engines import OnExport, choose_engine, move, print_nothing, start_engine
from mnmt_eval.runs.trained_run import TrainedRun, open_run
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.translate.engine_config import EngineConfig
from mnmt_eval.translate.translator import SearchBatches, Translator
from mnmt_eval.translate.window import WINDOW_LINES, CandidateList, Sources
from mnmt_eval.translate.workers import ForkedWorkers, run_apart
from mnmt_model.checkpoints import weights_checksum


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


SearchBatch = Callable[[Sources], list[CandidateList]]


@dataclass(frozen=True, kw_only=True)
class RunTranslator:
    """A trained run that is ready to translate."""

    run: TrainedRun
    translator: Translator
    config: SearchConfig
    """The options of the search."""
    engine: EngineConfig
    """The engine that was chosen."""

    def target_of(self, task: str) -> str:
        """Return the target language of a task that the run can translate.

        Raises:
            EvalError: If `task` is no language pair, or one of its languages is in no task of the run's data.
            DataError: If its target language is the target of no task.
        """
        src, target = languages_of(task)
        data = self.run.data
        languages = sorted({language for name in data.evaluated for language in languages_of(name)})
        for language in (src, target):
            if language not in languages:
                listed = ", ".join(languages)
                raise EvalError(f"{data.folder}: has no task of {language}; its languages are {listed}.")
        data.vocab.tag(target)
        return target

    @property
    def made_with(self) -> dict[str, Any]:
        """Every setting that changes a line's translation, except for its task."""
        opened = self.run.opened
        return {
            "run": opened.record.run,
            "step": opened.progress.step,
            "weights": weights_checksum(opened.checkpoint),
            "data": self.run.data.fingerprint,
            "engine": str(self.engine),
            "search": self.config.signature,
            "n_best": self.config.n_best,
            "max_source": self.translator.max_source,
        }


def open_translator(
    path: Path,
    *,
    config: SearchConfig,
    engine: EngineConfig = EngineConfig(),  # noqa: B008 - it is frozen
    max_source: int | None = None,
    window_lines: int = WINDOW_LINES,
    device: str = "cpu",
    will_fork: bool = False,
    on_export: OnExport = print_nothing,
) -> RunTranslator:
    """Load a run to translate with.

    Args:
        path: The run's folder, for its newest checkpoint; or a checkpoint, or an average of checkpoints.
        config: The options of the search.
        engine: The engine that searches, see `choose_engine`.
        max_source: The largest number of tokens of a source; by default that of `TrainedRun.max_source`.
        window_lines: The lines that are read, and sorted by length, before the first is translated.
        device: The device that will search.
        will_fork: Whether processes will be forked from this one, which must have no threads then.
        on_export: A function that is called with a message before the run is exported for CTranslate2, and
            if that fails.

    Raises:
        RunError: If the run cannot be loaded or exported, or its data now have another vocabulary.
        DataError: If its data cannot be opened.
        EvalError: If an argument is out of its range, or the engine cannot search so.
    """
    run = open_run(path)
    choose = partial(choose_engine, run.opened, config, engine, device=device, on_export=on_export)
    engine = run_apart(choose) if will_fork and engine.name != "torch" else choose()
    translator = Translator(
        engine=start_engine(run, config, engine),
        vocab=run.data.vocab,
        max_source=run.max_source if max_source is None else max_source,
        window_lines=window_lines,
    )
    return RunTranslator(run=run, translator=translator, config=config, engine=engine)


@contextmanager
def search_in_parallel(
    translator: Translator, *, jobs: int, devices: tuple[str, ...]
) -> Iterator[SearchBatches]:
    """Provide a function that searches batches in this process, or in several that are forked from it.

    Args:
        translator: The translator, with an engine that `start_engine` has made.
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
    engine = move(translator.engine, devices[number % len(devices)])
    return replace(translator, engine=engine).search


def _start_on_one_core(start: Callable[[int], SearchBatch], number: int) -> SearchBatch:
    torch.set_num_threads(1)  # also since OpenMP's threads do not survive a fork
    return start(number)

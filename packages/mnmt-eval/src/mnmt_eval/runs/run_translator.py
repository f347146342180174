"""A trained run that is ready to translate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of
from mnmt_eval.runs.engines import OnExport, choose_engine, print_nothing, start_engine
from mnmt_eval.runs.trained_run import TrainedRun, open_run
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.translate.engine_config import EngineConfig
from mnmt_eval.translate.translator import Translator
from mnmt_eval.translate.window import WINDOW_LINES
from mnmt_eval.translate.workers import run_apart
from mnmt_model.checkpoints import weights_checksum


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

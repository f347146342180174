"""Scoring of trained runs on test sets, with the metrics written into their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from mnmt_data.store import file_lock, read_record, write_record
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.runs.engines import OnExport, choose_engine, print_nothing, start_engine
from mnmt_eval.runs.run_files import (
    SENTENCES,
    SentenceScores,
    StoredTranslations,
    scores_path,
    translations_path,
)
from mnmt_eval.runs.run_scores import latest_evals
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.runs.trained_run import TrainedRun, count_experts
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.text import checksum, read_lines
from mnmt_eval.translate.engine import Engine
from mnmt_eval.translate.engine_config import EngineConfig
from mnmt_eval.translate.translation import Translation
from mnmt_eval.translate.translator import OnLines, translate
from mnmt_model.runs import Eval, append_evals, read_evals


@dataclass(frozen=True, kw_only=True)
class ScoreConfig:
    """The options of scoring runs.

    Raises:
        EvalError: If a field is out of its range.
    """

    testsets: tuple[str, ...] = ()
    """Test sets; all of them if none is named."""
    metrics: MetricSet = field(default_factory=MetricSet)
    search: SearchConfig = field(default_factory=SearchConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    """The engine that searches, see `choose_engine`."""
    max_sentences: int | None = None
    """Sentences of each test set, from its start; all by default."""
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.max_sentences is not None and self.max_sentences < 1:
            raise EvalError(f"`max_sentences` must be at least 1, but is {self.max_sentences}.")
        self.engine.check(self.search)

    def signature(self, run: TrainedRun, engine: EngineConfig) -> str:
        """Return all that changes a metric beyond its signature: `beam:1|…|maxsrc:128|sentences:200`.

        Args:
            run: The run.
            engine: The engine that searches, chosen by `choose_engine`.
        """
        searched_by = "" if engine.name == "torch" else f"|engine:{engine}"
        sentences = "all" if self.max_sentences is None else self.max_sentences
        return f"{self.search.signature}{searched_by}|maxsrc:{run.max_source}|{SENTENCES}:{sentences}"


@dataclass(frozen=True, kw_only=True)
class TextScores:
    """The metrics of one run, task and test set."""

    evals: Sequence[Eval]
    """The measurements, one per metric."""
    computed: int
    """The number of metrics that were computed now."""


def score_run(
    run: TrainedRun,
    texts: Sequence[ReferenceText],
    config: ScoreConfig,
    *,
    on_lines: OnLines = lambda lines: None,
    on_export: OnExport = print_nothing,
) -> Iterator[TextScores]:
    """Score a run on test sets one by one, and append new measurements to its evals.jsonl.

    Statistics in `scores/` of the same step, signature and text are not computed again. If the record has
    another signature since then, they are appended again: the last request counts. Translations go to
    `translations/TESTSET.TASK.txt`, the statistics of each sentence to `scores/TESTSET.TASK.METRIC.npz`, and
    the choices of a mixture's experts to `experts/TESTSET.TASK.npz`. Each file is on the disk before what is
    made from it, so a run killed at any moment loses at most one chunk of sentences.

    Args:
        run: The run.
        texts: The test sets.
        config: The options.
        on_lines: A function that is called after each batch, or at once with all lines that need no
            translating.
        on_export: A function that is called with a message before the run is exported for CTranslate2, and
            if that fails.

    Yields:
        The metrics of a test set, once they are written.

    Raises:
        EvalError: If a metric's extra is missing, the model has diverged, or another process scores the run.
        RunError: If evals.jsonl is broken, or the run cannot be loaded or exported.
    """
    with file_lock(run.folder / ".score.lock", name=run.folder, error=EvalError):
        engine = choose_engine(
            run.opened, config.search, config.engine, device=config.device, on_export=on_export
        )
        start = cache(partial(start_engine, run, config.search, engine, device=config.device))
        search = config.signature(run, engine)
        existing = latest_evals(read_evals(run.folder))
        for text in texts:
            scorer = _TextScorer(run=run, text=text, metrics=config.metrics, search=search, engine=start)
            scores = scorer.score(on_lines)
            append_evals(run.folder, [each for each in scores.evals if each not in existing])
            count_experts(run, text.testset, text.task, device=config.device)
            yield scores


@dataclass(frozen=True, kw_only=True)
class _TextScorer:
    """A run and a test set to score it on."""

    run: TrainedRun
    text: ReferenceText
    metrics: MetricSet
    search: str
    """The signature of the search and of the translated sentences."""
    engine: Callable[[], Engine]
    """Returns the engine, which is started when the first sentence must be translated."""

    def score(self, on_lines: OnLines) -> TextScores:
        """Return the metrics, from the run's folder if it holds them."""
        metrics = self.metrics.make(task=self.text.task, tasks=self.run.data.evaluated)
        statistics = {m.name: stored for m in metrics if (stored := self._read(m)) is not None}
        missing = [m for m in metrics if m.name not in statistics]
        hypotheses = self._translate(on_lines) if missing else []
        if not missing:
            on_lines(len(self.text))
        statistics |= {m.name: self._compute(m, hypotheses) for m in missing}
        evals = [self._eval(m, statistics[m.name]) for m in metrics]
        return TextScores(evals=evals, computed=len(missing))

    def _translate(self, on_lines: OnLines) -> list[str]:
        stored = StoredTranslations(
            folder=self.run.folder, text=self.text, step=self._step, search=self.search
        )

        known: dict[str, Translation] = {}

        def translate_lines(lines: Sequence[str]) -> list[Translation]:
            # An exact test set has each source many times, with every target.
            repeated = self.text.weights is not None
            new = [line for line in dict.fromkeys(lines) if line not in known] if repeated else lines
            translations = translate(
                self.engine(),
                self.run.data.vocab,
                new,
                target=self.text.target,
                max_source=self.run.max_source,
                on_lines=on_lines,
            )
            if not repeated:
                return translations
            on_lines(len(lines) - len(new))
            known.update(zip(new, translations, strict=True))
            return [known[line] for line in lines]

        return stored.get(translate_lines, on_existing=on_lines)

    def _read(self, metric: Metric) -> Floats | None:
        """Return a metric's statistics from `scores/` if they were made with these settings."""
        stored = read_record(self._path(metric), SentenceScores)
        settings = (metric.signature, self._step, self.search, self.text.checksum)
        if stored is None or (stored.metric, stored.step, stored.search, stored.text) != settings:
            return None
        path = translations_path(self.run.folder, self.text.testset, self.text.task)
        if path.is_file() and checksum(read_lines(path)) != stored.translations:
            return None  # or the metrics would not be those of the translations that the folder holds
        return stored.statistics

    def _compute(self, metric: Metric, hypotheses: Sequence[str]) -> Floats:
        """Return a metric's statistics of each sentence, and store them in `scores/`."""
        statistics = metric.sentence_statistics(hypotheses, self.text.references, self.text.src)
        statistics = self.text.weigh(statistics)
        scores = SentenceScores(
            statistics=statistics,
            metric=metric.signature,
            step=self._step,
            search=self.search,
            translations=checksum(hypotheses),
            text=self.text.checksum,
        )
        write_record(self._path(metric), scores)
        return statistics

    def _eval(self, metric: Metric, statistics: Floats) -> Eval:
        return Eval(
            step=self._step,
            tokens=self.run.opened.progress.tokens,
            flops=self.run.opened.progress.flops,
            task=self.text.task,
            testset=self.text.testset,
            metric=metric.name,
            value=metric.corpus(statistics).value,
            signature=f"{metric.signature}|{self.search}",
            annealed=self.run.opened.record.is_annealed(self._step),
        )

    def _path(self, metric: Metric) -> Path:
        return scores_path(self.run.folder, self.text.testset, self.text.task, metric.name)

    @property
    def _step(self) -> int:
        return self.run.opened.progress.step

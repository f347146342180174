"""What to measure of every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mnmt_eval.errors import EvalError
from mnmt_eval.exclusive import hold
from mnmt_eval.metrics import Metric
from mnmt_eval.metrics.metric import Floats
from mnmt_eval.metrics.registry import MetricChoice
from mnmt_eval.runs.run_scores import counting
from mnmt_eval.runs.sentence_scores import SentenceScores, read_scores, scores_path, write_scores
from mnmt_eval.runs.texts import ParallelText
from mnmt_eval.runs.trained_run import TrainedRun
from mnmt_eval.runs.translations import SENTENCES, KeptTranslations, translations_path
from mnmt_eval.search import SearchConfig
from mnmt_eval.text import digest, read_lines
from mnmt_eval.translate import BATCH_TOKENS, OnLines, translate
from mnmt_model.runs import RUN, Eval, append_evals, read_evals


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What to measure of every run.

    Raises:
        EvalError: If a field is out of its range.
    """

    testsets: tuple[str, ...] = ()
    """Test sets; all of them if none is named."""

    metrics: MetricChoice = field(default_factory=MetricChoice)
    """Metrics."""

    search: SearchConfig = field(default_factory=SearchConfig)
    """How to translate."""

    max_source: int | None = None
    """Most tokens of a source; longer ones are translated in parts. By default as many as in training."""

    max_sentences: int | None = None
    """Sentences of each test set, from its start; all by default."""

    batch_tokens: int = BATCH_TOKENS
    """Source tokens translated at a time, padding included."""

    device: str = "cpu"
    """Where to translate."""

    def __post_init__(self) -> None:
        if self.max_sentences is not None and self.max_sentences < 1:
            raise EvalError(f"`max_sentences` must be at least 1, but is {self.max_sentences}.")
        if self.batch_tokens < 1:
            raise EvalError(f"`batch_tokens` must be at least 1, but is {self.batch_tokens}.")

    def signature(self, run: TrainedRun) -> str:
        """All beyond a metric's own signature that changes its value: `beam:1|…|maxsrc:128|sentences:200`."""
        sentences = "all" if self.max_sentences is None else self.max_sentences
        return f"{self.search.signature}|maxsrc:{self.max_source_of(run)}|{SENTENCES}:{sentences}"

    def max_source_of(self, run: TrainedRun) -> int:
        """Most tokens of a source that the run translates in one."""
        return run.max_length if self.max_source is None else self.max_source


@dataclass(frozen=True, kw_only=True)
class TestSetScores:
    """The metrics of one run, task and test set."""

    evals: Sequence[Eval]
    computed: int
    """How many of them were computed now."""


def score_run(
    run: TrainedRun,
    texts: Sequence[ParallelText],
    scoring: Scoring,
    *,
    on_lines: OnLines = lambda lines: None,
) -> Iterator[TestSetScores]:
    """Measure a run on test sets and append what is new to its evals.jsonl, one test set after the other.

    What `scores/` holds already, of the same step, signature and text, is not computed again. Where another
    signature has replaced it in the record since, it is appended once more: the last asked for counts.
    Translations go to `translations/TESTSET.TASK.txt`, what each metric found in each sentence to
    `scores/TESTSET.TASK.METRIC.npz`. Each file is on the disk before what is made from it, so a run killed at
    any moment loses at most the chunk of sentences in hand.

    Args:
        run: The run.
        texts: The test sets.
        scoring: What to measure.
        on_lines: Called after each batch, or at once with all lines that need no translating.

    Yields:
        The metrics of a test set, once they are written.

    Raises:
        EvalError: If a metric's extra is missing, the model has diverged, or another process measures
            the run.
        RunError: If evals.jsonl is broken.
    """
    run.loaded.model.translation_model.to(scoring.device)
    with (run.folder / RUN).open("rb") as record:
        hold(record, str(run.folder))
        there = counting(read_evals(run.folder))
        for text in texts:
            scores = _TestSet(run=run, text=text, scoring=scoring).measure(on_lines)
            append_evals(run.folder, [made for made in scores.evals if made not in there])
            yield scores


@dataclass(frozen=True, kw_only=True)
class _TestSet:
    """A test set of a run, to be measured."""

    run: TrainedRun
    text: ParallelText
    scoring: Scoring

    def measure(self, on_lines: OnLines) -> TestSetScores:
        """The metrics, from the run's folder where it holds them."""
        metrics = self.scoring.metrics.of(
            system=self.run.folder.name,
            testset=self.text.testset,
            task=self.text.task,
            tasks=self.run.data.evaluated,
        )
        kept = {m.name: found for m in metrics if (found := self._read(m)) is not None}
        missing = [m for m in metrics if m.name not in kept]
        hypotheses = self._translate(on_lines) if missing else []
        if not missing:
            on_lines(len(self.text.src))
        kept |= {m.name: self._write(m, hypotheses) for m in missing}
        evals = [self._eval(m, kept[m.name]) for m in metrics]
        return TestSetScores(evals=evals, computed=len(missing))

    def _translate(self, on_lines: OnLines) -> list[str]:
        """Translations, kept in the run's folder."""
        kept = KeptTranslations(folder=self.run.folder, text=self.text, step=self._step, search=self._search)

        def translate_lines(lines: Sequence[str]) -> list[str]:
            translations = translate(
                self.run.loaded.model,
                self.run.data.vocab,
                lines,
                target=self.text.target,
                config=self.scoring.search,
                max_source=self.scoring.max_source_of(self.run),
                batch_tokens=self.scoring.batch_tokens,
                device=self.scoring.device,
                on_lines=on_lines,
            )
            return [translation.text for translation in translations]

        return kept.get(translate_lines, on_kept=on_lines)

    def _read(self, metric: Metric) -> Floats | None:
        """What `scores/` holds of a metric, if it was made with these settings."""
        kept = read_scores(self._path(metric))
        made_with = (metric.signature, self._step, self._search, self.text.digest)
        if kept is None or (kept.metric, kept.step, kept.search, kept.text) != made_with:
            return None
        there = translations_path(self.run.folder, self.text.testset, self.text.task)
        if there.is_file() and digest(read_lines(there)) != kept.translations:
            return None  # or what is measured would not be what is there to be read
        return kept.statistics

    def _write(self, metric: Metric, hypotheses: Sequence[str]) -> Floats:
        """What a metric finds in each sentence, kept in `scores/`."""
        statistics = metric.sentence_statistics(hypotheses, [self.text.references], self.text.src)
        scores = SentenceScores(
            statistics=statistics,
            metric=metric.signature,
            step=self._step,
            search=self._search,
            translations=digest(hypotheses),
            text=self.text.digest,
        )
        write_scores(self._path(metric), scores)
        return statistics

    def _eval(self, metric: Metric, statistics: Floats) -> Eval:
        return Eval(
            step=self._step,
            tokens=self.run.loaded.progress.tokens,
            flops=self.run.loaded.progress.flops,
            task=self.text.task,
            testset=self.text.testset,
            metric=metric.name,
            value=metric.corpus(statistics).value,
            signature=self._signature(metric),
        )

    def _path(self, metric: Metric) -> Path:
        return scores_path(self.run.folder, self.text.testset, self.text.task, metric.name)

    def _signature(self, metric: Metric) -> str:
        return f"{metric.signature}|{self._search}"

    @property
    def _search(self) -> str:
        return self.scoring.signature(self.run)

    @property
    def _step(self) -> int:
        return self.run.loaded.progress.step

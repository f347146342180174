"""Translating with trained runs, and writing the metrics into their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.prepared import Prepared, open_prepared
from mnmt_eval.errors import EvalError
from mnmt_eval.history import EvalHistory
from mnmt_eval.metrics import CorpusMetric, metric
from mnmt_eval.scoring import Scoring
from mnmt_eval.testsets import ParallelText
from mnmt_eval.translate import OnBatch, translate
from mnmt_model import LoadedRun, load_run
from mnmt_model.run_record import Eval, append_evals, read_evals, read_run

TRANSLATIONS = "translations"


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run's newest model with the data it was trained on."""

    folder: Path
    loaded: LoadedRun
    data: Prepared


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The metrics of one run, task and test set."""

    evals: Sequence[Eval]
    computed: int
    """How many of them were computed now."""


def run_status(folder: Path) -> str:
    """`running`, `finished` or `failed`.

    Raises:
        RunError: if there is no readable run record.
    """
    return str(read_run(folder)["status"])


def open_run(folder: Path) -> TrainedRun:
    """Load a run and open its data.

    Raises:
        RunError: if the run cannot be loaded.
        DataError: if its data cannot be opened.
        EvalError: if the vocabulary is not the one it was trained with.
    """
    loaded = load_run(folder)
    data = open_prepared(loaded.data)
    trained_size = loaded.model.model.vocab_size
    if data.vocab.size != trained_size:
        raise EvalError(
            f"{data.folder}: has a vocabulary of {data.vocab.size} pieces, but {folder} was trained with "
            f"{trained_size}; prepare the data as they were then, or train again."
        )
    return TrainedRun(folder=folder, loaded=loaded, data=data)


def score_run(
    run: TrainedRun,
    texts: Sequence[ParallelText],
    scoring: Scoring,
    *,
    on_batch: OnBatch = lambda sentences: None,
) -> Iterator[Measured]:
    """Measure a run on test sets and append what is new to its evals.jsonl, one test set after the other.

    What the record holds already, of the same step and signature, is not computed again; where another
    signature has replaced it since, it is appended once more, so that the last asked for counts. New
    translations go to `translations/TESTSET.TASK.txt`.

    Args:
        run: the run.
        texts: the test sets.
        scoring: what to measure.
        on_batch: called with the number of sentences after each batch, or after a test set measured before.

    Yields:
        The metrics of a test set, once they are written.

    Raises:
        EvalError: if a tokenizer is missing, or the model has diverged.
        RunError: if evals.jsonl is broken.
    """
    history = EvalHistory(read_evals(run.folder))
    for text in texts:
        measured = _measure(run, text, scoring, history, on_batch)
        append_evals(run.folder, [made for made in measured.evals if not history.counts(made)])
        yield measured


def _measure(
    run: TrainedRun, text: ParallelText, scoring: Scoring, history: EvalHistory, on_batch: OnBatch
) -> Measured:
    """The metrics of one test set, from the history where it holds them."""
    metrics = [metric(name, target=text.target) for name in scoring.metrics]
    step = run.loaded.record.step
    known = {
        m.name: history.find(
            step=step, task=text.task, testset=text.testset, metric=m.name, signature=_signature(m, scoring)
        )
        for m in metrics
    }
    missing = [m for m in metrics if known[m.name] is None]
    hypotheses = _translate(run, text, scoring, on_batch) if missing else []
    if not missing:
        on_batch(len(text.src))
    made = [known[m.name] or _compute(run, text, scoring, m, hypotheses) for m in metrics]
    return Measured(evals=made, computed=len(missing))


def _translate(run: TrainedRun, text: ParallelText, scoring: Scoring, on_batch: OnBatch) -> list[str]:
    """Translations of a test set, also written into the run's folder."""
    hypotheses = translate(
        run.loaded.model,
        run.data.vocab,
        text.src,
        target=text.target,
        config=scoring.search,
        batch_sentences=scoring.batch_sentences,
        on_batch=on_batch,
    )
    path = run.folder / TRANSLATIONS / f"{text.testset}.{text.task}.txt"
    path.parent.mkdir(exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8", newline="\n")
    partial.replace(path)
    return hypotheses


def _compute(
    run: TrainedRun, text: ParallelText, scoring: Scoring, metric: CorpusMetric, hypotheses: Sequence[str]
) -> Eval:
    record = run.loaded.record
    return Eval(
        step=record.step,
        tokens=record.tokens,
        flops=record.flops,
        task=text.task,
        testset=text.testset,
        metric=metric.name,
        value=metric.score(hypotheses, text.references).value,
        signature=_signature(metric, scoring),
    )


def _signature(metric: CorpusMetric, scoring: Scoring) -> str:
    return f"{metric.signature}|{scoring.signature}"

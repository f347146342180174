r"""What the two rules by which a beam search stops cost, and what the two engines do with them.

Claim: `--early-stopping filled` takes less time than `exact`, and how much it loses depends on the length
penalty; CTranslate2 has no fast `exact`. Cited in docs/eval/search.md and docs/eval/translating.md.

Sentences of a run's test set are translated by each way; the ways take turns, batch by batch, so that other
work of the machine falls on all of them. Printed are the time on the clock and of the processors, and beside
`native, exact`: the share of sentences with another translation, and the mean and the largest loss of score
(log-probability over the length penalty; not of int8, whose scores are another model's); and chrF.

    pip install './packages/mnmt-model[export]'
    python -m benchmarks.eval.early_stopping --run RUN --task en-de \
        --out benchmarks/results/eval/early_stopping.json

Without `--run`, the model is trained for a few steps on made-up languages.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.measurement import Figures, Names, Out, is_installed, print_table, provenance, write_report
from benchmarks.measurement import run as run_benchmark
from benchmarks.studies import prepare, train_study, write_study
from mnmt_eval import LengthPenalty, SearchConfig, TrainedRun, metric, open_run
from mnmt_eval.runs.trained_run import start_engine
from mnmt_eval.translate import Engine, EngineConfig
from mnmt_eval.translate.engine import ScoredTokens
from mnmt_eval.translate.window import Sources, make_batches

EXACT = "native, exact"
WAYS = {
    EXACT: ("exact", EngineConfig()),
    "native, filled": ("filled", EngineConfig()),
}


@dataclass(frozen=True, kw_only=True)
class Text:
    """Sources of a test set in batches, and their references."""

    batches: Sequence[Sources]
    references: Sequence[str]


def main(
    *,
    run: Path | None = None,
    task: str = "xx-aa",
    sentences: int = 400,
    batch_tokens: int = 4096,
    beam: int = 4,
    penalties: Names = ("gnmt-0.6", "power-0.6", "power-1"),
    threads: int = 1,
    ctranslate2: bool = True,
    out: Out = None,
) -> None:
    """Print a table for every length penalty.

    Args:
        run: Folder of a trained run.
        task: Task of the run whose test sources are translated.
        sentences: Number of sentences, spread over the test set.
        batch_tokens: Source tokens searched at a time.
        beam: Number of hypotheses.
        penalties: Length penalties, kind and alpha.
        threads: Threads of each way.
        ctranslate2: Whether to compare CTranslate2, which knows `power` alone.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    with TemporaryDirectory() as scratch:
        trained = open_run(train_tiny(Path(scratch)) if run is None else run)
        text = read_text(trained, task, sentences, batch_tokens)
        tables = {}
        for penalty in penalties:
            exported = ctranslate2 and penalty.startswith("power") and is_installed("ctranslate2")
            tables[penalty] = measure(trained, text, task, beam, penalty, exported=exported)
            print(f"\n### {penalty}\n")
            print_table([{"way": way, **row} for way, row in tables[penalty].items()])
    options = {"task": task, "beam": beam, "threads": threads, "batch_tokens": batch_tokens}
    model = {"run": trained.opened.record.run, "step": trained.opened.progress.step}
    packages = ("mnmt-model", "mnmt-eval", "torch", "ctranslate2")
    figures = {
        "options": options,
        "model": model,
        "sentences": len(text.references),
        "penalties": tables,
    }
    write_report(out, "rules by which a beam search stops", figures, provenance(*packages))


def train_tiny(folder: Path) -> Path:
    """Train a small model for a few steps; return its run."""
    data = "train_sentences = 2000\ndev_sentences = 20\ntest_sentences = 40"
    train = "steps = 20\nbatch_tokens = 400\nlog_every = 10\ncheckpoint_every = 20"
    study = write_study(folder / "tiny.toml", widths=[16], data=data, train=train)
    prepare(study, folder)
    (run,) = train_study(study, folder).iterdir()
    return run


def read_text(run: TrainedRun, task: str, sentences: int, batch_tokens: int) -> Text:
    """Return test sentences of a task."""
    shard = run.data.shard("test", task)
    rows = np.unique(np.linspace(0, len(shard) - 1, min(sentences, len(shard))).astype(np.int64))
    src, _ = shard.gather(rows)
    batches = make_batches(src.lengths, batch_tokens=batch_tokens)
    _, references = run.data.text("test", task)
    order = np.concatenate(batches)
    return Text(
        batches=[src.padded(batch, pad=0).astype(np.int64) for batch in batches],
        references=[references[row] for row in rows[order]],
    )


def make_engines(run: TrainedRun, beam: int, penalty: str, *, exported: bool) -> dict[str, Engine]:
    """Return the ways to translate."""
    kind, _, alpha = penalty.partition("-")
    ways = dict(WAYS)
    if exported:
        float32, int8 = EngineConfig(name="ctranslate2"), EngineConfig(name="ctranslate2", compute="int8")
        ways |= {
            "ctranslate2, exact": ("exact", float32),
            "ctranslate2, filled": ("filled", float32),
            "ctranslate2 int8, filled": ("filled", int8),
        }
    engines = {}
    for way, (rule, engine) in ways.items():
        length_penalty = LengthPenalty(kind="power" if kind == "power" else "gnmt", alpha=float(alpha))
        config = SearchConfig(
            beam=beam,
            length_penalty=length_penalty,
            early_stopping="exact" if rule == "exact" else "filled",
        )
        engines[way] = start_engine(run, config, engine)
    return engines


def measure(
    run: TrainedRun, text: Text, task: str, beam: int, penalty: str, *, exported: bool
) -> dict[str, Figures]:
    """Return the figures of each way."""
    engines = make_engines(run, beam, penalty, exported=exported)
    for engine in engines.values():
        engine.search(text.batches[-1][:1])  # loads the model
    best: dict[str, list[ScoredTokens]] = {way: [] for way in engines}
    seconds = {way: np.zeros(2) for way in engines}
    for batch in text.batches:
        for way, engine in engines.items():
            start = np.array([time.perf_counter(), time.process_time()])
            best[way] += [n_best[0] for n_best in engine.search(batch)]
            seconds[way] += np.array([time.perf_counter(), time.process_time()]) - start
    chrf = metric("chrf", target=task.partition("-")[2])
    decode = run.data.vocab.decode
    return {
        way: way_figures(outputs, best[EXACT], seconds[way], is_comparable="int8" not in way)
        | {"chrF": round(chrf.score([decode(each.tokens) for each in outputs], [text.references]).value, 2)}
        for way, outputs in best.items()
    }


def way_figures(
    outputs: Sequence[ScoredTokens],
    exact: Sequence[ScoredTokens],
    seconds: np.ndarray,
    *,
    is_comparable: bool,
) -> Figures:
    """Return time, and what differs from exact search."""
    lost = [one.score - other.score for one, other in zip(exact, outputs, strict=True)]
    return {
        "seconds": round(float(seconds[0]), 1),
        "processor_seconds": round(float(seconds[1]), 1),
        "other_translation": round(
            fmean(
                tuple(one.tokens) != tuple(other.tokens) for one, other in zip(exact, outputs, strict=True)
            ),
            4,
        ),
        "mean_score": round(fmean(each.score for each in outputs), 4) if is_comparable else None,
        "mean_score_lost": round(fmean(lost), 5) if is_comparable else None,
        "largest_loss": round(max(lost), 4) if is_comparable else None,
    }


if __name__ == "__main__":
    run_benchmark(main, smoke={"sentences": 20, "beam": 2, "penalties": ("gnmt-0.6", "power-1")})

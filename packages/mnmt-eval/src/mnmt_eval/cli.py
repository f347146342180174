"""The command line `mnmt-eval`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn

from cyclopts import App, Parameter, Token

from mnmt_data.console import run_app
from mnmt_data.errors import DataError
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics import METRICS
from mnmt_eval.progress import ScoreProgress
from mnmt_eval.runs import Measured, open_run, run_status, score_run
from mnmt_eval.scoring import Scoring
from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig
from mnmt_eval.testsets import read_testsets, target_of
from mnmt_eval.translate import BATCH_SENTENCES, BUFFER_SENTENCES, translate_stream
from mnmt_model.errors import RunError
from mnmt_model.run_record import find_runs

app = App(
    name="mnmt-eval",
    help="Translate with trained runs, and measure their BLEU and chrF.",
    version=version("mnmt-eval"),
)

_DEFAULT_PENALTY = LengthPenalty()
_DEFAULT_LENGTH = MaxLength()


def _split_at_commas(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(name for token in tokens for name in token.value.split(","))


Names = Annotated[tuple[str, ...], Parameter(converter=_split_at_commas, negative="")]


@app.command
def score(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    testset: Names = (),
    metrics: Names = METRICS,
    beam: int = 1,
    length_penalty: LengthPenalty = _DEFAULT_PENALTY,
    max_length: MaxLength = _DEFAULT_LENGTH,
    max_sentences: int | None = None,
    batch_sentences: int = BATCH_SENTENCES,
    as_json: Annotated[bool, Parameter("--json", negative="")] = False,
) -> None:
    """Measure every finished run on its test sets and append the metrics to its evals.jsonl.

    What is there already, made with the same options, is not computed again.

    Args:
        runs: runs, or folders of runs.
        testset: test sets, as `test` or `test,debian`; all by default.
        metrics: `bleu`, `chrf` or both.
        beam: hypotheses kept at a time; 1 is greedy search.
        length_penalty: how hypotheses of different lengths are compared.
        max_length: where translations are cut off.
        max_sentences: sentences of each test set, from its start; all by default.
        batch_sentences: sentences translated at a time.
        as_json: print the metrics as JSON.
    """
    scoring = Scoring(
        testsets=testset,
        metrics=metrics,
        search=SearchConfig(beam=beam, length_penalty=length_penalty, max_length=max_length),
        max_sentences=max_sentences,
        batch_sentences=batch_sentences,
    )
    rows, computed = [], 0
    for folder, measured in _score_finished(find_runs(runs), scoring):
        rows += [{"run": folder.name, **asdict(made)} for made in measured.evals]
        computed += measured.computed
    if as_json:
        print(json.dumps({"evals": rows}, ensure_ascii=False))
    else:
        print(f"scored: {computed} metrics computed, {len(rows) - computed} there before")


@app.command
def translate(
    *,
    run: Path,
    pair: str,
    beam: int = 4,
    length_penalty: LengthPenalty = _DEFAULT_PENALTY,
    max_length: MaxLength = _DEFAULT_LENGTH,
    batch_sentences: int = BATCH_SENTENCES,
    buffer_sentences: int = BUFFER_SENTENCES,
) -> None:
    """Translate stdin to stdout, a sentence a line, with a run's newest model.

    Args:
        run: its folder, for the newest checkpoint; or a checkpoint of it, or an average of some.
        pair: the language pair, such as `en-de`.
        beam: hypotheses kept at a time; 1 is greedy search.
        length_penalty: how hypotheses of different lengths are compared.
        max_length: where translations are cut off.
        batch_sentences: sentences translated at a time.
        buffer_sentences: lines read, and sorted by length, before the first is translated; 1 answers at once.
    """
    config = SearchConfig(beam=beam, length_penalty=length_penalty, max_length=max_length)
    target = target_of(pair)
    trained = open_run(run)
    translations = translate_stream(
        trained.loaded.model,
        trained.data.vocab,
        _read_lines(sys.stdin.buffer),
        target=target,
        config=config,
        batch_sentences=batch_sentences,
        buffer_sentences=buffer_sentences,
    )
    _write_lines(sys.stdout.buffer, translations)


def main() -> NoReturn:
    """Run the command line."""
    run_app(app, prog="mnmt-eval", errors=(EvalError, RunError, DataError))


def _score_finished(folders: Sequence[Path], scoring: Scoring) -> Iterator[tuple[Path, Measured]]:
    progress = ScoreProgress(len(folders))
    try:
        for folder in folders:
            progress.begin(folder.name)
            if (status := run_status(folder)) != "finished":
                progress.skip(f"is {status}")
                continue
            run = open_run(folder)
            texts = read_testsets(run.data, testsets=scoring.testsets, max_sentences=scoring.max_sentences)
            progress.expect(sum(len(text.src) for text in texts))
            for measured in score_run(run, texts, scoring, on_batch=progress.advance):
                progress.measured(measured)
                yield folder, measured
    finally:
        progress.close()


def _read_lines(stream: BinaryIO) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise EvalError(f"stdin:{number}: not valid UTF-8; convert the text to UTF-8.") from None


def _write_lines(stream: BinaryIO, lines: Iterable[str]) -> None:
    for line in lines:
        stream.write(line.encode("utf-8") + b"\n")
        stream.flush()

"""`mnmt-eval score`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import NO_FLAGS, Json, MetricFlags, Names, SearchOptions, app
from mnmt_eval.cli.progress import ScoreProgress
from mnmt_eval.runs.score import Scoring, TestSetScores, score_run
from mnmt_eval.runs.texts import read_testsets
from mnmt_eval.runs.trained_run import open_run, run_status
from mnmt_eval.runs.translator import find_devices
from mnmt_eval.translate import BATCH_TOKENS
from mnmt_model.runs import find_runs

_DEFAULT_SEARCH = SearchOptions()


@app.command
def score(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    testset: Names = (),
    metric: MetricFlags = NO_FLAGS,
    search: Annotated[SearchOptions, Parameter("*")] = _DEFAULT_SEARCH,
    max_sentences: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
    device: str | None = None,
    as_json: Json = False,
) -> None:
    """Measure every finished run on its test sets and append the metrics to its evals.jsonl.

    What is there already, made with the same options, is not computed again.

    Args:
        runs: Runs, or folders of runs.
        testset: Test sets, as `test` or `test,debian`; all by default.
        metric: Metrics and their options.
        search: How to search.
        max_sentences: Sentences of each test set, from its start; all by default.
        batch_tokens: Source tokens translated at a time, padding included.
        device: `cpu`, `cuda` or `cuda:0`, …; the first GPU, or the CPU, by default.
        as_json: Print the metrics as JSON.
    """
    scoring = Scoring(
        testsets=testset,
        metrics=metric.choice,
        search=search.config,
        max_source=search.max_source,
        max_sentences=max_sentences,
        batch_tokens=batch_tokens,
        device=find_devices(device)[0],
    )
    rows, computed = [], 0
    for folder, measured in _score_finished(find_runs(runs), scoring):
        rows += [{"run": folder.name, **asdict(made)} for made in measured.evals]
        computed += measured.computed
    if as_json:
        print(json.dumps({"evals": rows}, ensure_ascii=False))
    else:
        print(f"scored: {computed} metrics computed, {len(rows) - computed} there before")


def _score_finished(folders: Sequence[Path], scoring: Scoring) -> Iterator[tuple[Path, TestSetScores]]:
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
            for measured in score_run(run, texts, scoring, on_lines=progress.advance):
                progress.measured(measured)
                yield folder, measured
    finally:
        progress.close()

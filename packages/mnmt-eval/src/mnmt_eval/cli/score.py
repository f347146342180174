"""`mnmt-eval score`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_eval.cli.options import DEFAULT_METRIC_FLAGS, Json, MetricFlags, Names
from mnmt_eval.cli.progress import ScoreProgress
from mnmt_eval.cli.search_options import SearchFlags
from mnmt_eval.runs.score import ScoreConfig, TextScores, score_run
from mnmt_eval.runs.texts import read_testsets
from mnmt_eval.runs.trained_run import find_devices, open_run
from mnmt_eval.translate.window import BATCH_TOKENS
from mnmt_model.runs import find_runs, read_run

_DEFAULT_SEARCH = SearchFlags()


def score(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    testset: Names = (),
    metrics: MetricFlags = DEFAULT_METRIC_FLAGS,
    search: Annotated[SearchFlags, Parameter("*")] = _DEFAULT_SEARCH,
    max_sentences: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
    device: str | None = None,
    as_json: Json = False,
) -> None:
    """Score every finished run on its test sets, and append the metrics to its evals.jsonl.

    Args:
        runs: Runs, or folders of runs. Metrics that were computed before with the same options are not
            computed again.
        testset: Test sets, as `test` or `test,debian`; all by default.
        metrics: Metrics and their options.
        search: Options of the search.
        max_sentences: Sentences of each test set, from its start; all by default.
        batch_tokens: Source tokens translated at a time, padding included.
        device: `cpu`, `cuda` or `cuda:0`, …; by default the first GPU, or the CPU if there is none.
        as_json: Print the metrics as JSON.
    """
    config = ScoreConfig(
        testsets=testset,
        metrics=metrics.metric_set,
        search=search.config,
        max_source=search.max_source,
        max_sentences=max_sentences,
        batch_tokens=batch_tokens,
        device=find_devices(device)[0],
    )
    rows, computed = [], 0
    for folder, scores in _score_finished(find_runs(runs), config):
        rows += [{"run": folder.name, **asdict(each)} for each in scores.evals]
        computed += scores.computed
    if as_json:
        print(json.dumps({"evals": rows}, ensure_ascii=False))
    else:
        print(f"scored: {computed} metrics computed, {len(rows) - computed} there before")


def _score_finished(folders: Sequence[Path], config: ScoreConfig) -> Iterator[tuple[Path, TextScores]]:
    progress = ScoreProgress(len(folders))
    try:
        for folder in folders:
            progress.start_run(folder.name)
            if (status := read_run(folder).status) != "finished":
                progress.skip(f"is {status}")
                continue
            run = open_run(folder)
            texts = read_testsets(run.data, testsets=config.testsets, max_sentences=config.max_sentences)
            progress.start_translating(sum(map(len, texts)))
            for scores in score_run(run, texts, config, on_lines=progress.advance):
                progress.report(scores)
                yield folder, scores
    finally:
        progress.close()

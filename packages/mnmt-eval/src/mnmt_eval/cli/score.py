"""`mnmt-eval score`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_data.cli.console import Jobs
from mnmt_eval.cli.options import DEFAULT_METRIC_FLAGS, Json, MetricFlags, Names
from mnmt_eval.cli.search_options import SearchFlags
from mnmt_eval.errors import require_runs

_DEFAULT_SEARCH = SearchFlags()


def score(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    testset: Names = (),
    metrics: MetricFlags = DEFAULT_METRIC_FLAGS,
    search: Annotated[SearchFlags, Parameter("*")] = _DEFAULT_SEARCH,
    max_sentences: int | None = None,
    device: str | None = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Score every finished run on its test sets, and append the metrics to its evals.jsonl.

    Args:
        runs: Runs, or folders of runs. Metrics that were computed before with the same options are not
            computed again.
        testset: Test sets, as `test` or `test,debian`; all by default. Pairs of exact ones count by their
            weights.
        metrics: Metrics and their options.
        search: Options of the search.
        max_sentences: Sentences of each test set, from its start; all by default.
        device: `cpu`, `cuda` or `cuda:0`, …; by default the first GPU, or the CPU if there is none.
        jobs: Runs that are scored at a time, each in a process with one core; by default one a GPU, or one a
            core if there are enough runs, and memory for them. A single process has all cores.
        as_json: Print the metrics as JSON.
    """
    require_runs("score")
    from mnmt_eval.cli.score_jobs import default_jobs, score_all
    from mnmt_eval.runs import ScoreConfig
    from mnmt_eval.translate.parallel import find_devices
    from mnmt_model.runs import find_runs

    devices = find_devices(device)
    config = ScoreConfig(
        testsets=testset,
        metrics=metrics.metric_set,
        search=search.config,
        engine=search.engine_config,
        max_sentences=max_sentences,
        device=devices[0],
    )
    folders = find_runs(runs)
    rows, computed = [], 0
    for folder, scores in score_all(folders, config, jobs or default_jobs(folders, devices), devices):
        rows += [{"run": folder.name, **asdict(each)} for each in scores.evals]
        computed += scores.computed
    if as_json:
        print(json.dumps({"evals": rows}, ensure_ascii=False))
    else:
        print(f"scored: {computed} metrics computed, {len(rows) - computed} there before")

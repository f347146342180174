"""`mnmt-eval analyse`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from mnmt_eval.analysis.multilingual import Resources
from mnmt_eval.analysis.run_analysis import Analysing, analyse_runs
from mnmt_eval.cli.options import Json, app
from mnmt_eval.cli.tables import analyses_table
from mnmt_eval.compare.systems import name_systems
from mnmt_eval.errors import EvalError
from mnmt_eval.runs.run_scores import RunScores, read_run_scores


@app.command
def analyse(
    runs: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    baselines: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    testset: str = "test",
    metric: str = "bleu",
    cost: str = "flops",
    high: int = Resources.high,
    low: int = Resources.low,
    as_json: Json = False,
) -> None:
    """Print what scored runs say together: by resource, zero-shot, transfer, cost, and against the loss.

    Args:
        runs: Runs, or folders of runs; `NAME=RUN` gives one a name.
        baselines: Runs to measure transfer and gains from, such as bilingual ones, one a task.
        testset: The test set.
        metric: The metric, as `mnmt-eval score` has measured it.
        cost: What quality is set against, training `flops` or `seconds`.
        high: Tasks with more training pairs than these are High.
        low: Tasks with fewer training pairs than these are Low; all others are Med.
        as_json: Print the analyses as JSON.
    """
    try:
        resources = Resources(high=high, low=low)
    except ValueError as error:
        raise EvalError(str(error)) from None
    analysing = Analysing(testset=testset, metric=metric, cost=cost, resources=resources)
    analyses = analyse_runs(_read(runs), analysing, baselines=_read(baselines or []))
    if as_json:
        print(json.dumps(asdict(analyses), ensure_ascii=False))
    else:
        print(analyses_table(analyses))


def _read(arguments: list[str]) -> list[RunScores]:
    return [read_run_scores(system.path, name=system.name) for system in name_systems(arguments)]

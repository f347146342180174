"""`mnmt-eval analyse`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mnmt_eval.analysis.multilingual import Resources
from mnmt_eval.cli.options import Json, Systems
from mnmt_eval.errors import EvalError, require_runs

if TYPE_CHECKING:
    from mnmt_eval.runs import RunScores


def analyse(
    runs: Systems,
    /,
    *,
    baseline: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    testset: str = "test",
    metric: str = "bleu",
    cost: str = "flops",
    high: int = Resources.high,
    low: int = Resources.low,
    as_json: Json = False,
) -> None:
    """Analyse scored runs: by resource, zero-shot translation, transfer, quality against cost.

    Args:
        runs: Runs, or folders of runs; `NAME=RUN` gives one a name.
        baseline: Runs to compare with, such as bilingual ones, one per task.
        testset: The test set.
        metric: A metric that `mnmt-eval score` has computed.
        cost: The cost that quality is compared with, training `flops` or `seconds`.
        high: Training pairs above which a task is High.
        low: Training pairs below which a task is Low; all other tasks are Med.
        as_json: Print the analyses as JSON.
    """
    require_runs("analyse")
    from mnmt_eval.analysis.run_analysis import AnalysisConfig, analyse_runs
    from mnmt_eval.cli.tables import analyses_table

    resources = Resources(high=high, low=low)
    config = AnalysisConfig(testset=testset, metric=metric, cost=cost, resources=resources)
    analyses = analyse_runs(_read(runs), config, baselines=_read(baseline or []))
    if as_json:
        print(json.dumps(asdict(analyses), ensure_ascii=False))
    else:
        print(analyses_table(analyses))


def _read(arguments: list[str]) -> list[RunScores]:
    from mnmt_eval.compare import name_systems
    from mnmt_eval.runs import read_run_scores

    systems = name_systems(arguments)
    if file := next((system.path for system in systems if not system.is_run), None):
        raise EvalError(f"{file}: is no run; name a folder that holds run.json, or a folder of such folders.")
    return [read_run_scores(system.path, name=system.name) for system in systems]

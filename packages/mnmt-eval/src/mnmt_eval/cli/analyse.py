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
    from mnmt_eval.compare import System
    from mnmt_eval.runs import RunScores


def analyse(
    runs: Systems,
    /,
    *,
    baseline: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    testset: str = "test",
    metric: str = "bleu",
    high: int = Resources.high,
    low: int = Resources.low,
    as_json: Json = False,
) -> None:
    """Analyse scored runs: by resource, zero-shot, transfer, quality against cost, use of experts.

    For a mixture of experts, each layer's specialisation is printed, and the experts of each task in the
    layer whose experts tell most about the task.

    Args:
        runs: Runs, or folders of runs; `NAME=RUN` gives one a name.
        baseline: Runs to compare with, such as bilingual ones, one per task.
        testset: The test set.
        metric: A metric that `mnmt-eval score` has computed.
        high: Training pairs above which a task is High.
        low: Training pairs below which a task is Low; all other tasks are Med.
        as_json: Print the analyses as JSON.
    """
    require_runs("analyse")
    from mnmt_eval.analysis.experts import read_expert_use
    from mnmt_eval.analysis.run_analysis import AnalysisConfig, analyse_runs
    from mnmt_eval.cli.analysis_tables import analyses_table, experts_table

    resources = Resources(high=high, low=low)
    config = AnalysisConfig(testset=testset, metric=metric, resources=resources)
    systems = _runs(runs)
    analyses = analyse_runs(_read(systems), config, baselines=_read(_runs(baseline or [])))
    uses = [read_expert_use(each.path, testset, name=each.name) for each in systems]
    experts = [use for use in uses if use is not None]
    if as_json:
        content = {**asdict(analyses), "experts": [asdict(use) for use in experts]}
        print(json.dumps(content, ensure_ascii=False))
    else:
        print("\n\n".join([analyses_table(analyses), *map(experts_table, experts)]))


def _runs(arguments: list[str]) -> list[System]:
    from mnmt_eval.compare import name_systems

    systems = name_systems(arguments)
    if file := next((system.path for system in systems if not system.is_run), None):
        raise EvalError(f"{file}: is no run; name a folder that holds run.json, or a folder of such folders.")
    return systems


def _read(systems: list[System]) -> list[RunScores]:
    from mnmt_eval.runs import read_run_scores

    return [read_run_scores(system.path, name=system.name) for system in systems]

"""The papers' analyses of runs that are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mnmt_eval.analysis.correlation import MetricLine, metric_line
from mnmt_eval.analysis.cost import QualityAtCost, SystemCost, quality_at_cost
from mnmt_eval.analysis.multilingual import (
    RelativeTransfer,
    Resources,
    ResourceScore,
    ZeroShot,
    relative_transfer,
    resource_scores,
    zero_shot,
)
from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.metric import higher_is_better
from mnmt_eval.runs.run_scores import LANGUAGE, LOSS, RunScores

FEWEST_MODELS = 3
"""A line needs so many."""

COSTS = ("flops", "seconds")
"""What quality can be set against."""


@dataclass(frozen=True, kw_only=True)
class Analysing:
    """What to analyse.

    Raises:
        EvalError: If a field is out of its range.
    """

    testset: str = "test"
    metric: str = "bleu"
    cost: str = "flops"
    """What quality is set against: training `flops` or `seconds`."""

    resources: Resources = field(default_factory=Resources)

    def __post_init__(self) -> None:
        if self.cost not in COSTS:
            raise EvalError(f"`cost` must be {' or '.join(COSTS)}, but is {self.cost!r}.")


@dataclass(frozen=True, kw_only=True)
class RunAnalysis:
    """One run."""

    run: str
    values: Mapping[str, float]
    """{task: metric}, zero-shot tasks included."""

    resources: tuple[ResourceScore, ...]
    """Means of the metric by amount of training data."""

    zero_shot: ZeroShot | None
    transfer: tuple[RelativeTransfer, ...]
    """Against the baselines; empty without them."""

    transfer_by_resource: tuple[ResourceScore, ...]
    """Means of the transfer by amount of training data."""


@dataclass(frozen=True, kw_only=True)
class Analyses:
    """All analyses of some runs."""

    testset: str
    metric: str
    runs: tuple[RunAnalysis, ...]
    cost_unit: str
    cost: tuple[QualityAtCost, ...]
    """Over the tasks that all runs and the baselines have; empty without baselines."""

    against_loss: Mapping[str, MetricLine]
    """{task: the metric against the loss}, of tasks that three runs or more differ in."""

    differing: Mapping[str, tuple[str, ...]]
    """{task: signatures}, of tasks that runs or baselines have measured in more than one way."""


def analyse_runs(
    runs: Sequence[RunScores], analysing: Analysing, *, baselines: Sequence[RunScores] = ()
) -> Analyses:
    """Analyse scored runs.

    Args:
        runs: The runs.
        analysing: What to analyse.
        baselines: Such as bilingual models, one a task.

    Raises:
        EvalError: If a run has no such metric on that test set, or the baselines do not fit the runs.
    """
    values = {run.name: _values(run, analysing) for run in runs}
    baseline = _baseline_values(baselines, analysing)
    return Analyses(
        testset=analysing.testset,
        metric=analysing.metric,
        runs=tuple(_analyse(run, values[run.name], baseline, analysing) for run in runs),
        cost_unit=analysing.cost,
        cost=_cost(runs, values, baseline, analysing) if baselines else (),
        against_loss=_against_loss(runs, values, analysing),
        differing=_differing([*runs, *baselines], analysing),
    )


def _differing(runs: Sequence[RunScores], analysing: Analysing) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for task, signature in run.signatures(analysing.testset, analysing.metric).items():
            found.setdefault(task, {})[signature] = None
    return {task: tuple(signatures) for task, signatures in found.items() if len(signatures) > 1}


def _values(run: RunScores, analysing: Analysing) -> dict[str, float]:
    values = run.values(analysing.testset, analysing.metric)
    if not values:
        raise EvalError(
            f"{run.name}: has no {analysing.metric} on {analysing.testset}; run `mnmt-eval score`."
        )
    return values


def _baseline_values(baselines: Sequence[RunScores], analysing: Analysing) -> dict[str, float]:
    """{task: metric of the baseline that was trained on it}."""
    found: dict[str, tuple[str, float]] = {}
    for run in baselines:
        for task, value in _values(run, analysing).items():
            if task not in run.mixture:
                continue
            if task in found:
                raise EvalError(f"{task} has two baselines, {found[task][0]} and {run.name}; name one.")
            found[task] = run.name, value
    return {task: value for task, (_, value) in found.items()}


def _analyse(
    run: RunScores, values: Mapping[str, float], baseline: Mapping[str, float], analysing: Analysing
) -> RunAnalysis:
    trained = {task: value for task, value in values.items() if task in run.mixture}
    transfer = relative_transfer(values, baseline)
    differences = {made.task: made.difference for made in transfer}
    return RunAnalysis(
        run=run.name,
        values=values,
        resources=resource_scores(trained, run.training_pairs, resources=analysing.resources),
        zero_shot=zero_shot(values, run.values(analysing.testset, LANGUAGE), tasks=run.zero_shot),
        transfer=transfer,
        transfer_by_resource=resource_scores(differences, run.training_pairs, resources=analysing.resources),
    )


def _cost(
    runs: Sequence[RunScores],
    values: Mapping[str, Mapping[str, float]],
    baseline: Mapping[str, float],
    analysing: Analysing,
) -> tuple[QualityAtCost, ...]:
    shared = {task: value for task, value in baseline.items() if all(task in own for own in values.values())}
    if not shared:
        raise EvalError("runs and baselines have no task in common that all of them have measured.")
    systems = [
        SystemCost(name=run.name, values=values[run.name], cost=run.cost(analysing.cost)) for run in runs
    ]
    return quality_at_cost(systems, shared, higher_is_better=higher_is_better(analysing.metric))


def _against_loss(
    runs: Sequence[RunScores], values: Mapping[str, Mapping[str, float]], analysing: Analysing
) -> dict[str, MetricLine]:
    losses = {run.name: run.values(analysing.testset, LOSS) for run in runs}
    tasks = dict.fromkeys(task for own in values.values() for task in own)
    lines = {}
    for task in tasks:
        both = [name for name in values if task in values[name] and task in losses[name]]
        x, y = [losses[name][task] for name in both], [values[name][task] for name in both]
        if len(both) >= FEWEST_MODELS and len(set(x)) > 1 and len(set(y)) > 1:
            lines[task] = metric_line(x, y)
    return lines

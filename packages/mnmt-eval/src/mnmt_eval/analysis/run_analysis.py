"""The papers' analyses of scored runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
from mnmt_eval.language import group_directions
from mnmt_eval.metrics.protocol import higher_is_better
from mnmt_eval.runs.run_scores import LANGUAGE, RunScores


@dataclass(frozen=True, kw_only=True)
class AnalysisConfig:
    """The options of the analyses."""

    testset: str = "test"
    metric: str = "bleu"
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, kw_only=True)
class RunAnalysis:
    """The analyses of one run."""

    run: str
    values: Mapping[str, float]
    """{task: metric}, zero-shot tasks included."""
    resources: tuple[ResourceScore, ...]
    """Means of the metric by amount of training data."""
    resources_by_direction: Mapping[str, tuple[ResourceScore, ...]]
    """{`En→XX`, `XX→En`, `XX→YY`: the same means over the tasks of that direction}."""
    zero_shot: ZeroShot | None
    """The zero-shot tasks; None if the run has none."""
    transfer: tuple[RelativeTransfer, ...]
    """The transfer against the baselines; empty without them."""
    transfer_by_resource: tuple[ResourceScore, ...]
    """Means of the transfer by amount of training data."""


@dataclass(frozen=True, kw_only=True)
class Analyses:
    """All analyses of some runs."""

    testset: str
    metric: str
    runs: tuple[RunAnalysis, ...]
    cost: tuple[QualityAtCost, ...]
    """Quality against training FLOPs over the tasks that all runs and the baselines have; empty without
    baselines."""
    signatures: Mapping[str, Mapping[str, Sequence[str]]]
    """{task: {signature: the runs and baselines that were measured so}}."""
    differing: Sequence[str]
    """The tasks that runs or baselines have measured in more than one way."""


def analyse_runs(
    runs: Sequence[RunScores], config: AnalysisConfig, *, baselines: Sequence[RunScores] = ()
) -> Analyses:
    """Analyse scored runs.

    Args:
        runs: The runs.
        config: The options.
        baselines: Runs to compare with, such as bilingual models, one per task.

    Raises:
        EvalError: If a run has no such metric on that test set, or the baselines do not fit the runs.
    """
    values = {run.name: _values(run, config) for run in runs}
    signatures = _signatures([*runs, *baselines], config)
    baseline = _baseline_values(baselines, config)
    return Analyses(
        testset=config.testset,
        metric=config.metric,
        runs=tuple(_analyse(run, values[run.name], baseline, config) for run in runs),
        cost=_cost(runs, values, baseline, config) if baselines else (),
        signatures=signatures,
        differing=[task for task, ways in signatures.items() if len(set(map(_without_engine, ways))) > 1],
    )


def _signatures(runs: Sequence[RunScores], config: AnalysisConfig) -> dict[str, dict[str, list[str]]]:
    """Return {task: {signature: runs}}."""
    signatures: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for task, signature in run.signatures(config.testset, config.metric).items():
            names = signatures.setdefault(task, {}).setdefault(signature, [])
            names.extend([run.name] * (run.name not in names))
    return signatures


def _without_engine(signature: str) -> str:
    """Return a signature without an engine that finds the translations that torch finds."""
    return re.sub(r"\|engine:ctranslate2-[^|]*-float32(?=\|)", "", signature)


def _values(run: RunScores, config: AnalysisConfig) -> dict[str, float]:
    values = run.values(config.testset, config.metric)
    if not values:
        measured = dict.fromkeys(f"{each.metric} on {each.testset}" for each in run.evals)
        raise EvalError(
            f"{run.name}: has no {config.metric} on {config.testset}; it has {', '.join(measured) or 'none'}"
            "; run `mnmt-eval score` for others."
        )
    return values


def _baseline_values(baselines: Sequence[RunScores], config: AnalysisConfig) -> dict[str, float]:
    """Return {task: metric of the baseline that was trained on it}."""
    values: dict[str, tuple[str, float]] = {}
    for run in baselines:
        for task, value in _values(run, config).items():
            if task not in run.mixture:
                continue
            if task in values:
                raise EvalError(f"{task} has two baselines, {values[task][0]} and {run.name}; name one.")
            values[task] = run.name, value
    return {task: value for task, (_, value) in values.items()}


def _analyse(
    run: RunScores, values: Mapping[str, float], baseline: Mapping[str, float], config: AnalysisConfig
) -> RunAnalysis:
    in_training = {task: value for task, value in values.items() if task in run.mixture}
    transfer = relative_transfer(values, baseline)
    differences = {each.task: each.difference for each in transfer}
    return RunAnalysis(
        run=run.name,
        values=values,
        resources=resource_scores(in_training, run.training_pairs, resources=config.resources),
        resources_by_direction={
            direction: resource_scores(
                {task: in_training[task] for task in tasks}, run.training_pairs, resources=config.resources
            )
            for direction, tasks in group_directions(in_training).items()
        },
        zero_shot=zero_shot(values, run.values(config.testset, LANGUAGE), tasks=run.zero_shot),
        transfer=transfer,
        transfer_by_resource=resource_scores(differences, run.training_pairs, resources=config.resources),
    )


def _cost(
    runs: Sequence[RunScores],
    values: Mapping[str, Mapping[str, float]],
    baseline: Mapping[str, float],
    config: AnalysisConfig,
) -> tuple[QualityAtCost, ...]:
    common = {
        task: value for task, value in baseline.items() if all(task in tasks for tasks in values.values())
    }
    if not common:
        raise EvalError("runs and baselines have no task in common that all of them have measured.")
    systems = [SystemCost(name=run.name, values=values[run.name], cost=run.flops) for run in runs]
    return quality_at_cost(systems, common, higher_is_better=higher_is_better(config.metric))

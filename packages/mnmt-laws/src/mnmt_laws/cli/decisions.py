"""`mnmt-laws frontier`, `recommend` and `design`: from laws to decisions."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from cyclopts import Parameter
from cyclopts.validators import Number

from mnmt_laws.answers.best_mixture import LEAST_WEIGHT
from mnmt_laws.answers.frontier import frontier as predict_frontier
from mnmt_laws.answers.next_runs import design as design_runs
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.answers.recommendation import recommend as recommend_mixture
from mnmt_laws.answers.targets import SmallestSize, TargetMixture, meet_targets, smallest_size
from mnmt_laws.cli.console import print_frame, print_json, warn
from mnmt_laws.cli.options import (
    DEFAULT_FIT,
    DEFAULT_TABLE,
    Figure,
    FitConfig,
    Json,
    Positive,
    TableConfig,
    fit_observations,
    observe_table,
)
from mnmt_laws.errors import TableError
from mnmt_laws.figures.decisions import draw_design, draw_frontier
from mnmt_laws.figures.style import format_size, save
from mnmt_laws.fitting.law_fit import LawFit

CapacityLaw = Literal["capacity", "linear-capacity", "simplex-capacity"]

_PRINTED_POINTS = 13  # about as many points of a frontier are printed as a table


def frontier(
    source: Path | None = None,
    *,
    size: Positive,
    law: CapacityLaw = "capacity",
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Predict the loss of every task over the mixtures, at one size.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; any size.
        law: How the effective size depends on the mixture.
        table: What is analysed.
        fitting: How it is fitted.
        figure: Draw the frontier of two tasks to this `.svg`, `.png` or `.pdf` file.
        as_json: Print JSON only.
    """
    fitted = fit_observations(observe_table(source, table), law, fitting)
    result = predict_frontier(fitted, size=size)
    if figure is not None:
        if len(fitted.tasks) != 2:
            raise TableError(f"--figure draws two tasks, but the table has {len(fitted.tasks)}.")
        save(draw_frontier(fitted, sizes=[size]), figure)
    if as_json:
        names = ("weight", "value", "lower", "upper")
        tasks = {
            task: {name: result[name].sel(task=task).to_numpy() for name in names} for task in fitted.tasks
        }
        efficient = result.efficient.to_numpy().tolist()
        print_json({"size": size, "tasks": tasks, "efficient": efficient, "warnings": fitted.warnings})
        return
    step = max(1, result.sizes["point"] // _PRINTED_POINTS)
    columns = {
        f"{name} {task}": result[name].sel(task=task).to_numpy()[::step]
        for name in ("weight", "value")
        for task in fitted.tasks
    }
    print_frame(pd.DataFrame(columns), dict.fromkeys(columns, "{:.4f}"))
    warn(fitted.warnings)


def recommend(
    source: Path | None = None,
    *,
    size: Positive | None = None,
    prefer: str | None = None,
    targets: str | None = None,
    least_weight: Positive = LEAST_WEIGHT,
    law: CapacityLaw = "capacity",
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    as_json: Json = False,
) -> None:
    """Recommend the weights of the tasks, for a preference or to meet targets.

    With targets and no size, the answer is the smallest size that meets them.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: The number of parameters N; any size.
        prefer: How much each task's loss matters, as in `en-de:2,en-zh:1`. By default all matter equally.
        targets: The loss that each task should reach, as in `en-de:0.9,en-zh:1.2`. Takes the place of a
            preference.
        least_weight: The smallest weight that a task may get.
        law: How the effective size depends on the mixture.
        table: What is analysed.
        fitting: How it is fitted.
        as_json: Print JSON only.
    """
    _check_options(size, prefer, targets)
    observations = observe_table(source, table)
    preference = None if prefer is None else _parse_preference(prefer, observations.tasks)
    losses = {} if targets is None else _parse_numbers(targets, observations.tasks, "--targets")
    fitted = fit_observations(observations, law, fitting)
    answer: Recommendation | TargetMixture | SmallestSize
    if size is None:
        answer = smallest_size(fitted, targets=losses, least_weight=least_weight)
    elif losses:
        answer = meet_targets(fitted, size=size, targets=losses, least_weight=least_weight)
    else:
        answer = recommend_mixture(fitted, size=size, preference=preference, least_weight=least_weight)
    warnings = (*fitted.warnings, *answer.warnings)
    if as_json:
        print_json({**asdict(answer), "warnings": warnings})
        return
    for line in _format_answer(answer, fitted):
        print(line)
    warn(warnings)


def _check_options(size: float | None, prefer: str | None, targets: str | None) -> None:
    if prefer is not None and targets is not None:
        raise TableError("--prefer and --targets are two questions; give one of them.")
    if size is None and targets is None:
        raise TableError("give --size, for the best weights at a size, or --targets, for the smallest size.")


def _parse_numbers(text: str, tasks: list[str], option: str) -> dict[str, float]:
    """Return `en-de:2,en-zh:1` as numbers by task.

    Raises:
        TableError: If it cannot be read or names another task.
    """
    try:
        items = (item.rsplit(":", 1) for item in text.split(","))
        numbers = {task.strip(): float(value) for task, value in items}
    except ValueError:
        numbers = {}
    if not numbers:
        raise TableError(
            f"{option}: must be TASK:NUMBER between commas, as in {_example(tasks)}, but is {text!r}."
        )
    if unknown := [task for task in numbers if task not in tasks]:
        raise TableError(f"{option}: names {unknown[0]!r}; the tasks are {', '.join(tasks)}.")
    return numbers


def _parse_preference(text: str, tasks: list[str]) -> dict[str, float]:
    numbers = _parse_numbers(text, tasks, "--prefer")
    if set(numbers) != set(tasks) or not all(0 < number < math.inf for number in numbers.values()):
        raise TableError(
            f"--prefer: must give each task a number above 0, as in {_example(tasks)}, but is {text!r}."
        )
    return numbers


def _example(tasks: list[str]) -> str:
    return ",".join(f"{task}:1" for task in tasks)


def _format_answer(answer: Recommendation | TargetMixture | SmallestSize, fitted: LawFit) -> list[str]:
    metric, unit = fitted.observations.metric, fitted.observations.unit
    if isinstance(answer, Recommendation):
        return _format_recommendation(answer, metric, unit)
    if isinstance(answer, TargetMixture):
        return _format_target_mixture(answer, metric, unit)
    return _format_smallest_size(answer)


def _format_recommendation(answer: Recommendation, metric: str, unit: str) -> list[str]:
    lines = [
        f"{task}: weight {weight:.3f}{_range(answer.weight_intervals[task], '.3f')}, predicted {metric} "
        f"{answer.predicted[task]:.4f}{_range(answer.predicted_intervals[task], '.4f')} {unit}"
        for task, weight in answer.weights.items()
    ]
    return lines if math.isnan(answer.regret) else [*lines, f"expected regret: {answer.regret:.2g} {unit}"]


def _range(interval: tuple[float, float], pattern: str) -> str:
    low, high = interval
    return "" if math.isnan(low) else f" ({low:{pattern}} to {high:{pattern}})"


def _format_target_mixture(answer: TargetMixture, metric: str, unit: str) -> list[str]:
    lines = []
    for task, weight in answer.weights.items():
        line = f"{task}: weight {weight:.3f}, predicted {metric} {answer.predicted[task]:.4f} {unit}"
        probability = answer.probability.get(task, math.nan)
        if not math.isnan(probability):
            line += f", target {answer.targets[task]:g} met with probability {probability:.0%}"
        lines.append(line)
    if not math.isnan(answer.probability_of_all):
        lines.append(f"all targets: probability {answer.probability_of_all:.0%}")
    return [*lines, answer.reason] if answer.reason else lines


def _format_smallest_size(answer: SmallestSize) -> list[str]:
    if answer.reason:
        return [answer.reason]
    line = f"smallest size: {format_size(answer.size)} parameters"
    if not math.isnan(answer.interval[0]):
        low, high = (format_size(end) if math.isfinite(end) else "∞" for end in answer.interval)
        share = answer.infeasible_share
        infeasible = f"; in {share:.0%} of the refits no size is enough" if share > 0 else ""
        line += f" (95%: {low} to {high}{infeasible})"
    return [line, *(f"{task}: weight {weight:.3f}" for task, weight in answer.weights.items())]


def design(
    source: Path | None = None,
    *,
    quantity: str,
    runs: Annotated[int, Parameter(validator=Number(gte=1))] = 3,
    budget: Positive = math.inf,
    flops_per_parameter: Positive | None = None,
    per: Literal["cost", "run"] = "cost",
    law: CapacityLaw = "capacity",
    table: TableConfig = DEFAULT_TABLE,
    fitting: FitConfig = DEFAULT_FIT,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Propose the runs to train next: those that make a quantity most certain.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        quantity: What should become more certain: `loss:TASK@size=1e9,p=0.3`, `fraction:TASK@p=0.1`,
            `weight:TASK@size=1e9` (the best weight), `limit:TASK`, `exponent:TASK` or
            `size:TASK=0.9,TASK=1.1` (the smallest size that meets targets).
        runs: How many runs to propose.
        budget: The most FLOPs that all of them may cost.
        flops_per_parameter: The cost of a run for each of its parameters. By default it follows from the
            columns `flops` or `tokens` of the table.
        per: Compare runs by the certainty they add for their `cost`, or for each `run` whatever it costs.
        law: How the effective size depends on the mixture.
        table: What is analysed.
        fitting: How it is fitted.
        figure: Draw trained and proposed runs to this `.svg`, `.png` or `.pdf` file.
        as_json: Print JSON only.
    """
    fitted = fit_observations(observe_table(source, table), law, fitting)
    scale = flops_per_parameter
    cost = None if scale is None else lambda size: scale * size
    result = design_runs(fitted, quantity=quantity, runs=runs, cost=cost, budget=budget, per=per)
    if figure is not None:
        save(draw_design(result, fitted.observations, task=fitted.tasks[0]), figure)
    if as_json:
        document = {key: getattr(result, key) for key in ("quantity", "std", "method", "runs", "candidates")}
        print_json({**document, "warnings": fitted.warnings})
        return
    print(f"{result.quantity}: standard deviation now {result.std:.3g}")
    rows = result.runs.assign(size=[format_size(size) for size in result.runs["size"]])
    print_frame(rows, {"cost": "{:.3g}", "total_cost": "{:.3g}", "std": "{:.3g}", "share": "{:.0%}"})
    warn(fitted.warnings)

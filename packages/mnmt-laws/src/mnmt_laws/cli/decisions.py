"""`mnmt-laws frontier`, `recommend` and `design`: from laws to decisions."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from cyclopts import Parameter
from cyclopts.validators import Number

from mnmt_laws.answers.frontier import frontier as predict_frontier
from mnmt_laws.answers.next_runs import design as propose_runs
from mnmt_laws.answers.recommendation import LEAST_WEIGHT, Recommendation
from mnmt_laws.answers.recommendation import recommend as recommend_mixture
from mnmt_laws.answers.targets import SmallestSize, TargetMixture, meet_targets, smallest_size
from mnmt_laws.cli.console import print_frame, print_json, warn
from mnmt_laws.cli.options import (
    DEFAULT_FITTING,
    DEFAULT_READING,
    Figure,
    Fitting,
    Json,
    Reading,
    Size,
    fit_loaded,
    load,
    parse_numbers,
)
from mnmt_laws.errors import TableError
from mnmt_laws.figures.decisions import draw_design, draw_frontier
from mnmt_laws.figures.style import format_size, save
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.tables.mixture import parse_mixture

CapacityLaw = Literal["capacity", "linear-capacity", "simplex-capacity"]
Positive = Annotated[float, Parameter(validator=Number(gt=0))]

_SHOWN = 13  # rows of a frontier that are printed to be read


def frontier(
    source: Path | None = None,
    *,
    size: Size,
    law: CapacityLaw = "capacity",
    reading: Reading = DEFAULT_READING,
    fitting: Fitting = DEFAULT_FITTING,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Predict every task's loss over the mixtures at one size.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: N, parameters; any size.
        law: How effective size depends on the mixture.
        reading: What is analysed.
        fitting: How.
        figure: Draw the frontier of two tasks to this `.svg`, `.png` or `.pdf` file.
        as_json: Print JSON only.
    """
    fitted = fit_loaded(load(source, reading), law, fitting)
    found = predict_frontier(fitted, size=size)
    if figure is not None:
        if len(fitted.tasks) != 2:
            raise TableError(f"--figure draws two tasks, but the table has {len(fitted.tasks)}.")
        save(draw_frontier(fitted, sizes=[size]), figure)
    if as_json:
        names = ("weight", "value", "lower", "upper")
        tasks = {
            task: {name: found[name].sel(task=task).to_numpy() for name in names} for task in fitted.tasks
        }
        efficient = found.efficient.to_numpy().tolist()
        print_json({"size": size, "tasks": tasks, "efficient": efficient, "warnings": fitted.warnings})
        return
    step = max(1, found.sizes["point"] // _SHOWN)
    columns = {
        f"{name} {task}": found[name].sel(task=task).to_numpy()[::step]
        for name in ("weight", "value")
        for task in fitted.tasks
    }
    print_frame(pd.DataFrame(columns), dict.fromkeys(columns, "{:.4f}"))
    warn(fitted.warnings)


def recommend(
    source: Path | None = None,
    *,
    size: Size | None = None,
    prefer: str | None = None,
    targets: str | None = None,
    least_weight: Positive = LEAST_WEIGHT,
    law: CapacityLaw = "capacity",
    reading: Reading = DEFAULT_READING,
    fitting: Fitting = DEFAULT_FITTING,
    as_json: Json = False,
) -> None:
    """Recommend weights for a preference, or to meet targets.

    Targets without a size ask for the smallest size that meets them.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        size: N, parameters; any size.
        prefer: How much each task's loss matters, as `en-de:2,en-zh:1`; equally by default.
        targets: Losses to be reached, as `en-de:0.9,en-zh:1.2`, in place of a preference.
        least_weight: Smallest weight that a task may get.
        law: How effective size depends on the mixture.
        reading: What is analysed.
        fitting: How.
        as_json: Print JSON only.
    """
    _check_question(size, prefer, targets)
    fitted = fit_loaded(load(source, reading), law, fitting)
    if targets is not None:
        wanted = parse_numbers(targets, fitted.tasks, "--targets")
        if size is None:
            _answer(smallest_size(fitted, targets=wanted, least_weight=least_weight), fitted, as_json)
        else:
            _answer(
                meet_targets(fitted, size=size, targets=wanted, least_weight=least_weight), fitted, as_json
            )
    elif size is not None:
        preference = None if prefer is None else _preference(prefer, fitted.tasks)
        advice = recommend_mixture(fitted, size=size, preference=preference, least_weight=least_weight)
        _answer(advice, fitted, as_json)


def _check_question(size: float | None, prefer: str | None, targets: str | None) -> None:
    if prefer is not None and targets is not None:
        raise TableError("--prefer and --targets are two questions; give one of them.")
    if size is None and targets is None:
        raise TableError("give --size, for the best weights at a size, or --targets, for the smallest size.")


def _preference(text: str, tasks: list[str]) -> dict[str, float]:
    numbers = parse_numbers(text, tasks, "--prefer")
    if set(numbers) != set(tasks) or not all(0 < number < math.inf for number in numbers.values()):
        example = ",".join(f"{task}:1" for task in tasks)
        raise TableError(f"--prefer: must give each task a number above 0, as {example}, but is {text!r}.")
    return numbers


def _answer(found: Recommendation | TargetMixture | SmallestSize, fitted: LawFit, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(found), "warnings": (*fitted.warnings, *found.warnings)})
        return
    for line in _lines(found, fitted):
        print(line)
    warn((*fitted.warnings, *found.warnings))


def _lines(found: Recommendation | TargetMixture | SmallestSize, fitted: LawFit) -> list[str]:
    metric, unit = fitted.observations.metric, fitted.observations.unit
    if isinstance(found, Recommendation):
        lines = [
            f"{task}: weight {weight:.3f}{_range(found.weight_intervals[task], '.3f')}, predicted {metric} "
            f"{found.predicted[task]:.4f}{_range(found.predicted_intervals[task], '.4f')} {unit}"
            for task, weight in found.weights.items()
        ]
        return lines if math.isnan(found.regret) else [*lines, f"expected regret: {found.regret:.2g} {unit}"]
    if isinstance(found, TargetMixture):
        chances = {
            task: f"{chance:.0%}" for task, chance in found.probability.items() if not math.isnan(chance)
        }
        lines = [
            f"{task}: weight {weight:.3f}, predicted {metric} {found.predicted[task]:.4f} {unit}"
            + (
                f", target {found.targets[task]:g} met with probability {chances[task]}"
                if task in chances
                else ""
            )
            for task, weight in found.weights.items()
        ]
        together = (
            ""
            if math.isnan(found.probability_of_all)
            else f"all targets: probability {found.probability_of_all:.0%}"
        )
        return [line for line in (*lines, together, found.reason) if line]
    if found.reason:
        return [found.reason]
    share = (
        f"; in {found.infeasible_share:.0%} of the refits no size is enough"
        if found.infeasible_share > 0
        else ""
    )
    ends = tuple(format_size(end) if math.isfinite(end) else "∞" for end in found.interval)
    spread = "" if math.isnan(found.interval[0]) else f" (95%: {ends[0]} to {ends[1]}{share})"
    weights = [f"{task}: weight {weight:.3f}" for task, weight in found.weights.items()]
    return [f"smallest size: {format_size(found.size)} parameters{spread}", *weights]


def _range(interval: tuple[float, float], pattern: str) -> str:
    low, high = interval
    return "" if math.isnan(low) else f" ({low:{pattern}} to {high:{pattern}})"


def design(
    source: Path | None = None,
    *,
    quantity: str,
    runs: Annotated[int, Parameter(validator=Number(gte=1))] = 3,
    budget: Positive = math.inf,
    flops_per_parameter: Positive | None = None,
    per: Literal["cost", "run"] = "cost",
    law: CapacityLaw = "capacity",
    reading: Reading = DEFAULT_READING,
    fitting: Fitting = DEFAULT_FITTING,
    figure: Figure = None,
    as_json: Json = False,
) -> None:
    """Propose the runs to train next: those that most reduce the uncertainty of a quantity.

    Args:
        source: A run table of two tasks or more, or a folder of run records.
        quantity: What should become more certain: `loss:TASK@size=1e9,p=0.3`, `fraction:TASK@p=0.1`,
            `weight:TASK@size=1e9` (the best weight), `limit:TASK`, `exponent:TASK` or
            `size:TASK=0.9,TASK=1.1` (the smallest size that meets targets).
        runs: How many runs to propose.
        budget: FLOPs that they may cost together.
        flops_per_parameter: Cost of a run for each of its parameters; by default as the table's `flops` or
            `tokens` tell.
        per: Choose by what a run tells for its `cost`, or for a `run` whatever it costs.
        law: How effective size depends on the mixture.
        reading: What is analysed.
        fitting: How.
        figure: Draw present and proposed runs to this `.svg`, `.png` or `.pdf` file.
        as_json: Print JSON only.
    """
    fitted = fit_loaded(load(source, reading), law, fitting)
    scale = flops_per_parameter
    cost = None if scale is None else lambda size: scale * size
    found = propose_runs(fitted, quantity=quantity, runs=runs, cost=cost, budget=budget, per=per)
    if figure is not None:
        save(_drawn(found.runs, fitted), figure)
    if as_json:
        document = {key: getattr(found, key) for key in ("quantity", "std", "method", "runs", "candidates")}
        print_json({**document, "warnings": fitted.warnings})
        return
    print(f"{found.quantity}: standard deviation now {found.std:.3g}")
    shown = found.runs.assign(size=[format_size(size) for size in found.runs["size"]])
    print_frame(shown, {"cost": "{:.3g}", "total_cost": "{:.3g}", "std": "{:.3g}", "share": "{:.0%}"})
    warn(fitted.warnings)


def _drawn(runs: pd.DataFrame, fitted: LawFit):  # type: ignore[no-untyped-def]  # a figure
    first = fitted.tasks[0]
    rows = fitted.observations.frame
    weights = [parse_mixture(mixture, "").get(first, 0.0) for mixture in runs["mixture"]]
    proposed = runs.assign(weight=weights, order=range(1, len(runs) + 1))
    return draw_design(
        existing=rows[rows["task"] == first][["size", "weight"]], proposed=proposed, task=first
    )

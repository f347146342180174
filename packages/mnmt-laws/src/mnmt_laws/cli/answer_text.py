"""Recommendations and answers to targets, as lines to read and as the TOML of a study."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from mnmt_laws.answers.design.candidates import CandidateRun
from mnmt_laws.answers.design.next_runs import Design
from mnmt_laws.answers.design.study_toml import mixture_line, studies_of
from mnmt_laws.answers.mixtures.budget import SmallestBudget
from mnmt_laws.answers.mixtures.targets import SmallestSize, TargetMixture
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.errors import TableError
from mnmt_laws.figures.style import format_size
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.prediction import predict_interval

Answer = Recommendation | TargetMixture | SmallestSize | SmallestBudget


def format_answer(answer: Answer, fitted: LawFit) -> list[str]:
    """Return the lines that a command prints: the mixture as options take it, then its predictions."""
    if not answer.weights:
        return [answer.reason] if not isinstance(answer, Recommendation) else []
    mixture = [mixture_line(answer.weights)]
    if isinstance(answer, Recommendation):
        return [*mixture, *_recommendation(answer, fitted)]
    if isinstance(answer, TargetMixture):
        return [*mixture, *_target_mixture(answer, fitted)]
    if isinstance(answer, SmallestBudget):
        return [*mixture, *_smallest_budget(answer)]
    return [*mixture, _smallest_size(answer)]


def study_of(answer: Answer, fitted: LawFit, base: Path) -> str:
    """Return the TOML of a study of one model of the answer's mixture."""
    if not answer.weights:
        raise TableError(f"--study: there is nothing to train; {getattr(answer, 'reason', '')}.")
    mixture, *lines = format_answer(answer, fitted)
    notes = [f"{mixture}: recommended by mnmt-laws, {fitted.law.name} law.", *lines]
    run = CandidateRun(answer.size, answer.weights, answer.tokens)
    return studies_of(fitted, [run], notes=notes, base=base)[0].text


def design_lines(design: Design, fitted: LawFit) -> list[str]:
    """Return the cost and benefit of proposed runs, as lines of comment."""
    lines = [
        f"Runs to train next, by mnmt-laws design: {fitted.law.name} law.",
        f"{design.quantity}: standard deviation now {design.std:.3g}; with each run, and those before it:",
    ]
    for number, row in enumerate(design.runs.to_dict("records"), start=1):
        size = f"{row['size']:,.0f} parameters, " if "size" in row else ""
        length = f"{row['tokens']:,.0f} tokens, " if "tokens" in row else ""
        lines.append(
            f"{number}. {size}{length}{row['mixture']}: cost {row['cost']:.3g}, then {row['std']:.3g} "
            f"({row['share']:.0%})"
        )
    return lines


def _recommendation(answer: Recommendation, fitted: LawFit) -> list[str]:
    observations = fitted.observations
    lines = _budget(answer) if answer.budget is not None else []
    lines += [
        f"{source}: weight {weight:.3f}{_range(answer.weight_intervals[source], '.3f')}"
        for source, weight in answer.weights.items()
    ]
    models = {name: getattr(answer, name) for name in ("size", "tokens") if getattr(answer, name) is not None}
    for task, predicted in answer.predicted.items():
        interval = predict_interval(
            fitted,
            task=task,
            mixture={name: np.array([weight]) for name, weight in answer.weights.items()},
            **models,
        )
        new = (float(interval.lower[0]), float(interval.upper[0]))
        lines.append(
            f"{task}: predicted {observations.metric} {predicted:.4f}"
            f"{_range(answer.predicted_intervals[task], '.4f')} {observations.unit}"
            + ("" if math.isnan(new[0]) else f"; a new model {_range(new, '.4f').strip(' ()')}")
        )
    if not math.isnan(answer.regret):
        lines.append(f"expected regret: {answer.regret:.2g} {observations.unit}")
    return [*lines, *_doubts(answer)]


def _budget(answer: Recommendation) -> list[str]:
    assert answer.size is not None
    assert answer.tokens is not None
    return [
        f"size: {format_size(answer.size)} parameters{_counts(answer.size_interval)}",
        f"training length: {format_size(answer.tokens)} tokens{_counts(answer.tokens_interval)}",
    ]


def _doubts(answer: Recommendation) -> list[str]:
    """Return the reasons why the data do not determine the mixture, and the runs to train."""
    if answer.determined:
        return []
    lines = ["these data do not determine the mixture:", *(f"  {doubt}" for doubt in answer.doubts)]
    if answer.next_runs is not None:
        lines.append("train these runs:")
        for row in answer.next_runs.runs.to_dict("records"):
            models = [f"{format_size(row[name])} {unit}" for name, unit in _UNITS.items() if name in row]
            lines.append(f"  {', '.join([*models, row['mixture']])}: then {row['share']:.0%} of the spread")
    return lines


_UNITS = {"size": "parameters", "tokens": "tokens"}


def _range(interval: tuple[float, float], pattern: str) -> str:
    low, high = interval
    return "" if math.isnan(low) else f" ({low:{pattern}} to {high:{pattern}})"


def _counts(interval: tuple[float, float], rest: str = "") -> str:
    """Return a 95% interval of sizes, tokens or FLOPs; nothing where it is unknown."""
    if math.isnan(interval[0]):
        return ""
    low, high = (format_size(end) if math.isfinite(end) else "∞" for end in interval)
    return f" (95%: {low} to {high}{rest})"


def _target_mixture(answer: TargetMixture, fitted: LawFit) -> list[str]:
    metric, unit = fitted.observations.metric, fitted.observations.unit
    lines = [f"{source}: weight {weight:.3f}" for source, weight in answer.weights.items()]
    for task, predicted in answer.predicted.items():
        line = f"{task}: predicted {metric} {predicted:.4f} {unit}"
        probability = answer.probability.get(task, math.nan)
        if not math.isnan(probability):
            line += f", target {answer.targets[task]:g} met with probability {probability:.0%}"
        lines.append(line)
    if not math.isnan(answer.probability_of_all):
        lines.append(f"all targets: probability {answer.probability_of_all:.0%}")
    return [*lines, answer.reason] if answer.reason else lines


def _smallest_size(answer: SmallestSize) -> str:
    share = answer.infeasible_share
    infeasible = f"; in {share:.0%} of the refits no size is enough" if share > 0 else ""
    return f"smallest size: {format_size(answer.size)} parameters{_counts(answer.interval, infeasible)}"


def _smallest_budget(answer: SmallestBudget) -> list[str]:
    lines = [
        f"size: {format_size(answer.size)} parameters{_counts(answer.size_interval)}",
        f"training length: {format_size(answer.tokens)} tokens{_counts(answer.tokens_interval)}",
    ]
    share, (low, high) = answer.infeasible_share, answer.interval
    infeasible = f"; in {share:.0%} of the refits none is enough" if share > 0 else ""
    interval = "" if math.isnan(low) else f" (95%: {low:.3g} to {high:.3g}{infeasible})"
    return [f"least compute: {answer.budget:.3g} FLOPs{interval}", *lines]

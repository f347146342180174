"""Answers of `mnmt-laws recommend`, as lines to read and as the TOML of a study."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from mnmt_laws.answers.design.candidates import CandidateRun
from mnmt_laws.answers.design.study_toml import mixture_line, studies_of
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.answers.smallest import SmallestModel
from mnmt_laws.errors import TableError
from mnmt_laws.figures.style import format_size
from mnmt_laws.sentences.advice import advice_sentences, cost_text, rival_text

Answer = Recommendation | SmallestModel


def format_answer(answer: Answer) -> list[str]:
    """Return the lines that a command prints: the mixture as options take it, then what is known of it."""
    if not answer.weights:
        return [] if isinstance(answer, Recommendation) else [answer.reason]
    mixture = [mixture_line(answer.weights)]
    if isinstance(answer, Recommendation):
        return [*mixture, *_recommendation(answer)]
    return [*mixture, *_smallest(answer)]


def study_of(answer: Answer, rows: pd.DataFrame, base: Path) -> str:
    """Return the TOML of a study of one model of the answer's mixture."""
    if not answer.weights:
        raise TableError(f"--study: there is nothing to train; {getattr(answer, 'reason', '')}.")
    mixture, *lines = format_answer(answer)
    run = CandidateRun(answer.size, answer.weights, answer.tokens)
    notes = [f"{mixture}: recommended by mnmt-laws.", *lines]
    return studies_of(rows, [run], notes=notes, base=base)[0].text


def _recommendation(answer: Recommendation) -> list[str]:
    lines = [" ".join(filter(None, advice_sentences(answer)))]
    if not math.isnan(answer.size_range[0]):
        sizes = " to ".join(format_size(end) for end in answer.size_range)
        amount = cost_text(answer, answer.amount)
        lines.append(
            f"Sizes from {sizes} parameters at the same budget are expected to cost at most {amount} more."
        )
    names = dict.fromkeys([*answer.predicted, *answer.weights])
    lines += [f"{name}: {', '.join(_parts(answer, name))}" for name in names]
    lines += [f"{rival.name}: {rival_text(answer, rival)}" for rival in answer.rivals]
    lines += [f"expected regret: {cost_text(answer, answer.regret)}"] if len(answer.weights) > 1 else []
    shares = ", ".join(f"{member.form.name} {member.share:.0%}" for member in answer.forecast.members)
    return [*lines, f"averaged over: {shares}"]


def _parts(answer: Recommendation, name: str) -> list[str]:
    """Return the weight of a source, and the predicted metric of a task."""
    parts = []
    if name in answer.weights and len(answer.weights) > 1:
        low, high = answer.ranges[name]
        parts.append(f"weight {answer.weights[name]:.0%} ({low:.0%} to {high:.0%})")
    if name in answer.predicted:
        observed, (low, high) = answer.forecast.observations, answer.intervals[name]
        predicted = f"{observed.metric} {answer.predicted[name]:.3f} ({low:.3f} to {high:.3f})"
        parts.append(f"{predicted} {observed.unit}")
    if name in answer.want.targets:
        parts.append(f"target {answer.want.targets[name]:g}")
    return parts


def _smallest(answer: SmallestModel) -> list[str]:
    metric, unit = answer.forecast.observations.metric, answer.forecast.observations.unit
    size = format_size(answer.fairly_sure)
    sure = "no size has" if math.isinf(answer.fairly_sure) else f"{size} parameters have"
    lines = [
        f"smallest size: {format_size(answer.size)} parameters have an even chance to meet all targets; "
        f"{sure} a chance of 90%"
    ]
    if answer.budget is not None and answer.tokens is not None:
        lines.append(f"training length: {format_size(answer.tokens)} tokens; {answer.budget:.3g} FLOPs")
    return lines + [
        f"{task}: predicted {metric} {predicted:.3f} {unit}"
        + (f"; target {answer.targets[task]:g}" if task in answer.targets else "")
        for task, predicted in answer.predicted.items()
    ]

"""The times of a study's runs on this machine, alone or in packs, from a measurement of a few steps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from mnmt_data.store import PreparedData
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.claims import units_of
from mnmt_model.sweep.schedule import Machines
from mnmt_model.sweep.step_time import Work, measure_steps, step_seconds
from mnmt_model.sweep.study_plan import RunCost, StudyPlan
from mnmt_model.training.pack_choice import stored_times

FORWARD = 1 / 3
"""Time of an evaluation, of that of training on as many tokens: the forward pass alone."""


def timed(plan: StudyPlan, runs: Sequence[RunConfig], data: PreparedData, machines: Machines) -> StudyPlan:
    """Return the plan with times that follow from a few steps on this machine."""
    per_node = -(-plan.jobs // machines.nodes)
    cores = os.cpu_count() or 1
    works = [Work(run=run, flops=cost.step_flops) for run, cost in zip(runs, plan.runs, strict=True)]
    measured = measure_steps(works, data, threads=max(1, cores // per_node), devices=plan.devices)
    if not measured:
        return plan

    def seconds(run: RunConfig, cost: RunCost) -> float:
        evaluations = FORWARD * cost.evaluation_tokens / run.train.batch_tokens
        return step_seconds(measured, cost.step_flops) * (cost.steps + evaluations)

    costs = [replace(cost, seconds=seconds(run, cost)) for run, cost in zip(runs, plan.runs, strict=True)]
    units = units_of(runs, data.folder.parent / "runs", jobs=plan.jobs)
    faster = _times_in_packs(units, data.vocab.size)
    # A pack that was neither asked for nor measured is more likely to give its runs back.
    units = [
        part
        for unit in units
        for part in ([unit] if unit[0].train.pack or unit[0].name in faster else [(run,) for run in unit])
    ]
    return replace(
        plan,
        runs=tuple(replace(cost, seconds=faster.get(cost.name, cost.seconds)) for cost in costs),
        measured_models=len(measured),
        packs=tuple(tuple(run.name for run in unit) for unit in units),
    )


def _times_in_packs(units: Sequence[Sequence[RunConfig]], vocab_size: int) -> dict[str, float]:
    """Return {run: its share of its pack's seconds}, where an earlier sweep has measured that a pack pays."""
    seconds: dict[str, float] = {}
    for unit in units:
        times = stored_times(unit[0], vocab_size, len(unit)) if len(unit) > 1 else None
        if times is not None and (total := times.seconds(unit[0].steps)) is not None:
            seconds |= {run.name: total / len(unit) for run in unit}
    return seconds

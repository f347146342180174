"""The times of a study's runs on this machine, from a measurement of a few steps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from mnmt_data.store import PreparedData
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.sweep.schedule import Machines
from mnmt_model.sweep.step_time import Work, measure_steps, step_seconds
from mnmt_model.sweep.study_plan import RunCost, StudyPlan

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
    return replace(plan, runs=tuple(costs), measured_models=len(measured))

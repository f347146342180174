"""What a training step takes, as text and as JSON: experts and their slots, FLOPs, traffic, time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from mnmt_model.planning.cost import Cost
from mnmt_model.planning.fill import GOOD, POOR, has_spare_slots, least_used
from mnmt_model.planning.plan import ModelPlan
from mnmt_model.planning.quantities import data_size, short, si, step_duration, table
from mnmt_model.planning.workload import FLOAT32

PURPOSES = {
    "tokens": "tokens to experts and back",
    "dense_gradients": "gradients",
    "dense_weights": "weights",
    "expert_gradients": "experts' gradients",
    "expert_weights": "experts' weights",
}
"""{part of a step's traffic: its name}."""

EVEN = ", if choices are even"
"""What an estimate holds for."""

TIMES = ("compute_seconds", "exchange_seconds", "most_seconds", "least_seconds")
"""Times of a step that follow from the rates."""


def step_sections(plan: ModelPlan) -> Iterator[str]:
    """Yield sections of aligned rows, of what there is."""
    if plan.slots:
        yield "\n".join(_experts(plan))
    if plan.slots or plan.step.executed_flops != plan.step.flops:
        yield "\n".join(_flops(plan))
    if plan.step.traffic.total.size:
        yield "\n".join(_traffic(plan))
    if (time := list(_time(plan.step))) != []:
        yield "\n".join(time)
    if least_used(plan.model.config, plan.train, plan.workload) < POOR:
        yield "\n".join(_filling(plan))


def step_json(plan: ModelPlan) -> dict[str, Any]:
    """Return every number of a step, for JSON."""
    return {
        "slots": [{**asdict(use), "filled": use.filled} for use in plan.slots],
        "step": {**asdict(plan.step), **{name: getattr(plan.step, name) for name in TIMES}},
        "filling": None if plan.filling is None else _filling_json(plan.filling),
    }


def _filling_json(plan: ModelPlan) -> dict[str, Any]:
    return {
        "batch_tokens": plan.train.batch_tokens,
        "accumulation": plan.train.accumulation,
        "memory": plan.memory.total,
        "slots": [{**asdict(use), "filled": use.filled} for use in plan.slots],
        "flops": plan.step.flops,
        "executed_flops": plan.step.executed_flops,
    }


def _experts(plan: ModelPlan) -> Iterator[str]:
    """Say where a model's experts lie, and how many slots they have."""
    local = plan.memory.parameters // FLOAT32
    rows = [
        ["experts in training, a device", ""],
        ["  experts of each mixture", f"{plan.model.config.num_experts // plan.train.expert_parallel:,}"],
        ["  parameters, of all", f"{local:,} ({short(local)}) of {short(plan.count.num_params)}"],
    ]
    uses = {(use.tokens, use.slots): use for use in plan.slots}
    for use in uses.values():
        rows.append([f"  slots of all experts for {use.tokens:,} tokens", f"{use.slots:,}"])
        rows.append(["    filled at most", f"{use.filled:.1%}"])
        if use.executed_slots < use.slots:
            rows.append(["    computed at most", f"{use.executed_slots:,}"])
        if use.rows_per_token is not None:
            even = EVEN * use.assumes_even_choices
            rows.append([f"    rows that travel for a token{even}", f"{use.rows_per_token:.2f}"])
    return table(rows)


def _flops(plan: ModelPlan) -> Iterator[str]:
    step, again = plan.step, plan.train.activation_checkpointing
    skips = any(use.executed_slots < use.slots for use in plan.slots)
    slots = ("no empty slot" if skips else "all slots") if plan.slots else ""
    recomputed = "layers that are computed again" if again else ""
    words = " and ".join(filter(None, [slots, recomputed]))
    yield from table(
        [
            ["FLOPs of a step, all devices", ""],
            ["  useful, which MFU counts", si(step.flops)],
            ["  executed at most" if again or skips else "  executed", si(step.executed_flops)],
        ]
    )
    yield f"  executed are {step.executed_over_useful:.2f} times the useful ones: with {words}"


def _traffic(plan: ModelPlan) -> Iterator[str]:
    """Say what a device sends, for what, and in messages of which size."""
    rows = [["sent by a device in a step", "", "messages", "of"]]
    for purpose, name in PURPOSES.items():
        traffic = getattr(plan.step.traffic, purpose)
        if traffic.size:
            size = data_size(round(traffic.message_size))
            rows.append([f"  {name}", data_size(traffic.size), f"{traffic.messages:,}", size])
    yield from table(rows)
    if plan.step.assumes_even_choices and plan.step.traffic.tokens.size:
        yield f"  {PURPOSES['tokens']}: a mean{EVEN}"


def _time(step: Cost) -> Iterator[str]:
    """Say how long a step takes at the rates of the plan; nothing without any."""
    rows = []
    if step.compute_seconds is not None:
        rows.append([f"  computing {si(step.executed_flops)}FLOPs", step_duration(step.compute_seconds)])
    for purpose, name in PURPOSES.items():
        seconds = step.seconds(getattr(step.traffic, purpose))
        if seconds:
            rows.append([f"  sending {name}", step_duration(seconds)])
    if step.exchange_seconds and step.most_seconds is not None and step.least_seconds is not None:
        estimate = "estimate" if step.assumes_even_choices else None
        rows.append([f"  {estimate or 'upper bound'}: one after the other", step_duration(step.most_seconds)])
        rows.append(
            [f"  {estimate or 'lower bound'}: all at once that can be", step_duration(step.least_seconds)]
        )
    if rows:
        yield from table([["time of a step, at these rates", ""], *rows])


def _filling(plan: ModelPlan) -> Iterator[str]:
    """Say which batch would fill the slots, and what it takes."""
    if plan.filling is None:
        assert has_spare_slots(plan.model.config)
        yield "to fill the slots"
        yield (
            f"  no batch does: `capacity_factor` ({plan.model.config.capacity_factor:g}) is above "
            f"`experts_per_token` ({plan.model.config.experts_per_token})"
        )
        return
    filling = plan.filling
    least = least_used(filling.model.config, filling.train, filling.workload)
    rows = [
        [f"to fill {GOOD:.0%} of the slots", "now", "then"],
        *(
            [f"  {name}", f"{now:,}", f"{then:,}"]
            for name, now, then in (
                ("--batch-tokens", plan.train.batch_tokens, filling.train.batch_tokens),
                ("--accumulation", plan.train.accumulation, filling.train.accumulation),
                ("tokens at a time", plan.slots[0].tokens, filling.slots[0].tokens),
            )
        ),
        ["  filled at most", f"{plan.slots[0].filled:.1%}", f"{least:.1%}"],
        ["  memory", data_size(plan.memory.total), data_size(filling.memory.total)],
        [
            "  executed over useful FLOPs",
            f"{plan.step.executed_over_useful:.2f}",
            f"{filling.step.executed_over_useful:.2f}",
        ],
    ]
    yield from table(rows)

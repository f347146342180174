"""What a plan says of a mixture of experts, and of the time of a step."""

from __future__ import annotations

from collections.abc import Iterator

from mnmt_model.planning.activations import FLOAT32
from mnmt_model.planning.plan import ModelPlan, StudyPlan
from mnmt_model.planning.quantities import data_size, short, si, step_duration, table
from mnmt_model.transformer.model_config import ModelConfig

STEP_TIMES = ("compute_seconds", "exchange_seconds", "sequential_seconds", "overlapped_seconds")
"""The times of a step that follow from rates."""


def mixtures(config: ModelConfig) -> str:
    """The mixtures of experts that a model has, in a line."""
    every = {1: "every layer", 2: "every other layer"}.get(
        config.experts_every, f"one of {config.experts_every} layers"
    )
    slots = f"slots for {config.capacity_factor:g} times a fair share"
    return f"{config.num_experts:,} experts in {every}, two a token, {slots}"


def experts_text(plan: ModelPlan) -> str | None:
    """Where a model's experts lie and what goes to them and back; None for a dense model."""
    config = plan.model.config
    if not config.num_experts:
        return None
    held = plan.memory.parameters // FLOAT32
    rows = [
        ["experts in training, a device", ""],
        ["  experts of each mixture", f"{config.num_experts // plan.train.expert_parallel:,}"],
        ["  parameters, of all", f"{held:,} ({short(held)}) of {short(plan.count.num_params)}"],
        *_slots(plan),
        ["  sent to other devices a step", data_size(plan.step.exchange_bytes)],
    ]
    return "\n".join(table(rows))


def _slots(plan: ModelPlan) -> Iterator[list[str]]:
    for each in plan.slots:
        yield [f"  slots of an expert for {each.tokens:,} tokens", f"{each.capacity:,}"]
        yield ["    filled, if tokens spread evenly", f"{each.filled:.1%}"]


def step_text(plan: ModelPlan) -> str | None:
    """How long a step takes at the rates asked for; None without any."""
    step = plan.step
    if step.flops_per_second is None and step.exchange_bytes_per_second is None:
        return None
    names = {"compute_seconds": f"computing {si(step.flops)}FLOPs"}
    if step.exchange_bytes:
        names |= {
            "exchange_seconds": f"exchanging {data_size(step.exchange_bytes)}",
            "sequential_seconds": "one after the other",
            "overlapped_seconds": "both at once",
        }
    times = {name: getattr(step, key) for key, name in names.items()}
    rows = [["time of a step", ""]]
    rows += [[f"  {name}", step_duration(time)] for name, time in times.items() if time is not None]
    return "\n".join(table(rows)) if len(rows) > 1 else None


def study_notes(plan: StudyPlan) -> Iterator[str]:
    """What must be said of the times of a study whose devices exchange tokens."""
    if plan.seconds is not None and any(run.exchange_seconds is None for run in plan.runs):
        yield "the time leaves out what devices exchange for the experts: give --exchange-bytes-per-second"

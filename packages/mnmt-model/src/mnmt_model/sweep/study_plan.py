"""What the runs of a study take, before any is trained; as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.planning.experts import check_expert_parallel, exchange_bytes
from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.memory import Memory, training_memory
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.planning.plan import Cost
from mnmt_model.planning.quantities import data_size, duration, si, table, with_total
from mnmt_model.planning.workload import PlanConfig
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import Role
from mnmt_model.sweep.sweep_config import run_configs


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """What one run of a study takes."""

    name: str
    role: Role
    mixture: Mapping[str, float]
    size: int
    """N."""
    active_size: int
    """N that a token passes: with two experts of each mixture."""
    num_params: int
    steps: int
    tokens: int
    """Source and target tokens that it is trained on."""
    flops: int
    """FLOPs of training, as the run record counts them: without attention scores."""
    exchange_bytes: int
    """Bytes that one device sends to others for the experts, in all steps."""
    exchange_seconds: float | None
    """Seconds of the exchange; None without its rate, 0 where nothing is exchanged."""
    seconds: float | None
    """Seconds of training, with `exchange_seconds` where they are known; None without a rate."""
    memory: Memory
    """Memory of training, on each device."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What the runs of a study take."""

    study: str
    vocab_size: int
    devices: int
    runs: tuple[RunCost, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all runs."""
        return sum(run.tokens for run in self.runs)

    @property
    def flops(self) -> int:
        """FLOPs of all runs."""
        return sum(run.flops for run in self.runs)

    @property
    def exchange_bytes(self) -> int:
        """Bytes that a device sends in all runs."""
        return sum(run.exchange_bytes for run in self.runs)

    @property
    def seconds(self) -> float | None:
        """Seconds of all runs, one after the other; None without a rate."""
        times = [run.seconds for run in self.runs if run.seconds is not None]
        return sum(times) if times else None


def plan_study(study: StudyFile, data: Path, options: PlanConfig) -> StudyPlan:
    """Compute what the runs of `study` over the prepared data in `data` take.

    Raises:
        RunError: If the study has a mistake, or an option is refused.
        DataError: If there are no prepared data.
    """
    options.check_rates()
    runs, prepared = run_configs(study, data), open_prepared(data)
    vocab_size = options.vocab_size or prepared.description.vocabulary.size
    costs = tuple(_run_cost(run, prepared, vocab_size, options) for run in runs)
    return StudyPlan(study=study.name, vocab_size=vocab_size, devices=options.devices, runs=costs)


def study_text(plan: StudyPlan) -> str:
    """Return a plan as a table, with a row for each run and one for all."""
    timed = plan.seconds is not None
    active = any(run.active_size < run.size for run in plan.runs)
    heads = ["run", "role", "N", *["active"] * active, "parameters", "steps", "tokens", "FLOPs"]
    rows = [[*heads, *["time"] * timed, "memory"], *(_row(run, timed, active) for run in plan.runs)]
    total = [
        f"{len(plan.runs)} runs",
        *[""] * (4 + active),
        si(plan.tokens),
        si(plan.flops),
        *([duration(plan.seconds)] if plan.seconds is not None else []),
        data_size(max(run.memory.total for run in plan.runs)),
    ]
    return "\n".join([f"{plan.study}\n", *table([*rows, total], left=2), "", *_notes(plan)])


def study_json(plan: StudyPlan) -> dict[str, Any]:
    """Return every number of a plan, for JSON."""
    return {
        "study": plan.study,
        "vocab_size": plan.vocab_size,
        "devices": plan.devices,
        "runs": [{**asdict(run), "memory": with_total(run.memory)} for run in plan.runs],
        "tokens": plan.tokens,
        "flops": plan.flops,
        "exchange_bytes": plan.exchange_bytes,
        "seconds": plan.seconds,
    }


def _run_cost(run: RunConfig, data: PreparedData, vocab_size: int, options: PlanConfig) -> RunCost:
    train = options.train(run.train)
    src_len, tgt_len = _mean_lengths(run.mixture, data)
    workload = options.workload(src_len=round(src_len), tgt_len=round(tgt_len))
    try:
        check_expert_parallel(run.model, train, workload.devices)
    except ValueError as error:
        raise RunError(f"{run.name}: {error}") from None
    src_len, tgt_len = options.src_len or src_len, options.tgt_len or tgt_len
    count = count_parameters(run.model, vocab_size)
    tokens = train.steps * train.batch_tokens
    src_tokens = round(tokens * src_len / (src_len + tgt_len))
    cost = Cost(
        flops=training_flops(run.model, vocab_size, src_tokens=src_tokens, tgt_tokens=tokens - src_tokens),
        exchange_bytes=train.steps * exchange_bytes(run.model, train, workload),
        flops_per_second=options.flops_per_second,
        exchange_bytes_per_second=options.exchange_bytes_per_second,
    )
    return RunCost(
        name=run.name,
        role=run.role,
        mixture=run.mixture,
        size=count.size,
        active_size=count.active_size,
        num_params=count.num_params,
        steps=train.steps,
        tokens=tokens,
        flops=cost.flops,
        exchange_bytes=cost.exchange_bytes,
        exchange_seconds=cost.exchange_seconds,
        seconds=cost.sequential_seconds if cost.exchange_seconds is not None else cost.compute_seconds,
        memory=training_memory(run.model, vocab_size, train, workload),
    )


def _mean_lengths(mixture: Mapping[str, float], data: PreparedData) -> tuple[float, float]:
    """Return the mean source and target tokens of the mixture's training pairs."""
    src, tgt = 0.0, 0.0
    for task, weight in mixture.items():
        counts = data.train_counts[task]
        src += weight * counts.src_tokens / counts.pairs
        tgt += weight * counts.tgt_tokens / counts.pairs
    return src, tgt


def _row(run: RunCost, timed: bool, active: bool) -> list[str]:
    time = [duration(run.seconds)] if timed and run.seconds is not None else []
    sizes = [f"{run.size:,}", *[f"{run.active_size:,}"] * active]
    numbers = [*sizes, f"{run.num_params:,}", f"{run.steps:,}", si(run.tokens), si(run.flops)]
    return [run.name, run.role, *numbers, *time, data_size(run.memory.total)]


def _notes(plan: StudyPlan) -> Iterator[str]:
    """Yield the sentences below the table."""
    devices = f"{plan.devices} devices" if plan.devices > 1 else "one device"
    yield f"vocabulary of {plan.vocab_size:,} tokens; {devices} a run; the last memory is the most"
    if plan.seconds is not None and any(run.exchange_seconds is None for run in plan.runs):
        yield "the time leaves out what devices exchange for the experts: give --exchange-bytes-per-second"

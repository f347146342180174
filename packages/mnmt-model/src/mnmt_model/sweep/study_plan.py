"""What the runs of a study take, before any is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import Mixture, open_stream
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.planning.cost import Cost, Rates
from mnmt_model.planning.experts import check_expert_parallel, slot_uses, slot_warning
from mnmt_model.planning.fill import fill_slots, least_used
from mnmt_model.planning.flops import executed_over_useful, training_flops
from mnmt_model.planning.memory import Memory, training_memory
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.planning.quantities import with_total
from mnmt_model.planning.tensors import all_tensors
from mnmt_model.planning.traffic import step_traffic
from mnmt_model.planning.workload import PlanConfig
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_data import mean_lengths
from mnmt_model.runs.run_record import Role
from mnmt_model.sweep.schedule import Job, Machines, wall_seconds
from mnmt_model.sweep.sweep_config import run_configs
from mnmt_model.sweep.workers import default_jobs
from mnmt_model.train_config import TrainConfig

MOST_EPOCHS = 4.0
"""Epochs up to which text that is read again is worth about as much as new text (Muennighoff et al. 2023)."""


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """What one run of a study takes."""

    name: str
    role: Role
    mixture: Mapping[str, float]
    size: int
    """N."""
    active_size: int
    """N that a token passes: with the experts that it chooses."""
    num_params: int
    steps: int
    """Steps that it is trained; of a branch, those after it left its trunk."""
    tokens: int
    """Source and target tokens that it is trained on."""
    flops: int
    """Useful FLOPs of training, as the run record counts them: without attention scores."""
    executed_flops: int
    """The same with those of empty slots and of recomputed activations."""
    filled: float
    """The largest share of the experts' computed slots that tokens can fill; 1 for a dense model."""
    filling: TrainConfig | None
    """How to train with slots that are filled, where they are filled poorly."""
    exchange_bytes: int
    """Bytes that one device sends to others in all steps."""
    assumes_even_choices: bool
    """Whether these bytes are a mean, as if all experts were chosen equally often."""
    exchange_seconds: float | None
    """Seconds of the exchange; None without its rate, 0 where nothing is exchanged."""
    seconds: float | None
    """Seconds of training, with `exchange_seconds` where they are known: an upper bound at the given rates,
    in which devices do nothing while they exchange, or an estimate if it assumes even choices. None without a
    rate."""
    memory: Memory
    """Memory of training, on each device."""
    epochs: Mapping[str, float]
    """{task: how often each of its training pairs is read}."""
    evaluation_tokens: int
    """Tokens of the dev and test sets, as often as they are measured."""
    warnings: tuple[str, ...] = ()
    """What to reconsider about its mixtures of experts, a sentence each."""
    trunk: str | None = None
    """The run that it branches from."""
    trunk_step: int = 0
    """The step of that run after which it can start."""

    @property
    def step_flops(self) -> int:
        """FLOPs of a step."""
        return self.flops // self.steps


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """What the runs of a study take."""

    study: str
    vocab_size: int
    devices: int
    """Devices that train a run together."""
    jobs: int
    """Runs that train at a time."""
    device_memory: float | None
    """GiB of memory of a device, where that was given."""
    measured_models: int
    """Models that were measured on this machine to give times; 0 where times follow from a rate."""
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

    @property
    def wall_seconds(self) -> float | None:
        """Seconds until the last run ends, with `jobs` at a time, the longest first; None without a rate."""
        if self.seconds is None:
            return None
        runs = {run.name: run for run in self.runs}
        return wall_seconds([_job(run, runs) for run in self.runs], self.jobs)

    def fits(self, run: RunCost) -> bool | None:
        """Return whether a run fits into the memory of its devices; None where that was not given."""
        return None if self.device_memory is None else run.memory.total <= self.device_memory * 2**30


def plan_study(
    study: StudyFile,
    data: Path,
    options: PlanConfig,
    machines: Machines = Machines(),  # noqa: B008 - it is frozen
    *,
    runs: Sequence[RunConfig] | None = None,
    measure: bool = False,
) -> StudyPlan:
    """Compute what the runs of `study` over the prepared data in `data` take.

    Args:
        study: The study.
        data: Folder of its prepared data.
        options: Assumptions.
        machines: What the study is trained on.
        runs: Those of its runs that are trained; all by default.
        measure: Measure steps on this machine, in about two seconds, where no rate gives times.

    Raises:
        RunError: If the study has a mistake, or an option is refused.
        DataError: If there are no prepared data.
    """
    options.check_rates()
    machines.check()
    prepared = open_prepared(data)
    runs = run_configs(study, data) if runs is None else runs
    vocab_size = options.vocab_size or prepared.description.vocabulary.size
    plan = StudyPlan(
        study=study.name,
        vocab_size=vocab_size,
        devices=options.devices,
        jobs=machines.places(options.devices, local_devices=default_jobs()),
        device_memory=options.device_memory,
        measured_models=0,
        runs=tuple(_run_cost(run, prepared, vocab_size, options) for run in runs),
    )
    if not (runs and measure) or options.flops_per_second is not None:
        return plan
    from mnmt_model.sweep.study_time import timed

    changed = [replace(run, train=options.train(run.train)) for run in runs]
    return timed(plan, changed, prepared, machines)


def study_json(plan: StudyPlan) -> dict[str, Any]:
    """Return every number of a plan, for JSON."""
    return {
        "study": plan.study,
        "vocab_size": plan.vocab_size,
        "devices": plan.devices,
        "jobs": plan.jobs,
        "device_memory": plan.device_memory,
        "measured_models": plan.measured_models,
        "runs": [
            {**asdict(run), "memory": with_total(run.memory), "fits": plan.fits(run)} for run in plan.runs
        ],
        "tokens": plan.tokens,
        "flops": plan.flops,
        "exchange_bytes": plan.exchange_bytes,
        "seconds": plan.seconds,
        "wall_seconds": plan.wall_seconds,
    }


def _job(run: RunCost, runs: Mapping[str, RunCost]) -> Job:
    trunk = runs.get(run.trunk) if run.trunk else None
    return Job(
        name=run.name,
        seconds=run.seconds or 0.0,
        after=trunk.name if trunk else None,
        share=run.trunk_step / trunk.steps if trunk else 0.0,
    )


def _run_cost(run: RunConfig, data: PreparedData, vocab_size: int, options: PlanConfig) -> RunCost:
    train = options.train(run.train)
    src_len, tgt_len = mean_lengths(run.mixture, data)
    workload = options.workload(src_len=round(src_len), tgt_len=round(tgt_len))
    try:
        check_expert_parallel(run.model, train, workload.devices)
    except ValueError as error:
        raise RunError(f"{run.name}: {error}") from None
    src_len, tgt_len = options.src_len or src_len, options.tgt_len or tgt_len
    count = count_parameters(run.model, vocab_size)
    tokens = run.steps * train.batch_tokens
    src_tokens = round(tokens * src_len / (src_len + tgt_len))
    flops = training_flops(run.model, vocab_size, src_tokens=src_tokens, tgt_tokens=tokens - src_tokens)
    cost = Cost(
        flops=flops,
        executed_flops=round(flops * executed_over_useful(run.model, vocab_size, train, workload)),
        traffic=step_traffic(run.model, all_tensors(run.model, vocab_size), train, workload) * run.steps,
        assumes_even_choices=any(use.assumes_even_choices for use in slot_uses(run.model, train, workload)),
        hides_tokens=train.exchange_chunks > 1,
        rates=Rates.of(options),
    )
    return RunCost(
        name=run.name,
        role=run.role,
        mixture=run.mixture,
        size=count.size,
        active_size=count.active_size,
        num_params=count.num_params,
        steps=run.steps,
        tokens=tokens,
        flops=cost.flops,
        executed_flops=cost.executed_flops,
        filled=least_used(run.model, train, workload),
        filling=fill_slots(run.model, train, workload),
        exchange_bytes=cost.traffic.total.size,
        assumes_even_choices=cost.assumes_even_choices,
        exchange_seconds=cost.exchange_seconds,
        seconds=cost.compute_seconds if cost.exchange_seconds is None else cost.most_seconds,
        memory=training_memory(run.model, vocab_size, train, workload),
        epochs=_epochs(run, train, data),
        evaluation_tokens=_evaluation_tokens(run, data),
        warnings=tuple(filter(None, [slot_warning(run.model)])),
        trunk=run.branch.run if run.branch else None,
        trunk_step=run.branch.step if run.branch else 0,
    )


def _epochs(run: RunConfig, train: TrainConfig, data: PreparedData) -> dict[str, float]:
    """Return {task: how often each of its pairs is read}, over the tasks that are trained."""
    mixture = Mixture(dict(run.mixture))
    stream = open_stream(data, mixture, train.mixing, batch_tokens=train.batch_tokens, seed=run.seed)
    return {task: epochs for task, epochs in stream.sampler.epochs(train.steps).items() if epochs > 0}


def _evaluation_tokens(run: RunConfig, data: PreparedData) -> int:
    """Return the tokens of all evaluations of a run: every so many steps, and at the end."""
    tokens = 0
    for split, counts in data.description.counts.items():
        if split != "train":
            every = run.train.eval_every if split == "dev" else run.train.test_every
            times = -(-run.steps // every) if every else 1
            tokens += times * sum(count.src_tokens + count.tgt_tokens for count in counts.values())
    return tokens

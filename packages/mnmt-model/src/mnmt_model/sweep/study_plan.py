"""Plan a study before training: size, FLOPs, time and memory of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mnmt_data.jobs.workers import num_cores
from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import Mixture, open_stream
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.planning.experts import slot_warning
from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameters import count_parameters, state_bytes
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_data import mean_lengths
from mnmt_model.runs.run_record import Role
from mnmt_model.sweep.schedule import Job, wall_seconds
from mnmt_model.sweep.study_runs import run_configs
from mnmt_model.sweep.workers import default_jobs

MOST_EPOCHS = 4.0
"""Epochs up to which repeated text is nearly as good as new text (Muennighoff et al. 2023)."""

FORWARD = 1 / 3
"""Time of an evaluation relative to training on the same tokens: only the forward pass."""


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """The cost of one run of a study."""

    name: str
    role: Role
    mixture: Mapping[str, float]
    size: int
    """N."""
    active_size: int
    """Parameters of N used by a token, with its chosen experts."""
    num_params: int
    steps: int
    """Steps of training; for a branch, those after its trunk's."""
    tokens: int
    """Source and target tokens of training."""
    flops: int
    """Useful FLOPs of training, as in the run record, without attention scores."""
    seconds: float | None = None
    """Seconds of training on this machine, with evaluations; None without a measurement."""
    state_bytes: int
    """Bytes of weights, gradients and the optimiser's state."""
    activation_bytes: int | None = None
    """Peak memory besides the state; None without a measurement."""
    epochs: Mapping[str, float]
    """{task: mean number of times that each of its training pairs is read}."""
    evaluation_tokens: int
    """Tokens of all evaluations on dev and test sets."""
    warnings: tuple[str, ...] = ()
    """Warnings about its mixtures of experts."""
    trunk: str | None = None
    """The run that it branches off."""
    trunk_step: int = 0
    """The step of that run after which it can start."""

    @property
    def step_flops(self) -> int:
        """FLOPs of a step."""
        return self.flops // self.steps

    @property
    def memory(self) -> int:
        """Bytes of training: all if steps were measured, otherwise a lower bound."""
        return self.state_bytes + (self.activation_bytes or 0)


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The costs of a study's runs."""

    study: str
    vocab_size: int
    jobs: int
    """Runs that train at a time."""
    measured_models: int
    """Number of models measured on this machine for times and memory."""
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
    def seconds(self) -> float | None:
        """Seconds of all runs, one after the other; None without a measurement."""
        times = [run.seconds for run in self.runs if run.seconds is not None]
        return sum(times) if times else None

    @property
    def wall_seconds(self) -> float | None:
        """Seconds until the last run ends, with `jobs` at a time, the longest first; None if unmeasured."""
        if self.seconds is None:
            return None
        runs = {run.name: run for run in self.runs}
        return wall_seconds([_job(run, runs) for run in self.runs], self.jobs)


def plan_study(
    study: StudyFile,
    data: Path,
    *,
    jobs: int | None = None,
    runs: Sequence[RunConfig] | None = None,
    measure: bool = False,
) -> StudyPlan:
    """Compute the costs of the runs of `study` over the prepared data in `data`.

    Args:
        study: The study.
        data: Folder of its prepared data.
        jobs: Runs that train at a time; one for each GPU or core of this machine by default.
        runs: The runs to plan; all of the study by default.
        measure: Measure steps on this machine, in about two seconds, for time and memory.

    Raises:
        RunError: If the study has a mistake, or `jobs` is below 1.
        DataError: If there are no prepared data.
    """
    if jobs is not None and jobs < 1:
        raise RunError(f"`jobs` must be at least 1, but is {jobs}.")
    prepared = open_prepared(data)
    runs = run_configs(study, data) if runs is None else runs
    plan = StudyPlan(
        study=study.name,
        vocab_size=prepared.vocab.size,
        jobs=jobs or default_jobs(),
        measured_models=0,
        runs=tuple(_run_cost(run, prepared) for run in runs),
    )
    return _measured(plan, runs, prepared) if runs and measure else plan


def study_json(plan: StudyPlan) -> dict[str, Any]:
    """Return every number of a plan, for JSON."""
    return {
        **asdict(plan),
        "runs": [{**asdict(run), "memory": run.memory} for run in plan.runs],
        "tokens": plan.tokens,
        "flops": plan.flops,
        "seconds": plan.seconds,
        "wall_seconds": plan.wall_seconds,
    }


def _measured(plan: StudyPlan, runs: Sequence[RunConfig], data: PreparedData) -> StudyPlan:
    """Return the plan with times and memory from a few steps on this machine."""
    from mnmt_model.sweep.step_time import Work, activation_bytes, measure_steps, step_seconds

    works = [Work(run=run, flops=cost.step_flops) for run, cost in zip(runs, plan.runs, strict=True)]
    steps = measure_steps(works, data, threads=max(1, num_cores() // plan.jobs))
    if not steps:
        return plan

    def costed(run: RunConfig, cost: RunCost) -> RunCost:
        train, flops = run.train, cost.step_flops
        evaluations = FORWARD * cost.evaluation_tokens / train.batch_tokens
        seconds = step_seconds(steps, flops) * (cost.steps + evaluations)
        activations = activation_bytes(steps, flops=flops, tokens=train.batch_tokens) // train.accumulation
        return replace(cost, seconds=seconds, activation_bytes=activations)

    costs = tuple(costed(run, cost) for run, cost in zip(runs, plan.runs, strict=True))
    return replace(plan, runs=costs, measured_models=len(steps))


def _job(run: RunCost, runs: Mapping[str, RunCost]) -> Job:
    trunk = runs.get(run.trunk) if run.trunk else None
    return Job(
        name=run.name,
        seconds=run.seconds or 0.0,
        after=trunk.name if trunk else None,
        share=run.trunk_step / trunk.steps if trunk else 0.0,
    )


def _run_cost(run: RunConfig, data: PreparedData) -> RunCost:
    vocab_size = data.vocab.size
    src_len, tgt_len = mean_lengths(run.mixture, data)
    count = count_parameters(run.model, vocab_size)
    tokens = run.steps * run.train.batch_tokens
    src_tokens = round(tokens * src_len / (src_len + tgt_len))
    return RunCost(
        name=run.name,
        role=run.role,
        mixture=run.mixture,
        size=count.size,
        active_size=count.active_size,
        num_params=count.num_params,
        steps=run.steps,
        tokens=tokens,
        flops=training_flops(run.model, vocab_size, src_tokens=src_tokens, tgt_tokens=tokens - src_tokens),
        state_bytes=state_bytes(count.num_params, run.train.optimizer),
        epochs=_epochs(run, data),
        evaluation_tokens=_evaluation_tokens(run, data),
        warnings=tuple(filter(None, [slot_warning(run.model)])),
        trunk=run.branch.run if run.branch else None,
        trunk_step=run.branch.step if run.branch else 0,
    )


def _epochs(run: RunConfig, data: PreparedData) -> dict[str, float]:
    """Return {task: mean number of times that each of its pairs is read} of the trained tasks."""
    mixture, train = Mixture(dict(run.mixture)), run.train
    stream = open_stream(data, mixture, train.mixing, batch_tokens=train.batch_tokens, seed=run.seed)
    return {task: epochs for task, epochs in stream.sampler.epochs(train.steps).items() if epochs > 0}


def _evaluation_tokens(run: RunConfig, data: PreparedData) -> int:
    """Return the tokens of all evaluations of a run, including the final ones."""
    tokens = 0
    for split, counts in data.description.counts.items():
        if split != "train":
            every = run.train.eval_every if split == "dev" else run.train.test_every
            times = -(-run.steps // every) if every else 1
            tokens += times * sum(count.src_tokens + count.tgt_tokens for count in counts.values())
    return tokens

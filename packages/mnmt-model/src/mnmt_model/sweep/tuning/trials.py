"""Trials of a search: runs of a study with a candidate's settings, shortened, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.runs.losses import mean_dev_loss
from mnmt_model.runs.run_config import RunConfig
from mnmt_model.runs.run_record import read_evals
from mnmt_model.sweep.run_queue import Outcome
from mnmt_model.sweep.sweep_config import SweepConfig, run_configs, run_name
from mnmt_model.sweep.tuning.halving import Candidate
from mnmt_model.train_config import TrainConfig

DIGITS = 3
"""Significant digits of a learning rate."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A candidate that was trained."""

    run: str
    """Name of its run."""
    rung: int
    learning_rate: float
    batch_tokens: int
    steps: int
    loss: float | None
    """Mean dev loss of the trained tasks at the end, nats per token; None where training failed."""
    error: str | None
    """Why it failed."""


def base_runs(study: StudyFile, data: Path, sizes: Sequence[str]) -> dict[str, RunConfig]:
    """Return a run of each size, with the most even of its mixtures and the first seed.

    Args:
        study: The study.
        data: Folder of its prepared data.
        sizes: Names of sizes; all that are trained if empty.

    Raises:
        RunError: If the study has no such size, or does not train it.
    """
    by_size: dict[str, list[RunConfig]] = {}
    runs = run_configs(study, data)
    for size in study.section("sweep", SweepConfig).sizes:
        names = {run.name: run for run in runs}
        of_size = [run for run in runs if names.get(run_name(size, run.mixture, run.seed)) is run]
        if of_size:
            by_size[size] = of_size
    if unknown := [size for size in sizes if size not in by_size]:
        raise RunError(
            f"{study.path}: [sweep] trains no size {unknown[0]!r}; its sizes are {', '.join(by_size)}"
        )
    # Of equally even mixtures the first, in the order of the study.
    return {size: max(by_size[size], key=lambda run: _evenness(run.mixture)) for size in sizes or by_size}


def trial_run(base: RunConfig, size: str, candidate: Candidate, steps: int) -> RunConfig:
    """Return the run of a trial.

    A batch twice as large has half as many steps, so that every trial of a rung is trained on as many tokens.

    Args:
        base: A run of the size.
        size: The size.
        candidate: What changes.
        steps: Steps at the present batch.
    """
    train = with_candidate(base.train, candidate)
    steps = max(1, round(steps / 2**candidate.batch))
    train = replace(
        train,
        steps=steps,
        warmup_steps=min(train.warmup_steps, steps // 4),
        cooldown_steps=round(train.cooldown_steps * steps / train.steps),
        horizons=(),
        eval_every=0,
        test_every=0,
        keep_checkpoints=1,
        keep_best=0,
        early_stopping=0,
        tensorboard=False,
    )
    name = f"{size}_rate{train.learning_rate:g}_batch{train.batch_tokens}_steps{steps}"
    return replace(base, name=name, train=train)


def with_candidate(train: TrainConfig, candidate: Candidate) -> TrainConfig:
    """Return a run's settings with a candidate's rate and batch, and as many tokens in all as before."""
    factor = 2.0**candidate.batch
    return replace(
        train,
        learning_rate=rounded(train.learning_rate * 2.0**candidate.rate),
        batch_tokens=max(1, round(train.batch_tokens * factor)),
        steps=max(1, round(train.steps / factor)),
        horizons=tuple(max(1, round(steps / factor)) for steps in train.horizons),
        warmup_steps=round(train.warmup_steps / factor),
        cooldown_steps=round(train.cooldown_steps / factor),
    )


def rounded(rate: float) -> float:
    """Return a learning rate of a few digits."""
    return float(f"{rate:.{DIGITS}g}")


def read_trial(run: RunConfig, rung: int, outcome: Outcome, folder: Path) -> Trial:
    """Return what came of a trial, from its record in the folder of all trials."""
    loss, error = None, outcome.error
    if outcome.status == "finished":
        evals = [each for each in read_evals(folder / run.name) if each.testset == "dev"]
        last = max(each.step for each in evals)
        loss = mean_dev_loss({each.task: each.value for each in evals if each.step == last}, run.mixture)
    return Trial(
        run=run.name,
        rung=rung,
        learning_rate=run.train.learning_rate,
        batch_tokens=run.train.batch_tokens,
        steps=run.train.steps,
        loss=loss,
        error=error,
    )


def _evenness(mixture: Mapping[str, float]) -> float:
    """Return the entropy of a mixture, in nats."""
    return round(-sum(weight * log(weight) for weight in mixture.values() if weight > 0), 9)

"""The runs of a study: sizes × mixtures × seeds, with runs that are held out of the fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from mnmt_data.prepare import check_prepared
from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import Mixture
from mnmt_data.study import StructureError, StudyFile, structure
from mnmt_model.errors import RunError
from mnmt_model.planning.presets import preset
from mnmt_model.runs.run_config import Branch, RunConfig
from mnmt_model.runs.run_record import Role
from mnmt_model.sweep.expert_keys import Size, check_expert_keys
from mnmt_model.sweep.sweep_config import PRESET, TEMPERATURE, SweepConfig
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig


def run_configs(study: StudyFile, data: Path) -> list[RunConfig]:
    """Return the runs of `study` over the prepared data in `data`, each followed by its branches.

    Raises:
        RunError: If a mixture names a task that is not in the data, two grids hold the same run, or a key
            of mixtures of experts has no effect.
        DataError: If the data are missing, or were prepared with another `[data]` section.
    """
    sweep = study.section("sweep", SweepConfig)
    for section, config in (("model", ModelConfig), ("train", TrainConfig)):
        study.section(section, config)  # Report an error there before it is attributed to a size.
    sizes = {name: _size(study, name, changes) for name, changes in sweep.sizes.items()}
    try:
        check_expert_keys(sizes)
    except ValueError as error:
        raise RunError(f"{study.path}: {error}") from None
    prepared = open_prepared(data)
    check_prepared(study, prepared)
    runs: dict[str, RunConfig] = {}
    for role, size, mixture, seed in _cells(sweep):
        mixture = _over_all_tasks(study, _weights(mixture, prepared), prepared.tasks)
        name = run_name(size, mixture, seed)
        if name in runs:
            raise RunError(f"{study.path}: [sweep] holds the run {name} twice")
        run = RunConfig(
            name=name,
            study=study.name,
            role=role,
            model=sizes[size].model,
            train=sizes[size].train,
            mixture=mixture,
            seed=seed,
            data=data,
        )
        runs |= {each.name: each for each in _with_branches(run)}
    return list(runs.values())


def run_name(size: str, mixture: Mapping[str, float], seed: int) -> str:
    """Return the folder name of a run, such as `d32_en-de-0.3_en-zh-0.7_seed1`."""
    weights = "_".join(f"{task}-{weight:g}" for task, weight in sorted(mixture.items()) if weight > 0)
    return f"{size}_{weights}_seed{seed}"


def _cells(sweep: SweepConfig) -> Iterator[tuple[Role, str, dict[str, float], int]]:
    for role, grid in sweep.grids():
        for size in grid.sizes:
            for mixture in grid.mixtures:
                for seed in sweep.seeds:
                    yield role, size, mixture, seed


def _size(study: StudyFile, name: str, changes: Mapping[str, Any]) -> Size:
    """Return a size with its model and training settings."""
    model_keys = {field.name for field in fields(ModelConfig)}
    train_keys = {field.name for field in fields(TrainConfig)}
    where = f"sweep.sizes.{name}"
    if unknown := sorted(set(changes) - model_keys - train_keys - {PRESET}):
        valid = ", ".join([PRESET, *sorted(model_keys | train_keys)])
        raise RunError(
            f"{study.path}: [{where}] holds an unknown key `{unknown[0]}`; the valid ones are {valid}"
        )
    model = study.tables.get("model", {})
    model_changes = {key: value for key, value in changes.items() if key in model_keys}
    train_changes = {key: value for key, value in changes.items() if key in train_keys}
    try:
        if PRESET in changes:
            model = asdict(preset(changes[PRESET]).config)
        return Size(
            changes=changes,
            model=structure(model | model_changes, ModelConfig, where=where),
            train=structure(study.tables.get("train", {}) | train_changes, TrainConfig, where=where),
        )
    except (StructureError, RunError) as error:
        raise RunError(f"{study.path}: {error}") from None


def _weights(mixture: Mapping[str, float], data: PreparedData) -> Mapping[str, float]:
    """Return the weights of a mixture, which may be a temperature."""
    if set(mixture) != {TEMPERATURE}:
        return mixture
    sizes = {task: len(data.shard("train", task)) for task in data.tasks}
    return Mixture.tempered(sizes, mixture[TEMPERATURE]).weights


def _over_all_tasks(
    study: StudyFile, mixture: Mapping[str, float], tasks: tuple[str, ...]
) -> dict[str, float]:
    """Return the mixture over all tasks of the data; tasks that it does not name have weight 0."""
    unknown = sorted(set(mixture) - set(tasks))
    if unknown:
        raise RunError(
            f"{study.path}: [sweep] mixture names {unknown[0]!r}; the prepared tasks are {', '.join(tasks)}"
        )
    return {task: mixture.get(task, 0.0) for task in tasks}


def _with_branches(run: RunConfig) -> Iterator[RunConfig]:
    """Yield a run and then its branches: one for each of its horizons except the last.

    A branch starts from a checkpoint of its trunk, and is trained like any run of its length. Its cool-down
    is proportional to the trunk's (Hägele et al. 2024, "Scaling laws and compute-optimal training beyond
    fixed training durations").
    """
    yield run
    for steps in run.train.horizons[:-1]:
        train = run.train.at_horizon(steps)
        branch = Branch(run=run.name, step=steps - train.cooldown_steps)
        yield replace(run, name=f"{run.name}_h{steps}", train=train, branch=branch)

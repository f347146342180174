"""The runs of a study: sizes × mixtures × seeds, with runs that are held out of the fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mnmt_data.prepare import check_prepared
from mnmt_data.store import PreparedData, open_prepared
from mnmt_data.stream import Mixture
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.runs.run_config import Branch, RunConfig
from mnmt_model.sweep.sizes import read_sizes
from mnmt_model.sweep.study_check import check_study
from mnmt_model.sweep.sweep_config import TEMPERATURE, SweepConfig, run_name


def run_configs(study: StudyFile, data: Path) -> list[RunConfig]:
    """Return the runs of `study` over the prepared data in `data`, each followed by its branches.

    Raises:
        StudyError: If the study has a mistake.
        RunError: If a mixture names a task that is not in the data, or two grids hold the same run.
        DataError: If the data are missing, or were prepared with another `[data]` section.
    """
    check_study(study)
    sweep = study.section("sweep", SweepConfig)
    sizes = read_sizes(study, sweep)
    prepared = open_prepared(data)
    check_prepared(study, prepared)
    runs: dict[str, RunConfig] = {}
    for role, size, mixture, seed in sweep.cells():
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
    if unknown := sorted(set(mixture) - set(tasks)):
        what = f"[sweep] names {unknown[0]!r}, but the prepared tasks are {', '.join(tasks)}"
        raise RunError(f"{study.path}: {what}; prepare the study again.")
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

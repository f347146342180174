"""Which models a study trains: sizes × mixtures, and those held out of the fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mnmt_data.mixture import Mixture
from mnmt_data.prepared import Prepared, open_prepared
from mnmt_data.study import StudyFile
from mnmt_model.errors import RunError
from mnmt_model.presets import preset
from mnmt_model.run_plan import Role, RunPlan
from mnmt_model.shape import Shape
from mnmt_model.train_config import TrainConfig

TEMPERATURE = "temperature"


@dataclass(frozen=True, kw_only=True)
class SizeConfig:
    """One size: a preset or the fields of `[model]` it changes, and what of `[train]` goes with it."""

    preset: str | None = None
    encoder_layers: int | None = None
    decoder_layers: int | None = None
    d_model: int | None = None
    num_heads: int | None = None
    head_dim: int | None = None
    d_ff: int | None = None
    steps: int | None = None
    learning_rate: float | None = None

    def shape(self, default: Shape) -> Shape:
        """`default`, or the preset, with this size's changes."""
        return replace(preset(self.preset) if self.preset else default, **self._changes(Shape))

    def train(self, default: TrainConfig) -> TrainConfig:
        """`default` with this size's changes."""
        return replace(default, **self._changes(TrainConfig))

    def _changes(self, of: type[Shape] | type[TrainConfig]) -> dict[str, Any]:
        mine = {name: getattr(self, name) for name in vars(self)}
        return {f.name: mine[f.name] for f in fields(of) if mine.get(f.name) is not None}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every size with every mixture."""

    sizes: tuple[str, ...]
    mixtures: tuple[dict[str, float], ...]
    """{task: weight}, or {"temperature": T} for weights in proportion to each task's pairs^(1/T)."""


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """The `[sweep]` section of a study."""

    sizes: dict[str, SizeConfig]
    """Named sizes."""
    fit: Grid
    """Runs the laws are fitted to."""
    held_out: tuple[Grid, ...] = ()
    """Runs the laws must predict."""
    seeds: tuple[int, ...] = (1,)
    """Every run is trained once a seed."""

    def __post_init__(self) -> None:
        for _, grid in self.grids():
            for name in grid.sizes:
                if name not in self.sizes:
                    raise ValueError(f"`sizes` has no {name!r}; it has {', '.join(self.sizes)}")
            for mixture in grid.mixtures:
                if set(mixture) != {TEMPERATURE}:
                    Mixture(mixture)

    def grids(self) -> Iterator[tuple[Role, Grid]]:
        """The grids with their roles."""
        yield "fit", self.fit
        for grid in self.held_out:
            yield "held-out", grid


def plan_runs(study: StudyFile, data: Path) -> list[RunPlan]:
    """The runs of `study` over the prepared data in `data`, each once.

    Raises:
        RunError: if a mixture names a task the data do not have, or two grids hold the same run.
    """
    sweep = study.section("sweep", SweepConfig)
    shape, train = study.section("model", Shape), study.section("train", TrainConfig)
    prepared = open_prepared(data)
    plans: dict[str, RunPlan] = {}
    for role, size, mixture, seed in _cells(sweep):
        mixture = _over_all_tasks(study, _tempered(mixture, prepared), prepared.tasks)
        name = run_name(size, mixture, seed)
        if name in plans:
            raise RunError(f"{study.path}: [sweep] holds the run {name} twice")
        size_shape, size_train = _sized(study, size, sweep.sizes[size], shape, train)
        plans[name] = RunPlan(
            name=name,
            study=study.name,
            role=role,
            shape=size_shape,
            train=size_train,
            mixture=mixture,
            seed=seed,
            data=data,
        )
    return list(plans.values())


def run_name(size: str, mixture: Mapping[str, float], seed: int) -> str:
    """Folder name of a run, such as `d32_en-de-0.3_en-zh-0.7_seed1`."""
    weights = "_".join(f"{task}-{weight:g}" for task, weight in sorted(mixture.items()) if weight > 0)
    return f"{size}_{weights}_seed{seed}"


def _cells(sweep: SweepConfig) -> Iterator[tuple[Role, str, dict[str, float], int]]:
    for role, grid in sweep.grids():
        for size in grid.sizes:
            for mixture in grid.mixtures:
                for seed in sweep.seeds:
                    yield role, size, mixture, seed


def _sized(
    study: StudyFile, name: str, size: SizeConfig, shape: Shape, train: TrainConfig
) -> tuple[Shape, TrainConfig]:
    """Shape and optimisation of a size."""
    try:
        return size.shape(shape), size.train(train)
    except ValueError as error:
        raise RunError(f"{study.path}: [sweep.sizes.{name}] {error}") from None


def _tempered(mixture: Mapping[str, float], data: Prepared) -> Mapping[str, float]:
    """The weights of a mixture that may be given as a temperature."""
    if set(mixture) != {TEMPERATURE}:
        return mixture
    sizes = {task: len(data.shard("train", task)) for task in data.tasks}
    return Mixture.tempered(sizes, mixture[TEMPERATURE]).weights


def _over_all_tasks(
    study: StudyFile, mixture: Mapping[str, float], tasks: tuple[str, ...]
) -> dict[str, float]:
    """The mixture with every task of the data, those it does not name at weight 0."""
    unknown = sorted(set(mixture) - set(tasks))
    if unknown:
        raise RunError(
            f"{study.path}: [sweep] mixture names {unknown[0]!r}; the prepared tasks are {', '.join(tasks)}"
        )
    return {task: mixture.get(task, 0.0) for task in tasks}

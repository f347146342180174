"""The `[sweep]` and `[goal]` sections of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Literal

from mnmt_data.readers import canonical_task
from mnmt_data.stream import Mixture
from mnmt_data.study import Changes, unknown_key
from mnmt_model.runs.run_config import check_folder_name
from mnmt_model.runs.run_record import Role
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig

TEMPERATURE = "temperature"

MAX_SEED = 2**63 - 1
"""The largest seed of torch's generators on all devices."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a size is a change of, if not of `[model]`."""

    preset: str
    """A published model, in place of `[model]`."""


class SizeChanges(Changes):
    """What a size changes of `[model]` and `[train]`."""

    configs: ClassVar[tuple[type, ...]] = (Start, ModelConfig, TrainConfig)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All combinations of sizes and mixtures."""

    sizes: tuple[str, ...]
    """Names of `[sweep.sizes]`."""
    mixtures: tuple[dict[str, float] | str, ...]
    """{task: weight}; or ratios such as "en-de:3,en-fr:1"; or {"temperature": T} for weights proportional to
    each task's pairs^(1/T)."""
    weights: tuple[dict[str, float], ...] = field(init=False, default=())
    """The mixtures as tables."""

    def __post_init__(self) -> None:
        for name in ("sizes", "mixtures"):
            if not getattr(self, name):
                raise ValueError(f"`{name}` must not be empty.")
        for number, mixture in enumerate(self.mixtures):
            try:
                object.__setattr__(self, "weights", (*self.weights, _weights(mixture)))
            except ValueError as error:
                raise ValueError(f"`mixtures[{number}]`: {error}") from None


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """The `[sweep]` section of a study."""

    sizes: dict[str, SizeChanges]
    """{name: changes of `[model]` and `[train]`, and an optional `preset` to start from}."""
    fit: Grid
    """Runs that the laws are fitted to."""
    held_out: tuple[Grid, ...] = ()
    """Runs that the laws must predict."""
    seeds: tuple[int, ...] = (1,)
    """Every run is trained once for each seed."""

    def __post_init__(self) -> None:
        for name in self.sizes:
            check_folder_name(name)
        for key, _, grid in self.grids():
            if unknown := [name for name in grid.sizes if name not in self.sizes]:
                raise ValueError(
                    f"`{key}.sizes` holds an unknown size {unknown_key(unknown[0], [*self.sizes])}"
                )
        if not self.seeds or not all(0 <= seed <= MAX_SEED for seed in self.seeds):
            raise ValueError(f"`seeds` must be integers from 0 to 2^63 - 1, but are {list(self.seeds)}.")
        names = [run_name(size, mixture, seed) for _, size, mixture, seed in self.cells()]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"holds the run {twice[0]} twice.")

    def grids(self) -> Iterator[tuple[str, Role, Grid]]:
        """Yield the grids with their keys and roles."""
        yield "fit", "fit", self.fit
        for number, grid in enumerate(self.held_out):
            yield f"held_out[{number}]", "held-out", grid

    def cells(self) -> Iterator[tuple[Role, str, dict[str, float], int]]:
        """Yield the role, size, mixture and seed of every run."""
        for _, role, grid in self.grids():
            for size in grid.sizes:
                for mixture in grid.weights:
                    for seed in self.seeds:
                        yield role, size, mixture, seed


def run_name(size: str, mixture: Mapping[str, float], seed: int) -> str:
    """Return the folder name of a run, such as `d32_en-de-0.3_en-zh-0.7_seed1`."""
    weights = "_".join(f"{task}-{weight:g}" for task, weight in sorted(mixture.items()) if weight > 0)
    return f"{size}_{weights}_seed{seed}"


def _canonical(values: Mapping[str, float]) -> dict[str, float]:
    """Return {task: value} with tasks as `[data]` spells them."""
    return {canonical_task(task): value for task, value in values.items()}


def _weights(mixture: Mapping[str, float] | str) -> dict[str, float]:
    """Return a mixture as a table, with tasks as `[data]` spells them."""
    if isinstance(mixture, str):
        return _canonical(Mixture.parse(mixture).weights)
    if set(mixture) != {TEMPERATURE}:
        Mixture(mixture)
    elif not mixture[TEMPERATURE] > 0:
        raise ValueError(f"`{TEMPERATURE}` must be above 0, but is {mixture[TEMPERATURE]}.")
    return _canonical(mixture)


@dataclass(frozen=True, kw_only=True)
class GoalConfig:
    """The `[goal]` section of a study: what advice from its runs is for."""

    aim: Literal["mean", "worst"] = "mean"
    """`mean`: the least mean loss by `importance`; `worst`: the least worst loss."""
    importance: dict[str, float] = field(default_factory=dict)
    """{task: how much its loss counts}; by default all count alike."""
    size: str | None = None
    """Name of a size of `[sweep.sizes]`, of which `nox -s study` trains a model as advised."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "importance", _canonical(self.importance))
        for task, importance in self.importance.items():
            if not 0 < importance < inf:
                raise ValueError(f"`importance` must be finite and above 0, but {task} has {importance}.")
        if self.importance and self.aim == "worst":
            raise ValueError("`importance` has no part in the aim worst; leave one of them out.")

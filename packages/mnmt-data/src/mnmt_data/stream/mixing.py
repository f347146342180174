"""The `[train.mixing]` table of a study, and its stream of batches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.readers import canonical_task
from mnmt_data.store.json_lines import read_json
from mnmt_data.store.prepared import PreparedData
from mnmt_data.store.segments import check_file
from mnmt_data.store.shards import READ_WHOLE
from mnmt_data.stream.batch_stream import BatchStream
from mnmt_data.stream.hook import BatchHook
from mnmt_data.stream.mixture import Mixture, Phase, Schedule, explicit_scalarization
from mnmt_data.study import Ranges, check_ranges


@dataclass(frozen=True, kw_only=True)
class WeightPhase:
    """Weights that hold from a step on.

    Raises:
        ValueError: If the weights are not a `Mixture`.
    """

    step: int
    """The first step, from 1 up: step 0 has the run's own mixture."""

    weights: dict[str, float]
    """{task: weight}, summing to 1; tasks left out have weight 0."""

    def __post_init__(self) -> None:
        weights = {canonical_task(task): weight for task, weight in self.weights.items()}
        object.__setattr__(self, "weights", weights)
        Mixture(weights)


@dataclass(frozen=True, kw_only=True)
class MixingConfig:
    """The `[train.mixing]` table."""

    RANGES: ClassVar[Ranges] = {"(0, 1]": ("keep",)}

    scalarization: Literal["implicit", "explicit"] = "implicit"
    """`implicit`: draw tasks by their weights; `explicit`: draw them equally, weight their losses (eq. 4)."""

    phases: tuple[WeightPhase, ...] = ()
    """Other weights from later steps on."""

    keep: float = 1.0
    """Share of the training pairs in use, the best of the order that `mnmt-data select` makes."""

    hook: str | None = None
    """Function that changes the pairs of every batch, as module, colon and name (see `BatchHook`)."""

    def __post_init__(self) -> None:
        if self.hook is not None and not re.fullmatch(r"[\w.]+:[\w.]+", self.hook):
            raise ValueError(f"`hook` must be package.module:function, but is {self.hook!r}.")
        check_ranges(self)
        steps = [0, *(phase.step for phase in self.phases)]
        if steps != sorted(set(steps)):
            raise ValueError("`phases` must have rising steps, the first of at least 1.")

    def schedule(self, mixture: Mixture) -> Schedule:
        """Return the schedule that begins with `mixture`.

        Raises:
            ValueError: If a phase names a task that is not in the mixture.
        """
        weights = {0: mixture} | {
            phase.step: _mixture_over(mixture.tasks, phase.weights) for phase in self.phases
        }
        return Schedule(tuple(self._phase(step, each) for step, each in weights.items()))

    def _phase(self, step: int, mixture: Mixture) -> Phase:
        is_explicit = self.scalarization == "explicit"
        phase = explicit_scalarization(mixture) if is_explicit else Phase(mixture=mixture)
        return replace(phase, step=step)


def open_stream(
    data: PreparedData, mixture: Mixture, config: MixingConfig, *, batch_tokens: int, seed: int
) -> BatchStream:
    """Open the training batches of a run.

    Raises:
        DataError: If a shard, an order of selected data or the hook is missing or broken, the mixture names a
            task without training pairs, or a phase names a task that is not in the mixture.
    """
    data.check_trainable(mixture.tasks)
    try:
        schedule = config.schedule(mixture)
    except ValueError as error:
        raise DataError(f"[train.mixing] {error}") from None
    tasks = schedule.tasks_drawn
    return BatchStream(
        {task: data.shard("train", task) for task in tasks},
        schedule,
        batch_tokens=batch_tokens,
        seed=seed,
        orders={task: read_order(data, task) for task in tasks} if config.keep < 1 else None,
        keep=config.keep,
        hook=BatchHook.load(config.hook, data) if config.hook else None,
    )


def order_path(data: Path, task: str) -> Path:
    """Return the path of a task's training rows, best first, as `mnmt-data select` writes them."""
    return data / "selection" / f"train.{task}.npy"


def read_order(data: PreparedData, task: str) -> NDArray[np.int64]:
    """Map a task's training rows, best first, into memory.

    Raises:
        DataError: If the file is missing, damaged or of other data.
    """
    path, pairs = order_path(data.folder, task), len(data.shard("train", task))
    try:
        if path.stat().st_size <= READ_WHOLE:
            check_file(path, sha256=read_json(path.with_suffix(".json"))["sha256"])
        order: NDArray[np.int64] = np.load(path, mmap_mode="r")
    except FileNotFoundError:
        raise DataError(f"{path}: no such order of selected data; `mnmt-data select` makes it.") from None
    except (EOFError, ValueError, KeyError, OSError, TokenError) as error:
        raise DataError(f"{path}: not an order of selected data ({error}); select again.") from None
    if order.shape != (pairs,) or order.dtype != np.int64:
        what = f"must hold the {pairs} rows of the shard, but is {order.dtype}{order.shape}"
        raise DataError(f"{path}: {what}; select again.")
    return order


def _mixture_over(tasks: tuple[str, ...], weights: Mapping[str, float]) -> Mixture:
    if unknown := sorted(set(weights) - set(tasks)):
        raise ValueError(
            f"`phases` must be of the run's tasks ({', '.join(tasks)}), but one is {unknown[0]}."
        )
    return Mixture({task: weights.get(task, 0.0) for task in tasks})

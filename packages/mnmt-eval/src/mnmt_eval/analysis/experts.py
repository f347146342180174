"""Which experts of a mixture serve which languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_eval.language import languages_of
from mnmt_model.runs import ExpertLoads, mixture_names, read_expert_loads, read_run, specialisation

Floats = NDArray[np.float64]

_NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class LayerSpecialisation:
    """How much the expert of a token in one layer tells about its task, or its source or target language."""

    share: float
    """Mutual information over `entropy`: 0 if the expert says nothing about it, 1 if it determines it."""
    lower: float
    upper: float
    """Ends of the 95% interval of `share`."""
    nats: float
    """The mutual information, without the bias by chance."""
    chance: float
    """The bias by chance in nats, which has been subtracted."""
    entropy: float
    """Entropy of the task or language in nats, the greatest mutual information."""


@dataclass(frozen=True, kw_only=True)
class ExpertLayer:
    """The use of the experts of one mixture."""

    name: str
    """`encoder 2`, or `layer 2` of a language model."""
    specialisation: Mapping[str, LayerSpecialisation]
    """{`task`, `source` or `target`: how much the expert tells about it}; languages where both vary."""
    loads: Sequence[float]
    """Choices of each expert, over its fair share; each task has the same weight."""
    shares: Sequence[Sequence[float]]
    """The share of each expert in the choices of each task, `(tasks, experts)`."""


@dataclass(frozen=True, kw_only=True)
class ExpertUse:
    """The use of all experts of a run on a test set."""

    run: str
    testset: str
    step: int
    """The step of the model that was measured."""
    tasks: Sequence[str]
    """Tasks, with similar ones beside each other."""
    layers: Sequence[ExpertLayer]


def read_expert_use(folder: Path, testset: str, *, name: str | None = None) -> ExpertUse | None:
    """Describe how a run's tasks use its experts, from the files that `mnmt-eval score` writes.

    Args:
        folder: The run's folder.
        testset: The test set.
        name: The run's name; by default the one in its record.

    Returns:
        The description; None if there are no files of two tasks, as of a dense model.

    Raises:
        RunError: If the run's record cannot be read.
    """
    loads = read_expert_loads(folder, testset)
    if loads is None or len(loads.tasks) < 2:
        return None
    record = read_run(folder)
    return expert_use(loads, mixture_names(record.model), run=name or record.run, testset=testset)


def expert_use(loads: ExpertLoads, names: Sequence[str], *, run: str, testset: str) -> ExpertUse:
    """Describe how the tasks of a test set use the experts.

    Args:
        loads: Choices by block of sentences, layer, task and expert.
        names: The names of the layers.
        run: The name of the run.
        testset: The name of the test set.
    """
    counts = loads.loads.sum(axis=0)
    shares = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
    order = order_alike(np.concatenate(list(shares), axis=1))
    tasks = [loads.tasks[place] for place in order]
    estimates = {
        name: _estimates(loads.loads[:, :, order], groups) for name, groups in _groups(tasks).items()
    }
    return ExpertUse(
        run=run,
        testset=testset,
        step=loads.step,
        tasks=tasks,
        layers=[
            ExpertLayer(
                name=name,
                specialisation={of: layers[place] for of, layers in estimates.items()},
                loads=(shares[place].mean(axis=0) * shares.shape[2]).tolist(),
                shares=shares[place][order].tolist(),
            )
            for place, name in enumerate(names)
        ],
    )


def order_alike(rows: Floats) -> list[int]:
    """Return an order of rows in which similar rows are beside each other.

    Clusters with the least mean distance are joined, average linkage (Sokal and Michener 1958), each time at
    those ends that are nearest. The distance is the sum of absolute differences.

    Args:
        rows: `(rows, columns)`.
    """
    distances = np.abs(rows[:, None] - rows[None]).sum(axis=2)
    clusters = {number: [number] for number in range(len(rows))}
    between = distances.copy()
    np.fill_diagonal(between, np.inf)
    while len(clusters) > 1:
        one, other = (int(place) for place in np.unravel_index(between.argmin(), between.shape))
        sizes = len(clusters[one]), len(clusters[other])
        joined = (sizes[0] * between[one] + sizes[1] * between[other]) / sum(sizes)
        joined[one] = np.inf
        between[one], between[:, one] = joined, joined
        between[other], between[:, other] = np.inf, np.inf
        clusters[one] = _join(clusters[one], clusters.pop(other), distances)
    (order,) = clusters.values()
    return order


def _join(one: list[int], other: list[int], distances: Floats) -> list[int]:
    pairs = [(a, b) for a in (one, one[::-1]) for b in (other, other[::-1])]
    first, second = min(pairs, key=lambda pair: distances[pair[0][-1], pair[1][0]])
    return first + second


def _groups(tasks: Sequence[str]) -> dict[str, list[int] | None]:
    """Return {`task`, `source`, `target`: the group of each task}, languages where they divide the tasks."""
    groups: dict[str, list[int] | None] = {"task": None}
    for side, name in enumerate(("source", "target")):
        languages = [languages_of(task)[side] for task in tasks]
        numbers = {language: number for number, language in enumerate(dict.fromkeys(languages))}
        if 1 < len(numbers) < len(tasks):
            groups[name] = [numbers[language] for language in languages]
    return groups


def _estimates(blocks: NDArray[np.int64], groups: list[int] | None) -> list[LayerSpecialisation]:
    """Return the specialisation of each layer on groups of tasks."""
    estimate = specialisation(blocks, groups)
    scale = estimate.entropy or 1.0
    return [
        LayerSpecialisation(
            share=nats / scale,
            lower=(nats - _NORMAL_95 * error) / scale,
            upper=(nats + _NORMAL_95 * error) / scale,
            nats=nats,
            chance=plain - nats,
            entropy=estimate.entropy,
        )
        for nats, error, plain in zip(
            estimate.corrected.tolist(), estimate.error.tolist(), estimate.nats.tolist(), strict=True
        )
    ]

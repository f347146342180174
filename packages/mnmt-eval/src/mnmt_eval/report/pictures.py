"""Pictures of which experts serve which tasks, as the page's script draws them."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mnmt_eval.analysis.experts import ExpertLayer, ExpertUse

NONE, LEAST, EVEN, MOST = 0, 1, 128, 255
"""Bytes of a picture: a task never chooses the expert, far less than all tasks, as often, or far more."""

STEPS = 16
"""Bytes from one power of 2 to the next."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """How much more each task uses each expert of a layer than tasks do on average."""

    name: str
    """The name of the layer, and of its run in short."""
    tasks: Sequence[str]
    loads: Sequence[float]
    """Choices of each expert, over its fair share."""
    ratios: str
    """(tasks, experts) bytes in base64: `EVEN` + `STEPS` log2 of the expert's share in the task's choices
    over the mean of its shares in those of all tasks."""


def pictures(uses: Sequence[ExpertUse]) -> list[Picture]:
    """Return the pictures of all layers of all runs."""
    names = short_names([use.run for use in uses])
    return [
        _picture(use, layer, f"{layer.name}, {name}")
        for use, name in zip(uses, names, strict=True)
        for layer in use.layers
    ]


def short_names(runs: Sequence[str]) -> list[str]:
    """Return names of runs without their mixtures of tasks, `SIZE_TASKS_seedN` as `SIZE seedN`.

    They stay as they are where two would be the same.
    """
    names = [re.sub(r"^(.+?)_.+_(seed\d+)$", r"\1 \2", run) for run in runs]
    return names if len(set(names)) == len(set(runs)) else list(runs)


def _picture(use: ExpertUse, layer: ExpertLayer, name: str) -> Picture:
    shares = np.asarray(layer.shares)
    mean = shares.mean(axis=0)
    ratios = np.divide(shares, mean, out=np.zeros_like(shares), where=mean > 0)
    steps = EVEN + STEPS * np.log2(np.where(ratios > 0, ratios, 1))
    coded = np.where(ratios > 0, steps.round().clip(LEAST, MOST), NONE).astype(np.uint8)
    return Picture(
        name=name,
        tasks=use.tasks,
        loads=[round(load, 3) for load in layer.loads],
        ratios=base64.b64encode(coded.tobytes()).decode("ascii"),
    )

"""Shapes of models: those of a study, and larger ones that can be built like them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

_RUN = re.compile(r"([^_]+)_.+_seed\d+")  # SIZE_TASK-WEIGHT_…_seedN
_COUNTED = re.compile(r"n(\d+)")  # a size called by its parameters
_STEP = 4  # of d_model; smaller steps would break heads
_WIDTHS = ("d_model", "d_ff", "head_dim")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A size of a study, and what it is made of."""

    name: str
    num_params: float
    """N, parameters without embeddings."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Its settings in the study; empty where no study is known."""


def sizes_of(rows: pd.DataFrame, study: Mapping[str, Any]) -> list[Shape]:
    """Return the sizes of a table by name, with a study's settings where it has them, and larger ones.

    Args:
        rows: The table's rows, whose runs are called SIZE_TASK-WEIGHT_…_seedN.
        study: The content of the study file that trained them; may be empty.
    """
    settings = study.get("sweep", {}).get("sizes", {})
    matches = rows["run"].astype(str).str.extract(_RUN.pattern, expand=False)
    sizes = rows.assign(name=matches).dropna(subset=["name", "size"]).groupby("name")["size"].first()
    counted = {name: float(match[1]) for name in settings if (match := _COUNTED.fullmatch(name))}
    sizes = pd.concat([sizes, pd.Series(counted, dtype=float)[lambda new: ~new.index.isin(sizes.index)]])
    known = [
        Shape(name=str(name), num_params=float(size), settings=settings.get(name, {}))
        for name, size in sizes.sort_values().items()
    ]
    return [*known, *_larger(known)]


def _larger(known: Sequence[Shape]) -> list[Shape]:
    """Return shapes about √2 and 2 times as large as the largest, of its proportions and depth.

    At one depth N = a d² + b d in d_model, where the other widths keep their proportions; the two largest
    sizes give a and b.
    """
    wide = [shape for shape in known if isinstance(shape.settings.get("d_model"), int)]
    if len(wide) < 2 or not _alike(wide[-2], wide[-1]):
        return []
    widths = np.array([shape.settings["d_model"] for shape in wide[-2:]], float)
    factors = np.linalg.solve(
        np.stack([widths**2, widths], axis=1), [shape.num_params for shape in wide[-2:]]
    )
    return [
        shape
        for ratio in (np.sqrt(2.0), 2.0)
        if (shape := _widened(wide[-1], factors, ratio * wide[-1].num_params)) is not None
    ]


def _alike(one: Shape, other: Shape) -> bool:
    """Return whether two shapes differ in their widths only, and those in proportion."""
    keys = set(one.settings) | set(other.settings)
    ratios = {other.settings[key] / one.settings[key] for key in _WIDTHS if key in keys}
    rest = [key for key in keys if key not in _WIDTHS]
    return len(ratios) == 1 and all(one.settings.get(key) == other.settings.get(key) for key in rest)


def _widened(largest: Shape, factors: np.ndarray[Any, np.dtype[np.float64]], target: float) -> Shape | None:
    """Return the shape nearest to a number of parameters; None if its widths are not whole numbers."""
    square, line = factors
    width = (np.sqrt(line**2 + 4 * square * target) - line) / (2 * square)
    d_model = int(_STEP * round(width / _STEP))
    ratio = d_model / largest.settings["d_model"]
    widths = {key: ratio * largest.settings[key] for key in _WIDTHS if key in largest.settings}
    if any(abs(value - round(value)) > 1e-9 for value in widths.values()):
        return None
    settings = {**largest.settings, **{key: round(value) for key, value in widths.items()}}
    size = float(square * d_model**2 + line * d_model)
    return Shape(name=f"d{d_model}", num_params=round(size), settings=settings)

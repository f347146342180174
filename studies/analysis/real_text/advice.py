"""What the law advises for the largest model from smaller ones, and what the models then reached."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from benchmarks.measurement import Figures
from mnmt_laws import ResidualBootstrap, fit, recommend
from studies.analysis.real_text.laws import WITH_LENGTH
from studies.analysis.real_text.pairs import GRID, UNSEEN, Pair

PREFERENCES = ((0.5, 0.5), (0.8, 0.2), (0.2, 0.8))
"""λ of both tasks: what their losses count."""

NEAR = 0.006
"""A model trained as advised has a weight so near the advised one, which is rounded to a hundredth."""


def advise(pair: Pair, *, refits: int) -> Iterator[Figures]:
    """Yield, for each preference, the weight that the law advises, and what is reached there and elsewhere.

    The law of size, length and mixture is fitted to the smaller sizes at all lengths, as `mnmt-laws
    recommend --size N --tokens D` does it.
    """
    fitted = fit(pair.observations(), law=WITH_LENGTH, uncertainty=ResidualBootstrap(refits=refits))
    losses = largest_models(pair)
    tokens = float(losses["tokens"].median())
    for factors in PREFERENCES:
        preference = dict(zip(pair.tasks, factors, strict=True))
        answer = recommend(fitted, size=pair.largest, tokens=tokens, preference=preference)
        weight = answer.weights[pair.tasks[0]]
        yield {
            "pair": pair.name, "preference": list(factors), "weight": weight,
            "interval": list(answer.weight_intervals[pair.tasks[0]]),
            "predicted": float(np.dot([answer.predicted[task] for task in pair.tasks], factors)),
            "doubts": list(answer.doubts), **_reached(losses, pair.tasks, factors, weight),
        }  # fmt: skip


def largest_models(pair: Pair, *, testset: str = "test") -> pd.DataFrame:
    """Return the losses of the largest models at the longest training: a row a mixture, a column a task."""
    rows = pair.observations(testset=testset, step=pair.steps[-1], fit_all=True).frame
    rows = rows[rows["size"].eq(pair.largest)]
    first = pair.first_weights(rows)
    table = rows.assign(first=first).pivot_table(index="first", columns="task", values="value")
    return table.assign(tokens=rows.groupby(first)["tokens"].median())


def _reached(losses: pd.DataFrame, tasks: list[str], factors: tuple[float, ...], weight: float) -> Figures:
    """Return the preferred sum of losses as advised, at equal weights, and at the grid's best weight."""
    sums = losses[tasks] @ pd.Series(factors, index=tasks)
    grid = sums[[w for w in sums.index if w in (*GRID, UNSEEN)]].sort_values()
    near = sums[abs(sums.index.to_numpy(float) - weight) < NEAR]
    return {
        "reached": float(near.iloc[0]) if len(near) else None,
        "between": _between(grid.sort_index(), weight),
        "equal": float(sums[0.5]) if 0.5 in sums.index else None,
        "best_weight": float(grid.index[0]), "best": float(grid.iloc[0]),
        "grid": {f"{w:g}": float(value) for w, value in grid.sort_index().items()},
    }  # fmt: skip


def _between(sums: pd.Series, weight: float) -> float | None:
    """Return the sum at a weight between those of the grid, by a smooth curve through all of them."""
    inner = sums[(sums.index > 0) & (sums.index < 1)]
    if not inner.index.min() <= weight <= inner.index.max():
        return None
    return float(PchipInterpolator(inner.index.to_numpy(float), inner.to_numpy(float))(weight))

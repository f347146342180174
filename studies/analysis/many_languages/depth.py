"""Twice the layers, beside what as many more FLOPs gain in the dense model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from studies.analysis.many_languages.questions import contrasts

EQUAL_RATES = (
    ("dense-deep, T = 1", "dense, T = 1"),
    ("dense-deep-rate-025, T = 1", "dense-rate-025, T = 1"),
)
"""Twice the layers and the dense model, at rates of .05 and of .025."""


def depths(rows: pd.DataFrame, dev: pd.DataFrame) -> Iterator[Figures]:
    """Yield for each length the contrasts of twice the layers with the dense model, nats a token.

    First each at its better rate, with `by_flops`: what `times_the_flops` of twice the layers would change in
    the dense model, by its line over log FLOPs from the shortest to the longest training. Then those at equal
    rates.

    Args:
        rows: Runs of both sizes, rates and lengths.
        dev: The same on the dev set, which chooses the better rate.
    """
    costs = rows.groupby(["name", "step"])["flops"].mean()
    better = {step: _better_rates(some) for step, some in dev.groupby("step")}
    dense = [(names[1], step) for step, names in better.items()]
    losses = rows.groupby(["name", "step"])["value"].mean()
    slope = np.polyfit(np.log(costs[dense]), losses[dense], 1)[0]
    for step, some in rows.groupby("step"):
        deep, dense_model = better[step]
        more = float(costs[deep, step] / costs[dense_model, step])
        (best,) = _contrast(some, better[step])
        yield best | {"times_the_flops": more, "by_flops": float(slope * np.log(more))}
        for pair in (pair for pair in EQUAL_RATES if pair != better[step]):
            yield from _contrast(some, pair)


def _contrast(rows: pd.DataFrame, pair: tuple[str, str]) -> Iterator[Figures]:
    """Yield the contrast of two models, whose own seeds alone tell the interval over seeds."""
    return contrasts(rows[rows["name"].isin(pair)], [pair])


def _better_rates(dev: pd.DataFrame) -> tuple[str, str]:
    """Return the names of twice the layers and of the dense model at their rates of the least mean loss."""
    means = dev.groupby("name")["value"].mean()
    deep, dense = (str(means[[*names]].idxmin()) for names in zip(*EQUAL_RATES, strict=True))
    return deep, dense

"""What the tables answer: gains over bilingual models, experts at equal cost, depth, temperature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_eval.analysis.cost import SystemCost, quality_at_cost
from studies.analysis.many_languages.models import (
    BILINGUAL,
    costs,
    gains,
    interval_of_mean,
    values_by_language,
)

CONTRASTS = (
    ("moe4, T = 1", "dense, T = 1"),
    ("moe16, T = 1", "dense, T = 1"),
    ("moe64, T = 1", "dense, T = 1"),
    ("moe16, T = 1", "moe4, T = 1"),
    ("moe64, T = 1", "moe16, T = 1"),
    ("dense-deep, T = 1", "dense, T = 1"),
    ("moe16-deep, T = 1", "moe16, T = 1"),
    ("moe16-deep, T = 1", "dense-deep, T = 1"),
    ("dense, T = 5", "dense, T = 1"),
    ("moe4, T = 5", "moe4, T = 1"),
    ("moe16, T = 5", "moe16, T = 1"),
    ("moe64, T = 5", "moe64, T = 1"),
)
"""Models that differ in one thing."""

HALVES = ("most text", "least text")


def quality_and_cost(rows: pd.DataFrame, metric: str) -> Iterator[Figures]:
    """Yield the M4 table in small: mean over the languages, Δ over the bilingual models, and cost."""
    table, price = values_by_language(rows, metric), costs(rows)
    values = table.to_dict()
    systems = [
        SystemCost(name=str(name), values=values[name], cost=float(price["flops"][name]))
        for name in table.columns.drop(BILINGUAL)
    ]
    results = quality_at_cost(systems, values[BILINGUAL], higher_is_better=metric != "loss")
    for result in results:
        yield {
            "metric": metric, "model": result.name, "parameters": float(price["size"][result.name]),
            "flops": result.cost, "mean": result.value, "delta": result.difference,
            "delta_interval": interval_of_mean(table[result.name] - table[BILINGUAL]),
            "better_in": int((gains(rows, metric)[result.name] > 0).sum()), "efficient": result.efficient,
        }  # fmt: skip
    count, cost = len(table), costs(rows).loc[BILINGUAL]
    yield {
        "metric": metric, "model": f"{count} bilingual models", "parameters": cost["size"] * count,
        "flops": cost["flops"] * count, "mean": float(table[BILINGUAL].mean()),
    }  # fmt: skip


def gains_by_text(rows: pd.DataFrame, metric: str) -> Iterator[Figures]:
    """Yield, for each model, gains of the half with most text and of the other, and their slope.

    The slope is that of the gain over the logarithm of the language's share of the text, to base 2: what
    twice as much text changes.
    """
    better = gains(rows, metric)
    share = rows.drop_duplicates("task").set_index("task")["share"].reindex(better.index)
    half = len(better) // 2
    for name in better:
        slope, interval = _slope(np.log2(share.to_numpy(float)), better[name].to_numpy(float))
        yield {
            "metric": metric, "model": name, HALVES[0]: float(better[name].iloc[:half].mean()),
            HALVES[1]: float(better[name].iloc[half:].mean()), "per_doubling": slope, "interval": interval,
        }  # fmt: skip


def _slope(x: np.ndarray, y: np.ndarray, *, draws: int = 2000) -> tuple[float, list[float]]:
    """Return the least-squares slope and its 95% interval, languages drawn with replacement."""
    rng = np.random.default_rng(0)
    samples = [sample for sample in rng.integers(len(x), size=(draws, len(x))) if np.ptp(x[sample]) > 0]
    slopes = [float(np.polyfit(x[sample], y[sample], 1)[0]) for sample in samples]
    return float(np.polyfit(x, y, 1)[0]), [float(end) for end in np.quantile(slopes, [0.025, 0.975])]


def contrasts(
    rows: pd.DataFrame, metric: str, pairs: Iterable[tuple[str, str]] = CONTRASTS
) -> Iterator[Figures]:
    """Yield the mean difference of two models over the languages, with its interval over languages.

    `by_seed` has the mean difference of the models of each seed.
    """
    table = values_by_language(rows, metric)
    by_seed = [values_by_language(part, metric) for _, part in rows.groupby("seed")]
    for name, other in pairs:
        if {name, other} <= set(table.columns):
            less = table[name] - table[other]
            lower = less < 0 if metric == "loss" else less > 0
            half = len(less) // 2
            yield {
                "metric": metric, "model": name, "other": other, "difference": float(less.mean()),
                "interval": interval_of_mean(less), "better_in": int(lower.sum()),
                HALVES[0]: float(less.iloc[:half].mean()), HALVES[1]: float(less.iloc[half:].mean()),
                "by_seed": [float((of_seed[name] - of_seed[other]).mean()) for of_seed in by_seed
                            if {name, other} <= set(of_seed)],
            }  # fmt: skip

"""Who gains from one model, after equal steps and at equal cost, and which experts serve which languages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

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


UPDATED = "bilingual, a twelfth of the batch"


AT_EQUAL_COST = (
    *((name, UPDATED) for name in ("dense, T = 1", "moe16, T = 1", "dense, T = 5", "moe16, T = 5")),
    ("moe16, T = 1", "dense, T = 1"),
    ("moe16, T = 5", "dense, T = 5"),
    ("dense, T = 5", "dense, T = 1"),
    ("moe16, T = 5", "moe16, T = 1"),
)
"""Models of all languages after the longest training, and what they are compared with."""


def at_equal_cost(longer: pd.DataFrame, batches: pd.DataFrame) -> Iterator[Figures]:
    """Yield differences of the models that were trained longest; see `longer_training` for the arguments."""
    longest = longer[longer["step"].eq(longer["step"].max())]
    return contrasts(pd.concat([longest, batches.assign(name=UPDATED)]), "loss", AT_EQUAL_COST)


def longer_training(rows: pd.DataFrame, longer: pd.DataFrame, batches: pd.DataFrame) -> Iterator[Figures]:
    """Yield, for each model and length, how much worse than bilingual it is (`delta`, nats a token).

    Twelve times the steps of a bilingual model cost what all twelve cost, and read a language as often.

    Args:
        rows: The study's runs, of `read_runs`.
        longer: Those of some of its models, trained for several lengths.
        batches: Bilingual models of as many tokens in twelve times as many steps.
    """
    alone = values_by_language(rows)[BILINGUAL]
    brief = rows[rows["name"].isin(longer["name"])]
    models = pd.concat([brief, longer, batches.assign(name=UPDATED)])
    for (name, step), some in models.groupby(["name", "step"]):
        losses = values_by_language(some)[name]
        worse = (losses - alone).reindex(alone.index)
        half = len(worse) // 2
        yield {
            "model": name, "steps": step, "flops": float(some["flops"].median()), "mean": losses.mean(),
            "delta": worse.mean(), "delta_interval": interval_of_mean(worse),
            "delta_by_seed": [float((values_by_language(of_seed)[name] - alone).mean())
                              for _, of_seed in some.groupby("seed")],
            "better_in": int((worse < 0).sum()), HALVES[0]: worse.iloc[:half].mean(),
            HALVES[1]: worse.iloc[half:].mean(), "by language": worse.to_dict(),
        }  # fmt: skip


def write_experts(uses: Path, table: Path, names: dict[str, str]) -> None:
    """Make experts.csv of what `mnmt-eval analyse --json` printed.

    Args:
        uses: The output.
        table: The table to write: a row for each model, layer, language and expert, and how much the expert
            tells of the language, from 0 to 1, with its 95% interval, and the least and the greatest load
            in fair shares.
        names: {run: name of the model}.
    """
    runs = json.loads(uses.read_text(encoding="utf-8"))["experts"]
    rows = [row for use in runs if use["run"] in names for row in _rows_of(use, names[use["run"]])]
    pd.DataFrame(rows).to_csv(table, index=False, float_format="%.4g")


def _rows_of(use: Figures, model: str) -> Iterator[Figures]:
    for layer in use["layers"]:
        known = next(iter(layer["specialisation"].values()))
        of_layer = {
            "model": model, "layer": layer["name"], "told": known["share"], "told_lower": known["lower"],
            "told_upper": known["upper"], "least_load": min(layer["loads"]), "most_load": max(layer["loads"]),
        }  # fmt: skip
        for task, shares in zip(use["tasks"], layer["shares"], strict=True):
            for expert, share in enumerate(shares):
                yield {**of_layer, "task": task, "expert": expert, "share": share}

"""Decisions on real text: advice from one seed's smaller models, judged by the losses of the largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from benchmarks.measurement import Figures
from mnmt_laws import Forecast, forecast, observe, recommend
from mnmt_laws.answers.decision import Want
from mnmt_laws.arrays import Array
from studies.page import PAGES

TABLES = ("en-de-zh", "en-de-fr", "de-zh-en")
SEEDS = (1, 2)
LEAST, STEP = 0.1, 0.01
"""The least weight trained, and the distance of the weights among which the best is sought."""

PREFERENCES = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4))


def decide_real_text(tables: Sequence[str] = TABLES) -> Iterator[Figures]:
    """Yield each decision: realised and stated regret, in nats per token or, of relative losses, a share."""
    for name in tables:
        table = observe(PAGES / f"real-text/{name}.csv", testset="test", metric="loss")
        frame = table.frame
        large = frame["size"].eq(frame["size"].max()) & frame["step"].eq(frame["step"].max())
        losses, alone = losses_of(frame[large & frame["weight"].gt(0)])
        for seed in SEEDS:
            small = frame[frame["size"].lt(frame["size"].max()) & frame["seed"].eq(seed)]
            predicted = forecast(
                replace(table, frame=small.assign(role="fit").reset_index(drop=True)),
                size=float(frame["size"].max()),
                tokens=float(frame.loc[large, "tokens"].median()),
            )
            for title, want in wants_of(predicted.tasks).items():
                key = {"table": name, "seed": seed, "want": title}
                yield key | decide(predicted, want, losses, alone)


def wants_of(tasks: list[str]) -> dict[str, Want]:
    """Return what may be wanted of two tasks, by name."""
    equal = dict.fromkeys(tasks, 0.5)
    means = {
        f"{one}:{other}": Want(
            importance=dict(zip(tasks, (one / (one + other), other / (one + other)), strict=True))
        )
        for one, other in PREFERENCES
    }
    return means | {
        "the worse of both": Want(aim="worst", importance=equal),
        "the worse of both, relative to alone": Want(aim="relative", importance=equal),
    }


def mixtures() -> Array:
    """Return (n, 2) the mixtures among which the best is sought."""
    first = np.round(np.arange(LEAST, 1 - LEAST + STEP / 2, STEP), 6)
    return np.stack([first, 1 - first], axis=1)


def losses_of(rows: pd.DataFrame) -> tuple[Array, Array]:
    """Return (tasks, n) losses at all mixtures, and (tasks,) of a model of each task alone.

    They are a monotone cubic over log p through the seeds' means.
    """
    means = rows.groupby(["task", "weight"])["value"].mean()
    tasks = sorted(rows["task"].unique())
    trained = [means[task][means[task].index >= LEAST] for task in tasks]
    curves = [PchipInterpolator(np.log(values.index), values) for values in trained]
    points = mixtures()
    losses = [curve(np.log(points[:, place])) for place, curve in enumerate(curves)]
    return np.array(losses), np.array([values[1.0] for values in trained])


def decide(predicted: Forecast, want: Want, losses: Array, alone: Array) -> Figures:
    """Return what the advice, p = importance and equal weights lose, and what the advice states of itself."""
    advice = recommend(predicted, aim=want.aim, preference=want.importance, least_weight=LEAST)
    costs = want.costs(losses[None], alone[None], predicted.tasks)[0]
    first = mixtures()[:, 0]

    def regret(weight: float) -> float:
        return float(np.interp(weight, first, costs) - costs.min())

    stated = {rival.name: advice.regret + rival.loss for rival in advice.rivals}
    task = predicted.tasks[0]
    return {
        "weight": advice.weights[task], "best": float(first[costs.argmin()]), "rule": advice.rule,
        "realised": regret(advice.weights[task]), "stated": advice.regret,
        "p = λ": regret(want.importance[task]),
        "equal": regret(0.5), "equal stated": stated.get("equal weights", advice.regret),
    }  # fmt: skip


def summarise_decisions(decisions: pd.DataFrame) -> pd.DataFrame:
    """Return means of what was lost and stated, for each want, each table, and all together."""
    columns = ["realised", "stated", "p = λ", "equal", "equal stated"]
    groups = [decisions.groupby(name, sort=False)[columns].mean() for name in ("want", "table")]
    whole = decisions[columns].mean().to_frame("all").T
    return pd.concat([*groups, whole]).rename_axis("over").reset_index()

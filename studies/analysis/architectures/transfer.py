"""Transfer to directions without text and to one with little, by architecture."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from studies.analysis.architectures.models import ORIGINS, SUPERVISED, ZERO_SHOT, by_seed, of_task, over_seeds

UNTRAINED = "zero-shot minus supervised"
ALONE, BESIDE = "alone", "beside en-fr"
LITTLE = "en-de"
"""The direction with a tenth of its text."""


def scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Return losses and scores after the longest training as `over_seeds` does, by `metric`."""
    tables = {metric: by_seed(rows, metric=metric) for metric in rows["metric"].unique()}
    parts = {
        metric: over_seeds(pd.concat([some[~some["task"].isin(ORIGINS)], _untrained(some)]))
        for metric, some in tables.items()
    }
    return pd.concat(parts, names=["metric"]).reset_index("metric")


def _untrained(rows: pd.DataFrame) -> pd.DataFrame:
    """Return untrained directions minus trained ones, as rows of a task `UNTRAINED`."""
    keys = [name for name in rows if name not in ("task", "value")]
    values = rows.pivot(index=keys, columns="task", values="value")
    return (values[ZERO_SHOT] - values[SUPERVISED]).rename("value").reset_index().assign(task=UNTRAINED)


def little_text(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the test losses of `LITTLE` as `over_seeds` does; `task` is a mixture and a length."""
    losses = by_mixture(rows)
    return _as_tasks({f"{mixture}, {steps:,} steps": losses[mixture, steps] for mixture, steps in losses})


def by_mixture(rows: pd.DataFrame, *, testset: str = "test") -> pd.DataFrame:
    """Return the losses of `LITTLE`: rows are models, widths and seeds, columns mixture and length.

    Args:
        rows: A run table of models that were trained on this direction alone or beside another.
        testset: Of the losses.
    """
    some = rows[rows["task"].eq(LITTLE) & rows["weight"].gt(0)]
    parts = {
        (ALONE if weight == 1 else BESIDE, steps): of_task(by_seed(part, testset=testset), SUPERVISED)
        for (weight, steps), part in some[some["annealed"].eq(1)].groupby(["weight", "step"])
    }
    keys = ["model", "width", "size", "seed"]
    losses = pd.DataFrame({name: part.set_index(keys)["value"] for name, part in parts.items()})
    return losses.rename_axis(columns=["mixture", "step"])


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Return by how much `LITTLE` is better beside another direction than alone, as `over_seeds` does.

    `task` says what is compared: as many steps; as much text of the direction, which a model alone reads at
    twice the pace; and the best length of either, by dev loss.
    """
    losses, dev = (by_mixture(rows, testset=name) for name in ("test", "dev"))
    alone, beside = losses[ALONE], losses[BESIDE]
    parts = {f"{steps:,} steps each": alone[steps] - beside[steps] for steps in alone}
    equal = {
        f"{s:,} steps alone, {2 * s:,} beside": alone[s] - beside[2 * s] for s in alone if 2 * s in beside
    }
    best = {"the best length of each": _at_best(alone, dev[ALONE]) - _at_best(beside, dev[BESIDE])}
    return _as_tasks({**parts, **equal, **best})


def _as_tasks(parts: Mapping[str, pd.Series]) -> pd.DataFrame:
    return over_seeds(pd.concat(parts, names=["task"]).rename("value").reset_index())


def _at_best(losses: pd.DataFrame, dev: pd.DataFrame) -> pd.Series:
    """Return the test losses of each model at the length of its least mean dev loss over seeds."""
    mean = dev.groupby(["model", "width"]).transform("mean")
    return losses.where(mean.eq(mean.min(axis=1), axis=0)).mean(axis=1)

"""Losses and scores of directions without text beside those of trained ones, by architecture."""

from __future__ import annotations

import pandas as pd

from studies.analysis.architectures.models import ORIGINS, SUPERVISED, ZERO_SHOT, by_seed, over_seeds

UNTRAINED = "zero-shot minus supervised"


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

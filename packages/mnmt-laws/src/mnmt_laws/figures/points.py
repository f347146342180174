"""Which measured points were corrected for convergence."""

from __future__ import annotations

import pandas as pd

from mnmt_laws.answers.mixtures.frontier import observed_pairs
from mnmt_laws.tables.observations import Observations

NOTE = "corrected for convergence"
_RUN = ["run", "task", "size", "weight"]


def corrected_rows(rows: pd.DataFrame) -> pd.Series:
    """Return for each row whether its value was read at the horizon of its learning curve."""
    if "corrected" not in rows:
        return pd.Series(False, index=rows.index)
    return rows["corrected"].fillna(False).astype(bool)


def mark_corrected(rows: pd.DataFrame, observed: pd.DataFrame) -> pd.DataFrame:
    """Add the column `corrected` to rows, looked up among the observations by run, task, size and weight."""
    corrected = observed[corrected_rows(observed)]
    index = pd.MultiIndex.from_frame(corrected[_RUN])
    return rows.assign(corrected=pd.MultiIndex.from_frame(rows[_RUN]).isin(index))


def marked_pairs(observations: Observations) -> pd.DataFrame:
    """Return `observed_pairs` with the column `corrected`: whether any value of a model was corrected."""
    first, pairs, frame = observations.tasks[0], observed_pairs(observations), observations.frame
    rows = frame[corrected_rows(frame)]
    share = rows["weight"].where(rows["task"] == first, 1 - rows["weight"]).round(6)
    corrected = pd.MultiIndex.from_arrays([rows["size"], share, rows["role"]])
    models = pd.MultiIndex.from_frame(pairs[["size", "weight", "role"]])
    return pairs.assign(corrected=models.isin(corrected))

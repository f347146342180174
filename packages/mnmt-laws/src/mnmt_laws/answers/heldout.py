"""Hold the laws against what they were not fitted to: held-out runs, and known irreducible losses."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.fitting.law_fit import LawFit


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Predictions of held-out rows."""

    rows: pd.DataFrame
    """Columns `run`, `task`, `size`, `weight`, `new_size`, `new_weight`, `observed`, then the predictions
    `capacity` and `joint` with their relative `_error`; `joint` is NaN at weights it has no β for."""

    def errors(self, law: str) -> pd.Series:
        """Absolute relative errors of a law where it predicts."""
        return self.rows[f"{law}_error"].abs().dropna()


def predict_held_out(*, capacity: LawFit, joint: LawFit) -> HeldOut:
    """Predict every held-out row by the capacity law and, at known weights, by the joint law."""
    held_out, fitted = capacity.observations.held_out, capacity.observations.fit
    known = held_out[held_out["task"].isin(capacity.tasks)]
    rows = [_predict_row(row, capacity, joint, fitted) for row in known.to_dict("records")]
    columns = [
        "run", "task", "size", "weight", "new_size", "new_weight", "observed",
        "capacity", "capacity_error", "joint", "joint_error",
    ]  # fmt: skip
    return HeldOut(rows=pd.DataFrame(rows, columns=columns))


def _predict_row(
    row: Mapping[Hashable, Any], capacity: LawFit, joint: LawFit, fitted: pd.DataFrame
) -> dict[str, Any]:
    own = fitted[fitted["task"] == row["task"]]
    known_weight = bool(np.isclose(joint.fitted_weights(row["task"]), row["weight"], rtol=0, atol=1e-9).any())
    where = {"size": row["size"], "task": row["task"], "weight": row["weight"]}
    predicted = {
        "capacity": float(capacity.predict(**where)),
        "joint": float(joint.predict(**where)) if known_weight else np.nan,
    }
    return {
        **{key: row[key] for key in ("run", "task", "size", "weight")},
        "new_size": row["size"] not in set(own["size"]),
        "new_weight": not known_weight,
        "observed": row["value"],
        **predicted,
        **{f"{law}_error": value / row["value"] - 1 for law, value in predicted.items()},
    }


def compare_irreducible(joint: LawFit) -> pd.DataFrame:
    """The joint law's L∞ beside each task's known irreducible loss, in nats per token.

    Returns:
        Columns `task`, `true`, `fitted`, `std`, `lower`, `upper`, `difference`; empty where none is
        known or the metric is not loss.
    """
    observations = joint.observations
    known = observations.frame.groupby("task")["irreducible"].median().dropna()
    if observations.metric != "loss":
        known = known.iloc[:0]
    std, interval = joint.std, joint.interval()
    rows = []
    for task in (task for task in joint.tasks if task in known.index):
        fitted, true = float(joint.parameters.l_inf.sel(task=task)), float(known[task])
        lower, upper = (float(value) for value in interval.l_inf.sel(task=task))
        rows.append((task, true, fitted, float(std.l_inf.sel(task=task)), lower, upper, fitted - true))
    return pd.DataFrame(rows, columns=["task", "true", "fitted", "std", "lower", "upper", "difference"])

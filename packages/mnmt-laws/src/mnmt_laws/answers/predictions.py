"""Predictions of runs that no fit has seen: held-out runs, and mixtures of three and more tasks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit, require_fit, require_mixtures
from mnmt_laws.fitting.uncertainty import Uncertainty
from mnmt_laws.tables.mixture import mixture_weights
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Predictions of held-out runs."""

    rows: pd.DataFrame
    """Columns `run`, `task`, `size`, `weight`, `new_size`, `new_weight`, `observed`, then the predictions
    `capacity` and `joint` with their relative `_error`; `joint` is NaN at weights it has no β for."""

    def errors(self, law: str) -> pd.Series:
        """Return the absolute relative errors of a law where it predicts."""
        return self.rows[f"{law}_error"].abs().dropna()


def predict_held_out(*, capacity: LawFit, joint: LawFit) -> HeldOut:
    """Predict every held-out row by the capacity law and, at known weights, by the joint law.

    Raises:
        TypeError: If an argument is not a fit.
        ValueError: If a fit is of another law than its argument says.
    """
    require_mixtures(capacity, name="capacity")
    require_fit(joint, law="joint", name="joint")
    held_out, fitted = capacity.observations.held_out, capacity.observations.fit
    rows_of_tasks = held_out[held_out["task"].isin(capacity.tasks)]
    rows = [_predict_row(row, capacity, joint, fitted) for row in rows_of_tasks.to_dict("records")]
    columns = [
        "run", "task", "size", "weight", "new_size", "new_weight", "observed",
        "capacity", "capacity_error", "joint", "joint_error",
    ]  # fmt: skip
    return HeldOut(rows=pd.DataFrame(rows, columns=columns))


def _predict_row(
    row: Mapping[Hashable, Any], capacity: LawFit, joint: LawFit, fitted: pd.DataFrame
) -> dict[str, Any]:
    task_rows = fitted[fitted["task"] == row["task"]]
    is_known = bool(np.isclose(joint.fitted_weights(row["task"]), row["weight"], rtol=0, atol=1e-9).any())
    run = {"size": row["size"], "task": row["task"], "weight": row["weight"]}
    predicted = {
        "capacity": float(capacity.predict(**run)),
        "joint": float(joint.predict(**run)) if is_known else np.nan,
    }
    return {
        **{key: row[key] for key in ("run", "task", "size", "weight")},
        "new_size": row["size"] not in set(task_rows["size"]),
        "new_weight": not is_known,
        "observed": row["value"],
        **predicted,
        **{f"{law}_error": value / row["value"] - 1 for law, value in predicted.items()},
    }


def compare_irreducible(joint: LawFit) -> pd.DataFrame:
    """Return the joint law's L∞ beside each task's known irreducible loss, in nats per token.

    Returns:
        Columns `task`, `true`, `fitted`, `std`, `lower`, `upper`, `difference`; empty where none is
        known or the metric is not loss.
    """
    observations = joint.observations
    irreducible = observations.frame.groupby("task")["irreducible"].median().dropna()
    if observations.metric != "loss":
        irreducible = irreducible.iloc[:0]
    std, interval = joint.std, joint.interval()
    rows = []
    for task in (task for task in joint.tasks if task in irreducible.index):
        fitted, true = float(joint.parameters.l_inf.sel(task=task)), float(irreducible[task])
        lower, upper = (float(value) for value in interval.l_inf.sel(task=task))
        rows.append((task, true, fitted, float(std.l_inf.sel(task=task)), lower, upper, fitted - true))
    return pd.DataFrame(rows, columns=["task", "true", "fitted", "std", "lower", "upper", "difference"])


@dataclass(frozen=True, kw_only=True)
class MoreTasks:
    """Models of three and more tasks, predicted from models of one and two."""

    rows: pd.DataFrame
    """A row for each run and task: `run`, `task`, `size`, `weight`, `mixture`, `num_tasks`, `observed`,
    `predicted`, `lower` and `upper` (95%, of the law) and `error` (relative)."""

    fit: LawFit
    """The simplex-capacity law fitted to models of at most two tasks."""

    @property
    def median_error(self) -> float:
        """Median absolute relative error; NaN where nothing was predicted."""
        return float(self.rows["error"].abs().median())


def predict_more_tasks(
    source: TableSource | Observations,
    *,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    objective: str = "log-ols",
    uncertainty: Uncertainty | None = None,
) -> MoreTasks:
    """Predict models of three and more tasks from those of one and two (Fernandes et al. 2023, app. H).

    Each task's law has its own α, β_1 and L∞ and a gain c1 from every partner; in a larger mixture the gain
    is the partners' mean by weight (the `simplex-capacity` law). Mixtures of more than two tasks are never
    fitted, whether they are held out or not.

    Args:
        source: Anything that `observe` takes.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        objective: As in `fit`.
        uncertainty: As in `fit`.

    Raises:
        TableError: If the table cannot be read, or has no models of at most two tasks, or none of more.
    """
    observations = observe(source, metric=metric, testset=testset, architecture=architecture)
    counts = _task_counts(observations)
    small, large = observations.frame[counts <= 2], observations.frame[counts > 2]
    for rows, what in ((small, "at most two tasks, to fit"), (large, "three tasks or more, to predict")):
        if rows.empty:
            raise TableError(
                f"{observations.source}: no model of {what}; add such runs with their `mixture`."
            )
    pairs = replace(observations, frame=small.reset_index(drop=True))
    fitted = fit(pairs, law="simplex-capacity", objective=objective, uncertainty=uncertainty)
    predictable = large[large["task"].isin(fitted.tasks) & large["weight"].gt(0)]
    return MoreTasks(
        rows=_prediction_table(fitted, predictable, counts[predictable.index]).reset_index(drop=True),
        fit=fitted,
    )


def _task_counts(observations: Observations) -> pd.Series:
    """Return the number of tasks in the mixture of each row."""
    weights = mixture_weights(observations.frame, observations.tasks, observations.source)
    return pd.Series(weights.gt(0).sum(axis=1).to_numpy(), index=observations.frame.index)


def _prediction_table(fitted: LawFit, rows: pd.DataFrame, num_tasks: pd.Series) -> pd.DataFrame:
    predicted, draws = fitted.predict(rows), fitted.predict(rows, draws=True)
    bounds = np.quantile(draws, [0.025, 0.975], axis=0) if len(draws) else np.full((2, len(rows)), np.nan)
    observed = rows["value"].to_numpy(float)
    return rows[["run", "task", "size", "weight", "mixture"]].assign(
        num_tasks=num_tasks,
        observed=observed,
        predicted=predicted,
        lower=bounds[0],
        upper=bounds[1],
        error=predicted / observed - 1,
    )

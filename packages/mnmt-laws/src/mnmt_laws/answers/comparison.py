"""Which parameter does the mixture act through? The central claim of Fernandes et al.

2023, put to the test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mnmt_laws.answers.claims import Claim, constancy
from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ResidualBootstrap, Uncertainty
from mnmt_laws.laws import LawName
from mnmt_laws.solver.objective import find_objective
from mnmt_laws.tables.observations import Observations

RIVALS: dict[LawName, str] = {
    "joint": "β varies",
    "limit-varies": "L∞ varies",
    "exponent-varies": "α varies",
    "per-weighting": "all vary",
}
"""The laws compared, by what the mixture moves in each."""

_CLEAR = 2.0  # difference in BIC below which two laws count as equal
_ROUNDING = 1e-12  # residuals below this are those of a perfect fit
_NONE = ResidualBootstrap(refits=0)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The rival laws side by side."""

    table: pd.DataFrame
    """A row a (task, law): `task`, `law`, `label`, `num_params`, `scatter` (root mean square relative
    residual), `aic`, `bic`, `size_error` (relative error at the largest size, left out), `weight_error`
    (the same over weights left out one at a time)."""

    constancy: tuple[Claim, ...]
    """Whether α and L∞, fitted weight by weight, agree within their standard deviations."""

    verdict: str
    """What the table says, in words."""

    best: str
    """The law preferred over all tasks together; empty where the table cannot tell."""

    fits: dict[str, LawFit]
    """The fits by law."""


def compare(
    observations: Observations, *, objective: str = "log-ols", uncertainty: Uncertainty | None = None
) -> Comparison:
    """Fit the laws in which the mixture moves β, L∞, α or all three, and weigh them against each other.

    AIC and BIC are those of Gaussian errors for `log-ols` and `ols`, of Laplace's for `lad`, and unknown
    for `huber`. A weight left out is predicted with parameters interpolated between its neighbours,
    linearly in log p.

    Raises:
        TableError: If there are fewer than two weights with three sizes.
    """
    rows = _comparable(observations)
    method = uncertainty or ResidualBootstrap()
    fits: dict[str, LawFit] = {
        law: fit(rows, law=law, objective=objective, uncertainty=method if law == "per-weighting" else _NONE)
        for law in RIVALS
    }
    table = pd.DataFrame([_row(fits[law], law, task) for task in rows.tasks for law in RIVALS])
    table = table.join(_left_out(rows, objective), on=["task", "law"])
    checks = tuple(
        constancy(fits["per-weighting"], task, name) for task in rows.tasks for name in ("alpha", "l_inf")
    )
    best, verdict = _verdict(table, checks)
    return Comparison(table=table, constancy=checks, verdict=verdict, best=best, fits=fits)


def _comparable(observations: Observations) -> Observations:
    """The observations that every rival can be fitted to.

    Weights of three sizes, for tasks of two such weights.
    """
    rows = observations.fit
    sizes = rows.groupby(["task", "weight"])["size"].transform("nunique")
    rows = rows[sizes >= 3]
    weights = rows.groupby("task")["weight"].transform("nunique")
    rows = rows[weights >= 2]
    if rows.empty:
        raise TableError(
            f"{observations.source}: to compare what the mixture acts through needs a task with two "
            "weights of three "
            f"sizes each; add runs."
        )
    return replace(observations, frame=rows.reset_index(drop=True))


def _row(fitted: LawFit, law: LawName, task: str) -> dict[str, object]:
    own = fitted.observations.fit
    own = own[own["task"] == task]
    predicted, observed = fitted.predict(own), own["value"].to_numpy(float)
    count = fitted.num_parameters(task)
    deviance = _deviance(fitted.objective, observed, predicted)
    return {
        "task": task,
        "law": law,
        "label": RIVALS[law],
        "num_params": count,
        "scatter": float(np.sqrt(np.mean((predicted / observed - 1) ** 2))),
        "aic": deviance + 2 * (count + 1),
        "bic": deviance + math.log(len(own)) * (count + 1),
    }


def _deviance(name: str, observed: Array, predicted: Array) -> float:
    """-2 log-likelihood at the best scale of the noise, without what all laws share."""
    objective = find_objective(name)
    size = np.abs(objective.residual(observed, predicted))
    if objective.absolute:
        return float(2 * len(size) * math.log(max(float(size.mean()), _ROUNDING)))
    if not objective.squared:
        return math.nan
    return float(len(size) * math.log(max(float(np.mean(size**2)), _ROUNDING**2)))


def _left_out(observations: Observations, objective: str) -> pd.DataFrame:
    """Root mean square relative errors on what a law has not seen, over (task, law)."""
    found = {
        (task, law): {
            "size_error": _size_error(observations, law, objective, task),
            "weight_error": _weight_error(observations, law, objective, task),
        }
        for task in observations.tasks
        for law in RIVALS
    }
    return pd.DataFrame.from_dict(found, orient="index")


def _size_error(observations: Observations, law: LawName, objective: str, task: str) -> float:
    """Error at the largest size of a law fitted to the others; NaN where fewer than three are left."""
    rows = observations.fit
    rows = rows[rows["task"] == task]
    largest = rows["size"] == rows["size"].max()
    kept, aside = rows[~largest], rows[largest]
    if kept.groupby("weight")["size"].nunique().max() < 3:
        return math.nan
    fitted = _refit(observations, kept, law, objective)
    predicted = fitted.predict(aside)
    known = np.isfinite(predicted)
    return _error(predicted[known], aside["value"].to_numpy(float)[known])


def _weight_error(observations: Observations, law: LawName, objective: str, task: str) -> float:
    """Error at weights between others, each predicted by a law fitted without it; NaN where there is none."""
    rows = observations.fit
    rows = rows[rows["task"] == task]
    weights = np.unique(rows["weight"])
    errors = []
    for weight in weights[1:-1]:
        away = rows["weight"] == weight
        fitted = _refit(observations, rows[~away], law, objective)
        aside = rows[away]
        predicted = _interpolated(fitted, task, float(weight), aside["size"].to_numpy(float))
        errors.append(predicted / aside["value"].to_numpy(float) - 1)
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2))) if errors else math.nan


def _refit(observations: Observations, rows: pd.DataFrame, law: LawName, objective: str) -> LawFit:
    kept = replace(observations, frame=rows.reset_index(drop=True))
    return fit(kept, law=law, objective=objective, uncertainty=_NONE)


def _interpolated(fitted: LawFit, task: str, weight: float, size: Array) -> Array:
    """Predictions at a weight that was not fitted, its parameters between those of its neighbours."""
    values = {}
    for name, variable in fitted.parameters.sel(task=task).data_vars.items():
        if "weight" not in variable.dims:
            values[str(name)] = np.array([float(variable)])
            continue
        known = variable.dropna("weight")
        heights = np.log(np.maximum(known.values, 1e-300)) if name == "beta" else known.values
        found = np.interp(math.log(weight), np.log(known.weight.values), heights)
        values[str(name)] = np.array([math.exp(found) if name == "beta" else found])
    sign = -1 if fitted.observations.rising else 1
    return fitted.law.predict({"size": size}, values, sign)


def _error(predicted: Array, observed: Array) -> float:
    return float(np.sqrt(np.mean((predicted / observed - 1) ** 2))) if len(observed) else math.nan


def _verdict(table: pd.DataFrame, checks: tuple[Claim, ...]) -> tuple[str, str]:
    """The preferred law, if any, and the sentences that say why."""
    total = table.groupby("law")[["bic"]].sum(min_count=1)["bic"]
    squares = table.set_index("law")[["size_error", "weight_error"]] ** 2
    errors = squares.groupby("law").mean() ** 0.5
    parts = [_by_likelihood(total), _by_prediction(errors, total), _by_constancy(checks)]
    ranked = total.dropna().sort_values()
    clear = len(ranked) > 1 and ranked.iloc[1] - ranked.iloc[0] > _CLEAR
    return (str(ranked.index[0]) if clear else ""), " ".join(part for part in parts if part)


def _by_likelihood(total: pd.Series) -> str:
    ranked = total.dropna().sort_values()
    if ranked.empty:
        return "The objective has no likelihood to compare by; the errors on what was left out decide."
    gaps = ", ".join(f"{RIVALS[law]} +{value - ranked.iloc[0]:.1f}" for law, value in ranked.iloc[1:].items())  # type: ignore[index]
    first = RIVALS[ranked.index[0]]
    if ranked.iloc[1] - ranked.iloc[0] <= _CLEAR:
        return (
            f"The table cannot tell “{first}” from “{RIVALS[ranked.index[1]]}”: their BIC differ "
            f"by less than 2 ({gaps})."
        )
    if ranked.index[0] == "per-weighting":
        return (
            "No single parameter carries the mixture: “all vary” is preferred in spite of its "
            f"parameters (BIC: {gaps})."
        )
    return f"The mixture acts through one parameter, “{first}”: it has the lowest BIC ({gaps})."


def _by_prediction(errors: pd.DataFrame, total: pd.Series) -> str:
    sentences = []
    for column, what in (("size_error", "the largest size"), ("weight_error", "weights")):
        known = errors[column].dropna().sort_values()
        if known.empty:
            continue
        shown = ", ".join(f"{RIVALS[law]} {value:.2%}" for law, value in known.items())  # type: ignore[index]
        sentences.append(f"Left out, {what} are predicted best by “{RIVALS[known.index[0]]}” ({shown}).")
    return " ".join(sentences).replace("the largest size are", "the largest size is")


def _by_constancy(checks: tuple[Claim, ...]) -> str:
    known = [check for check in checks if check.holds is not None]
    if not known:
        return ""
    symbols = {"alpha": "α", "l_inf": "L∞"}
    moving = [f"{symbols[check.about]} of {check.task}" for check in known if not check.holds]
    if not moving:
        return (
            "Fitted weight by weight, α and L∞ scatter over the weights no more than their "
            "standard deviations allow."
        )
    return (
        f"Fitted weight by weight, {', '.join(moving)} scatter more over the weights than chance "
        "would have it."
    )

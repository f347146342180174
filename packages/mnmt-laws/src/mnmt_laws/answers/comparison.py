"""Rival laws: the parameter through which the mixture acts (the central claim of Fernandes et al. 2023)."""

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
from mnmt_laws.tables.source import TableSource, observe

RIVALS: dict[LawName, str] = {
    "joint": "β varies",
    "limit-varies": "L∞ varies",
    "exponent-varies": "α varies",
    "per-weighting": "all vary",
}
"""The laws compared, by what the mixture moves in each."""

_CLEAR = 2.0  # difference in BIC below which two laws count as equal
_ROUNDING = 1e-12  # residuals below this are those of a perfect fit
_NO_REFITS = ResidualBootstrap(refits=0)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Rival laws side by side."""

    table: pd.DataFrame
    """A row for each task and law: `task`, `law`, `label`, `num_params`, `scatter` (root mean square relative
    residual), `aic`, `bic`, `size_error` (relative error at the largest size when it is left out) and
    `weight_error` (the same for weights that are left out one at a time)."""

    constancy: tuple[Claim, ...]
    """Whether α and L∞ of one weight at a time agree within their standard deviations."""

    verdict: str
    """The preferred law and the reasons, in words."""

    preference: str
    """The first sentence of the verdict: the law that the likelihood prefers."""

    best: str
    """The law that is preferred over all tasks together; empty if the table cannot tell."""

    fits: dict[str, LawFit]
    """The fit of each law."""


def compare(
    source: TableSource | Observations,
    *,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    objective: str = "log-ols",
    uncertainty: Uncertainty | None = None,
) -> Comparison:
    """Fit the laws in which the mixture moves β, L∞, α or all three, and weigh them against each other.

    AIC and BIC are those of Gaussian errors for `log-ols` and `ols`, of Laplace's for `lad`, and unknown
    for `huber`. A weight that is left out is predicted with parameters interpolated between its neighbours,
    linearly in log p.

    Args:
        source: Anything that `observe` takes.
        metric: As in `observe`.
        testset: As in `observe`.
        architecture: As in `observe`.
        objective: As in `fit`.
        uncertainty: As in `fit`.

    Raises:
        TableError: If the table cannot be read, or has fewer than two weights with three sizes.
    """
    observations = _comparable_rows(
        observe(source, metric=metric, testset=testset, architecture=architecture)
    )
    fits = _fit_rivals(observations, objective, uncertainty or ResidualBootstrap())
    tasks = observations.tasks
    table = pd.DataFrame([_row(fits[law], law, task) for task in tasks for law in RIVALS])
    table = table.join(_left_out_errors(observations, objective), on=["task", "law"])
    claims = tuple(
        constancy(fits["per-weighting"], task, name) for task in tasks for name in ("alpha", "l_inf")
    )
    bic = table.groupby("law")[["bic"]].sum(min_count=1)["bic"].dropna().sort_values()
    preference = _by_likelihood(bic)
    sentences = [preference, *_by_prediction(table), _by_constancy(claims)]
    return Comparison(
        table=table,
        constancy=claims,
        verdict=" ".join(sentence for sentence in sentences if sentence),
        preference=preference,
        best=str(bic.index[0]) if _is_clear(bic) else "",
        fits=fits,
    )


def _fit_rivals(observations: Observations, objective: str, uncertainty: Uncertainty) -> dict[str, LawFit]:
    """Return the fit of each law; only the law of each weight alone needs refits."""
    return {
        law: fit(
            observations,
            law=law,
            objective=objective,
            uncertainty=uncertainty if law == "per-weighting" else _NO_REFITS,
        )
        for law in RIVALS
    }


def _comparable_rows(observations: Observations) -> Observations:
    """Return the observations that every rival can be fitted to.

    Weights of three sizes, for tasks of two such weights.
    """
    rows = observations.fit
    sizes = rows.groupby(["task", "weight"])["size"].transform("nunique")
    rows = rows[sizes >= 3]
    weights = rows.groupby("task")["weight"].transform("nunique")
    rows = rows[weights >= 2]
    if rows.empty:
        raise TableError(
            f"{observations.source}: a comparison of laws needs a task with two weights of three sizes each; "
            "add runs."
        )
    return replace(observations, frame=rows.reset_index(drop=True))


def _row(fitted: LawFit, law: LawName, task: str) -> dict[str, object]:
    rows = fitted.observations.fit
    rows = rows[rows["task"] == task]
    predicted, observed = fitted.predict(rows), rows["value"].to_numpy(float)
    count = fitted.num_parameters(task)
    deviance = _deviance(fitted.objective, observed, predicted)
    return {
        "task": task,
        "law": law,
        "label": RIVALS[law],
        "num_params": count,
        "scatter": float(np.sqrt(np.mean((predicted / observed - 1) ** 2))),
        "aic": deviance + 2 * (count + 1),
        "bic": deviance + math.log(len(rows)) * (count + 1),
    }


def _deviance(name: str, observed: Array, predicted: Array) -> float:
    """Return -2 log-likelihood at the best scale of the noise, up to a constant that all laws share."""
    objective = find_objective(name)
    size = np.abs(objective.residual(observed, predicted))
    if objective.absolute:
        return float(2 * len(size) * math.log(max(float(size.mean()), _ROUNDING)))
    if not objective.squared:
        return math.nan
    return float(len(size) * math.log(max(float(np.mean(size**2)), _ROUNDING**2)))


def _left_out_errors(observations: Observations, objective: str) -> pd.DataFrame:
    """Return root mean square relative errors on rows that a law was not fitted to, over (task, law)."""
    errors = {
        (task, law): {
            "size_error": _size_error(observations, law, objective, task),
            "weight_error": _weight_error(observations, law, objective, task),
        }
        for task in observations.tasks
        for law in RIVALS
    }
    return pd.DataFrame.from_dict(errors, orient="index")


def _size_error(observations: Observations, law: LawName, objective: str, task: str) -> float:
    """Return the error at the largest size of a law fitted to the others; NaN if these are too few."""
    rows = observations.fit
    rows = rows[rows["task"] == task]
    largest = rows["size"] == rows["size"].max()
    smaller, left_out = rows[~largest], rows[largest]
    if smaller.groupby("weight")["size"].nunique().max() < 3:
        return math.nan
    fitted = _refit(observations, smaller, law, objective)
    predicted = fitted.predict(left_out)
    finite = np.isfinite(predicted)
    return _error(predicted[finite], left_out["value"].to_numpy(float)[finite])


def _weight_error(observations: Observations, law: LawName, objective: str, task: str) -> float:
    """Return the error at weights between others, each left out in turn; NaN where there are none."""
    rows = observations.fit
    rows = rows[rows["task"] == task]
    weights = np.unique(rows["weight"])
    errors = []
    for weight in weights[1:-1]:
        is_left_out = rows["weight"] == weight
        fitted = _refit(observations, rows[~is_left_out], law, objective)
        left_out = rows[is_left_out]
        predicted = _predict_between_weights(fitted, task, float(weight), left_out["size"].to_numpy(float))
        errors.append(predicted / left_out["value"].to_numpy(float) - 1)
    return float(np.sqrt(np.mean(np.concatenate(errors) ** 2))) if errors else math.nan


def _refit(observations: Observations, rows: pd.DataFrame, law: LawName, objective: str) -> LawFit:
    selected = replace(observations, frame=rows.reset_index(drop=True))
    return fit(selected, law=law, objective=objective, uncertainty=_NO_REFITS)


def _predict_between_weights(fitted: LawFit, task: str, weight: float, size: Array) -> Array:
    """Return predictions at a weight that was not fitted, with parameters between those of its neighbours."""
    values = {}
    for name, variable in fitted.parameters.sel(task=task).data_vars.items():
        if "weight" not in variable.dims:
            values[str(name)] = np.array([float(variable)])
            continue
        neighbours = variable.dropna("weight")
        heights = np.log(np.maximum(neighbours.values, 1e-300)) if name == "beta" else neighbours.values
        height = np.interp(math.log(weight), np.log(neighbours.weight.values), heights)
        values[str(name)] = np.array([math.exp(height) if name == "beta" else height])
    sign = -1 if fitted.observations.rising else 1
    return fitted.law.predict({"size": size}, values, sign)


def _error(predicted: Array, observed: Array) -> float:
    return float(np.sqrt(np.mean((predicted / observed - 1) ** 2))) if len(observed) else math.nan


def _is_clear(bic: pd.Series) -> bool:
    """Return whether the law of the least BIC, the first, is clearly ahead of the second."""
    return len(bic) > 1 and bool(bic.iloc[1] - bic.iloc[0] > _CLEAR)


def _by_likelihood(bic: pd.Series) -> str:
    """Return the sentence that says which law the BIC of all tasks, in ascending order, prefers."""
    if bic.empty:
        return "The objective has no likelihood to compare by; the errors on what was left out decide."
    labels = [RIVALS[law] for law in bic.index]
    gaps = ", ".join(
        f"{label} +{gap:.1f}" for label, gap in zip(labels[1:], bic.iloc[1:] - bic.iloc[0], strict=True)
    )
    if not _is_clear(bic):
        first, second = labels[:2]
        return f"The table cannot tell “{first}” from “{second}”: their BIC differ by less than 2 ({gaps})."
    if bic.index[0] == "per-weighting":
        return (
            "No single parameter carries the mixture: “all vary” is preferred in spite of its "
            f"parameters (BIC: {gaps})."
        )
    return f"The mixture acts through one parameter, “{labels[0]}”: it has the lowest BIC ({gaps})."


def _by_prediction(table: pd.DataFrame) -> list[str]:
    """Return the sentences that say which law predicts best what was left out, over all tasks."""
    squares = table.set_index("law")[["size_error", "weight_error"]] ** 2
    errors = squares.groupby("law").mean() ** 0.5
    sentences = []
    for column, start in (
        ("size_error", "When the largest size is left out, {} predicts it best"),
        ("weight_error", "When single weights are left out, {} predicts them best"),
    ):
        ranked = errors[column].dropna().sort_values()
        if ranked.empty:
            continue
        laws = [(RIVALS[law], value) for law, value in zip(ranked.index, ranked, strict=True)]
        listed = ", ".join(f"{label} {value:.2%}" for label, value in laws)
        sentences.append(f"{start.format(f'“{laws[0][0]}”')} ({listed}).")
    return sentences


def _by_constancy(claims: tuple[Claim, ...]) -> str:
    decided = [claim for claim in claims if claim.holds is not None]
    if not decided:
        return ""
    symbols = {"alpha": "α", "l_inf": "L∞"}
    varying = [f"{symbols[claim.about]} of {claim.task}" for claim in decided if not claim.holds]
    if not varying:
        return (
            "Fitted weight by weight, α and L∞ scatter over the weights no more than their "
            "standard deviations allow."
        )
    return (
        f"Fitted weight by weight, {', '.join(varying)} scatter more over the weights than chance explains."
    )

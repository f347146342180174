"""Evaluate a law with fitted parameters at points, at rows of a table, or over mixtures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.mixture import mixture_weights
from mnmt_laws.tables.observations import Observations

_COLUMNS = ("size", "encoder_size", "decoder_size", "tokens", "weight")
_SAME_WEIGHT = 1e-9


@dataclass(frozen=True, kw_only=True)
class LawEvaluator:
    """A law with its estimates; each method also takes the parameters of the refits, over `draw`."""

    law: Law

    estimates: xr.Dataset
    """Parameters over `task` and, where they vary with it, `weight` or `partner`."""

    rising: bool
    """Whether the metric rises with size."""

    @property
    def tasks(self) -> list[str]:
        """The fitted tasks."""
        return [str(task) for task in self.estimates.task.values]

    @property
    def varying(self) -> list[str]:
        """Names of the parameters that have a value for each weight."""
        return [parameter.name for parameter in self.law.parameters if parameter.varies == "weight"]

    def fitted_weights(self, task: str) -> Array:
        """Return the weights of a task at which varying parameters are known."""
        weights: Array = self.estimates[self.varying[0]].sel(task=task).dropna("weight").weight.to_numpy()
        return weights

    def predict(
        self,
        parameters: xr.Dataset,
        *,
        task: str | None,
        weight: ArrayLike,
        mixture: Mapping[str, ArrayLike] | None,
        **predictors: ArrayLike,
    ) -> Array:
        """Return predictions in the shape that the arguments broadcast to, after (refits,) for refits."""
        x, shape = self.inputs(task, weight=weight, mixture=mixture, **predictors)
        predicted = self._formula(parameters.sel(task=task), x)
        return predicted.reshape((*predicted.shape[:-1], *shape))

    def predict_rows(self, parameters: xr.Dataset, rows: pd.DataFrame, observations: Observations) -> Array:
        """Return (n,) or (refits, n) predictions; NaN at a task or weight that the law does not know."""
        draws = (parameters.sizes["draw"],) if "draw" in parameters.sizes else ()
        predicted = np.full((*draws, len(rows)), np.nan)
        for task in self.tasks:
            mask = self._predictable(task, rows)
            if mask.any():
                x, partners = read_predictors(
                    rows[mask], self.law.predictors, task=task, observations=observations
                )
                inputs = {"weight": rows["weight"].to_numpy()[mask], **self._align(x, partners)}
                predicted[..., mask] = self._formula(parameters.sel(task=task), inputs)
        return predicted

    def predict_points(self, parameters: xr.Dataset, *, size: float, points: Array) -> Array:
        """Return the metric of every task where each refit has mixtures of its own.

        Args:
            parameters: Those of the refits, or of the estimate, which is then the only one.
            size: N, parameters.
            points: (refits or 1, n, tasks) weights above 0, in the order of `tasks`.

        Returns:
            (refits, tasks, n) predictions.
        """
        predicted = []
        for task in self.tasks:
            x, values = self.point_inputs(parameters, task, points)
            x["size"] = np.asarray(size, float)
            predicted.append(self.law.predict(x, values, self._sign))
        return np.stack(predicted, axis=1)

    def point_inputs(
        self, parameters: xr.Dataset, task: str, points: Array
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return a task's predictors and parameters at mixtures (refits or 1, n, tasks)."""
        weight = points[..., self.tasks.index(task)]
        x = {"weight": weight}
        if "partners" in self.law.predictors:
            x["partners"] = self._point_shares(task, points)
        return x, self.parameters_at(parameters.sel(task=task), weight)

    def inputs(
        self,
        task: str | None,
        *,
        weight: ArrayLike,
        mixture: Mapping[str, ArrayLike] | None,
        **predictors: ArrayLike,
    ) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Return what the law's formula takes, flat, and the shape that the arguments broadcast to.

        Raises:
            ValueError: If the task was not fitted, or a predictor is missing, unknown or out of range.
        """
        name = self.check_task(task)
        if mixture is not None and name not in mixture:
            raise ValueError(f"`mixture` must give a weight to {name}, but names {', '.join(mixture)}.")
        arguments = {"weight": weight if mixture is None else mixture[name], **predictors}
        shape = np.broadcast_shapes(*(np.shape(value) for value in arguments.values()))
        x = {
            argument: np.broadcast_to(np.asarray(value, float), shape).ravel()
            for argument, value in arguments.items()
        }
        self._check(x)
        if "partners" in self.law.predictors:
            x["partners"] = self._shares(name, mixture, x["weight"])
        return x, shape

    def check_task(self, task: str | None) -> str:
        """Return the task if it was fitted.

        Raises:
            ValueError: If it was not; the message names those that were.
        """
        if task not in self.tasks:
            raise ValueError(f"`task` must be one of {', '.join(self.tasks)}, but is {task!r}.")
        return str(task)

    def parameters_at(self, parameters: xr.Dataset, weight: Array) -> dict[str, Array]:
        """Return one task's parameters at each weight: (..., n), (..., 1), or (..., partners)."""
        return {str(name): self._values_at(values, weight) for name, values in parameters.data_vars.items()}

    def _predictable(self, task: str, rows: pd.DataFrame) -> NDArray[np.bool_]:
        """Return (n,) whether a row is of the task and at a weight that the law can predict."""
        mask: NDArray[np.bool_] = rows["task"].eq(task).to_numpy() & rows["weight"].gt(0).to_numpy()
        if not self.varying:
            return mask
        near = np.abs(rows["weight"].to_numpy()[:, None] - self.fitted_weights(task)) <= _SAME_WEIGHT
        return mask & near.any(axis=1)

    @property
    def _sign(self) -> int:
        return -1 if self.rising else 1

    def _formula(self, parameters: xr.Dataset, x: Mapping[str, Array]) -> Array:
        """Return (n,) or (refits, n) predictions from one task's parameters."""
        values = self.parameters_at(parameters, x["weight"])
        predicted = self.law.predict(x, values, self._sign)
        return np.broadcast_to(predicted, (*predicted.shape[:-1], len(x["weight"])))

    def _check(self, x: Mapping[str, Array]) -> None:
        names = [name for name in self.law.predictors if name != "partners"]
        for name in names:
            if name not in x:
                raise ValueError(f"`{name}` must be given: the {self.law.name} law predicts from it.")
        for name, values in x.items():
            if name not in (*names, "weight"):
                raise ValueError(
                    f"`{name}` must be left out: the {self.law.name} law predicts from {', '.join(names)}."
                )
            if name != "weight" and not bool((values > 0).all()):
                raise ValueError(f"`{name}` must be above 0, but is {values.min():g}.")
        if bool(((x["weight"] <= 0) | (x["weight"] > 1)).any()):
            raise ValueError("`weight` must be in (0, 1]: the laws do not speak of zero-shot tasks.")

    @property
    def _partner_names(self) -> list[str]:
        return [str(name) for name in self.estimates.partner.values]

    def _shares(self, task: str, mixture: Mapping[str, ArrayLike] | None, weight: Array) -> Array:
        """Return (n, partners) each partner's share; a lone partner has all that the task leaves."""
        others = [name for name in self._partner_names if name != task]
        if mixture is None:
            if len(others) > 1 and bool((weight < 1).any()):
                raise ValueError(f"`mixture` must be given: {task} has {len(others)} partners.")
            mixture = dict.fromkeys(others, 1.0 - weight)
        columns = [np.broadcast_to(mixture.get(name, 0.0), weight.shape) for name in others]
        shares = partner_shares(np.stack(columns, axis=1).astype(float))
        return self._align({"partners": shares}, tuple(others))["partners"]

    def _point_shares(self, task: str, points: Array) -> Array:
        """Return (..., n, partners) shares of what `task` leaves, at weights (..., n, tasks)."""
        columns = [
            self.tasks.index(name) if name in self.tasks and name != task else -1
            for name in self._partner_names
        ]
        padded = np.concatenate([points, np.zeros((*points.shape[:-1], 1))], axis=-1)[..., columns]
        return np.asarray(padded / np.maximum(padded.sum(axis=-1, keepdims=True), 1e-300))

    def _align(self, x: dict[str, Array], partners: tuple[str, ...]) -> dict[str, Array]:
        """Put shares in the order of the parameters; a partner that was not fitted has no column."""
        if "partners" not in x:
            return x
        names = self._partner_names
        shares = np.zeros((len(x["partners"]), len(names)))
        for column, name in enumerate(partners):
            if name in names:
                shares[:, names.index(name)] = x["partners"][:, column]
        return {**x, "partners": shares}

    def _values_at(self, variable: xr.DataArray, weight: Array) -> Array:
        """Return (..., n), (..., 1), or (..., partners) with 0 where unknown."""
        if "weight" in variable.dims:
            values = variable.transpose(..., "weight").to_numpy()
            return np.asarray(values[..., self._nearest(variable, weight)])
        if "partner" in variable.dims:
            return np.asarray(np.nan_to_num(variable.transpose(..., "partner").to_numpy()))
        return np.asarray(variable.to_numpy()[..., None])

    def _nearest(self, variable: xr.DataArray, weight: Array) -> Array:
        estimate = self.estimates[variable.name].sel(task=variable.task.item())
        known = np.flatnonzero(estimate.notnull().to_numpy())
        weights = variable.weight.to_numpy()[known]
        distance = np.abs(weight[:, None] - weights)
        if bool((distance.min(axis=1) > _SAME_WEIGHT).any()):
            choices = ", ".join(f"{value:g}" for value in weights)
            raise ValueError(
                f"`weight` must be one of the fitted weights ({choices}); the capacity law takes any weight."
            )
        return np.asarray(known[distance.argmin(axis=1)])


def read_predictors(
    rows: pd.DataFrame, names: tuple[str, ...], *, task: str, observations: Observations
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return (n,) arrays by name, and the task's partners where `partners` is asked for.

    Raises:
        TableError: If a column is missing or empty in some row, or not positive.
    """
    x = {name: _column(rows, name, observations) for name in names if name in _COLUMNS}
    if "partners" not in names:
        return x, ()
    tasks = sorted(observations.frame["task"].unique())
    weights = mixture_weights(rows, tasks, observations.source)
    partners = tuple(
        sorted(str(name) for name in weights.columns if name != task and weights[name].gt(0).any())
    )
    return {**x, "partners": partner_shares(weights[list(partners)].to_numpy(float))}, partners


def partner_shares(weights: Array) -> Array:
    """Return (n, K - 1) each partner's share of what a task leaves; 0 where it leaves nothing."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def _column(rows: pd.DataFrame, name: str, observations: Observations) -> Array:
    values = rows[name].to_numpy(float)
    wrong = ~(values > 0)
    if wrong.any():
        where = observations.locator.name(rows, int(wrong.argmax()))
        raise TableError(f"{where}: this law needs `{name}` above 0 in every row, but this one has none.")
    return values

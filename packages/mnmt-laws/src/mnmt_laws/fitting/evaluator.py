"""Evaluate a law with fitted parameters at points, at rows of a table, or over mixtures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations

_COLUMNS = ("size", "encoder_size", "decoder_size", "tokens", "unique_tokens", "flops", "weight")
_SAME_WEIGHT = 1e-9
_SAME_TOTAL = 1e-6

LEAST = 1e-6
"""The weight that stands for 0 on a logarithmic axis."""


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
    def sources(self) -> list[str]:
        """The sources of mixtures: the tasks, or all that the law distinguishes."""
        return [str(name) for name in self.estimates.partner.values] if self._has_partners else self.tasks

    def partners_of(self, task: str) -> list[str]:
        """Return the other sources of a task's mixtures, in the order of its parameters."""
        name = next((p.name for p in self.law.parameters if p.varies == "partner"), None)
        if name is None:
            return [source for source in self.sources if source != task]
        known = self.estimates[name].sel(task=task).dropna("partner")
        return [str(source) for source in known.partner.values]

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
                partners = tuple(self.partners_of(task)) if self._has_partners else None
                x, _ = read_predictors(
                    rows[mask], self.law, task=task, observations=observations, partners=partners
                )
                inputs = {"weight": rows["weight"].to_numpy(float)[mask], **x}
                predicted[..., mask] = self._formula(parameters.sel(task=task), inputs)
        return predicted

    def predict_points(self, parameters: xr.Dataset, *, points: Array, **predictors: Any) -> Array:
        """Return the metric of every task at mixtures that may differ between refits.

        A law with a value for each weight predicts at its weights, and `between_weights` joins them.

        Args:
            parameters: The refits', or the estimate's, which counts as one refit.
            points: (refits or 1, n, sources) weights, in the order of `sources`.
            **predictors: Predictors beside the mixture: `size`, `tokens`; numbers, or arrays that broadcast
                against (refits, n).

        Returns:
            (refits, tasks, n) predictions.
        """
        numbers = {name: np.asarray(value, float) for name, value in predictors.items()}
        predict = self._predict_keyed if self.varying else self._predict_any
        predicted = [predict(parameters, task, points, numbers) for task in self.tasks]
        return np.stack(np.broadcast_arrays(*predicted), axis=1)

    def _predict_any(
        self, parameters: xr.Dataset, task: str, points: Array, numbers: Mapping[str, Array]
    ) -> Array:
        x, values = self.point_inputs(parameters, task, points)
        predicted = self.law.predict({**x, **numbers}, values, self._sign)
        return np.asarray(np.broadcast_arrays(predicted, x["weight"])[0])

    def _predict_keyed(
        self, parameters: xr.Dataset, task: str, points: Array, numbers: Mapping[str, Array]
    ) -> Array:
        return self.predict_between(parameters, task, points[..., self.sources.index(task)], numbers)

    def predict_between(
        self,
        parameters: xr.Dataset,
        task: str,
        at: Array,
        numbers: Mapping[str, Array],
        *,
        known: Array | None = None,
    ) -> Array:
        """Return (refits, n) predictions of a law with a value for each weight, at any weights.

        Args:
            parameters: The refits', or the estimate's, which counts as one refit.
            task: The task.
            at: (refits or 1, n) its weights.
            numbers: The law's other predictors; numbers, or arrays that broadcast against (refits, n).
            known: The fitted weights to predict from, by default all.
        """
        weights = self.fitted_weights(task) if known is None else known
        x = {name: values[..., None] for name, values in numbers.items()}
        values = self.parameters_at(parameters.sel(task=task), weights)
        if any(np.ndim(value) for value in numbers.values()):  # an axis of points before that of weights
            values = {name: value[..., None, :] for name, value in values.items()}
        nodes = self.law.predict({**x, "weight": weights}, values, self._sign)
        nodes = nodes if nodes.ndim == 3 else nodes.reshape(-1, 1, len(weights))
        return between_weights(weights, nodes, at)

    def point_inputs(
        self, parameters: xr.Dataset, task: str, points: Array
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return a task's mixture and parameters at mixtures (refits or 1, n, sources).

        A weight of 0 counts as `LEAST` for laws of weights above 0.
        """
        sources = self.sources
        weight = points[..., sources.index(task)] if task in sources else np.zeros(points.shape[:-1])
        weight = weight if self.law.zero_shot else np.maximum(weight, LEAST)
        x = {"weight": weight}
        if self._has_partners:
            x["partners"] = points[..., [sources.index(name) for name in self.partners_of(task)]]
        return x, self.parameters_at(parameters.sel(task=task), weight)

    def inputs(
        self,
        task: str | None,
        *,
        weight: ArrayLike,
        mixture: Mapping[str, ArrayLike] | None,
        **predictors: ArrayLike,
    ) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Return the predictors of the law's formula, flat, and the shape that the arguments broadcast to.

        Raises:
            ValueError: If the task was not fitted, or a predictor is missing, unknown or out of range.
        """
        name = self.check_task(task)
        weights = {} if mixture is None else self._check_mixture(name, mixture)
        arguments = {"weight": weights.get(name, 0.0) if weights else weight, **predictors}
        shape = np.broadcast_shapes(*(np.shape(value) for value in (*arguments.values(), *weights.values())))
        x = {
            argument: np.broadcast_to(np.asarray(value, float), shape).ravel()
            for argument, value in arguments.items()
        }
        self._check(x)
        if self._has_partners:
            x["partners"] = self._partner_weights(name, weights, x["weight"], shape)
        return x, shape

    def check_task(self, task: str | None) -> str:
        """Return the task if it was fitted.

        Raises:
            ValueError: If it was not; the message names the fitted tasks.
        """
        if task not in self.tasks:
            raise ArgumentError(f"`task` must be one of {', '.join(self.tasks)}, but is {task!r}.")
        return str(task)

    def parameters_at(self, parameters: xr.Dataset, weight: Array) -> dict[str, Array]:
        """Return one task's parameters at each weight: (..., n), (..., 1), or (..., partners)."""
        return {str(name): self._values_at(values, weight) for name, values in parameters.data_vars.items()}

    def _predictable(self, task: str, rows: pd.DataFrame) -> NDArray[np.bool_]:
        """Return (n,) whether a row is of the task and at a weight that the law can predict."""
        predictable = rows["task"].eq(task) & (rows["weight"].gt(0) | self.law.zero_shot)
        mask: NDArray[np.bool_] = predictable.to_numpy()
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
                raise ArgumentError(f"`{name}` must be given: the {self.law.name} law predicts from it.")
        for name, values in x.items():
            if name not in (*names, "weight"):
                raise ArgumentError(
                    f"`{name}` must be left out: the {self.law.name} law predicts from {', '.join(names)}."
                )
            if name != "weight" and not bool(((values > 0) & (values < np.inf)).all()):
                raise ArgumentError(f"`{name}` must be above 0 and finite, but is {values.min():g}.")
        if not bool(((x["weight"] >= 0) & (x["weight"] <= 1)).all()):
            raise ArgumentError("`weight` must be in [0, 1]; give the task's share of the mixture.")
        if not self.law.zero_shot and bool((x["weight"] == 0).any()):
            raise ArgumentError(
                f"`weight` must be above 0: the {self.law.name} law knows no zero-shot tasks."
            )

    @property
    def _has_partners(self) -> bool:
        return "partners" in self.law.predictors

    def _check_mixture(self, task: str, mixture: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
        """Return a mixture if it gives a weight to a task, and weights only to sources that the law knows."""
        if task not in mixture and not self.law.zero_shot:
            raise ArgumentError(f"`mixture` must give a weight to {task}, but names {', '.join(mixture)}.")
        for name, weight in mixture.items():
            if name not in self.sources and bool(np.any(np.asarray(weight) != 0)):
                raise ArgumentError(f"`mixture` must name {', '.join(self.sources)}, but names {name}.")
        total = np.sum(
            np.broadcast_arrays(*(np.asarray(weight, float) for weight in mixture.values())), axis=0
        )
        if not bool((np.abs(total - 1.0) <= _SAME_TOTAL).all()):
            raise ArgumentError(f"the weights of `mixture` must sum to 1, but sum to {np.ravel(total)[0]:g}.")
        return dict(mixture)

    def _partner_weights(
        self, task: str, weights: Mapping[str, ArrayLike], weight: Array, shape: tuple[int, ...]
    ) -> Array:
        """Return (n, partners) the weight of each partner; a single partner has the rest."""
        names = self.partners_of(task)
        if not weights:
            if len(names) > 1 and bool((weight < 1).any()):
                raise ArgumentError(f"`mixture` must be given: {task} has {len(names)} partners.")
            return np.repeat((1.0 - weight)[:, None], len(names), axis=1)
        columns = [np.broadcast_to(weights.get(name, 0.0), shape).ravel() for name in names]
        return np.stack(columns, axis=1).astype(float) if columns else np.zeros((len(weight), 0))

    def _values_at(self, variable: xr.DataArray, weight: Array) -> Array:
        """Return (..., n), (..., 1), or (..., partners)."""
        if "weight" in variable.dims:
            values = variable.transpose(..., "weight").to_numpy()
            return np.asarray(values[..., self._nearest(variable, weight)])
        if "partner" in variable.dims:
            names = self.partners_of(str(variable.task.item()))
            return np.asarray(variable.sel(partner=names).transpose(..., "partner").to_numpy())
        return np.asarray(variable.to_numpy()[..., None])

    def _nearest(self, variable: xr.DataArray, weight: Array) -> Array:
        estimate = self.estimates[variable.name].sel(task=variable.task.item())
        known = np.flatnonzero(estimate.notnull().to_numpy())
        weights = variable.weight.to_numpy()[known]
        distance = np.abs(weight[:, None] - weights)
        if bool((distance.min(axis=1) > _SAME_WEIGHT).any()):
            choices = ", ".join(f"{value:g}" for value in weights)
            raise ArgumentError(
                f"`weight` must be one of the fitted weights ({choices}); the capacity law takes any weight."
            )
        return np.asarray(known[distance.argmin(axis=1)])


def between_weights(weights: Array, nodes: Array, at: Array) -> Array:
    """Return predictions at other weights than those of some nodes: monotone cubics on log axes.

    Beyond the nodes the curve goes on straight. Metrics that are not above 0 keep their own scale.

    Args:
        weights: (nodes,) ascending, above 0.
        nodes: (refits, n or 1, nodes) predictions at these weights.
        at: (refits or 1, n) weights; one of 0 is taken as `LEAST`.

    Returns:
        (refits, n) predictions.
    """
    x, to = np.log(weights), np.log(np.maximum(at, LEAST))
    log = bool((nodes[np.isfinite(nodes)] > 0).all())
    y = np.log(nodes) if log else nodes
    joined = _hermite(x, y, to) if len(x) > 1 else np.broadcast_arrays(y[..., 0], to)[0]
    return np.exp(joined) if log else np.asarray(joined)


def _hermite(x: Array, y: Array, to: Array) -> Array:
    """Return monotone cubics through (x, y) (Fritsch and Butland 1984); beyond the ends, the last chords."""
    slopes = PchipInterpolator(x, np.where(np.isfinite(y), y, 0.0), axis=-1).derivative()(x)
    place = np.clip(np.searchsorted(x, to) - 1, 0, len(x) - 2)
    shape = np.broadcast_shapes(y.shape[:-1], to.shape)
    place = np.broadcast_to(place, shape)[..., None]
    low, high, first, last = (
        np.take_along_axis(np.broadcast_to(values, (*shape, len(x))), place + step, axis=-1)[..., 0]
        for values, step in ((y, 0), (y, 1), (slopes, 0), (slopes, 1))
    )
    width = (x[1:] - x[:-1])[place[..., 0]]
    u = (to - x[place[..., 0]]) / width
    inside = np.clip(u, 0.0, 1.0)
    a, b = inside * inside * (3 - 2 * inside), inside * (1 - inside)
    cubic = low + a * (high - low) + width * b * ((1 - inside) * first - inside * last)
    beyond = (u - inside) * (high - low)
    return np.asarray(cubic + beyond)


def read_predictors(
    rows: pd.DataFrame,
    law: Law,
    *,
    task: str,
    observations: Observations,
    partners: tuple[str, ...] | None = None,
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return (n,) arrays by name, and the task's partners where the law distinguishes them.

    Args:
        rows: Rows of one task.
        law: The law that predicts.
        task: The task.
        observations: Where the rows come from.
        partners: The partners of a fit; by default those of the rows.

    Raises:
        TableError: If a column is missing or empty in some row, or out of range.
    """
    x = {
        name: _column(rows, name, observations, zero=name == "weight" and law.zero_shot)
        for name in law.predictors
        if name in _COLUMNS
    }
    if "partners" not in law.predictors:
        return x, ()
    weights = observations.mixtures_of(rows)
    names = _partners(weights, task) if partners is None else partners
    shares = weights.reindex(columns=list(names), fill_value=0.0).to_numpy(float, copy=True)
    unknown = [name for name in weights if name != task and name not in names] if partners is not None else []
    strange = weights[unknown].gt(_SAME_TOTAL).any(axis=1).to_numpy() & (rows["weight"].to_numpy(float) > 0)
    shares[strange] = np.nan  # trained on a source that the fit does not know
    return {**x, "partners": shares}, names


def _partners(weights: pd.DataFrame, task: str) -> tuple[str, ...]:
    """Return the sources without the task itself, or without the main source if the task is no source."""
    means = weights.mean()
    sources = sorted(str(name) for name in weights.columns[means > 0])
    reference = task if task in sources else str(means.idxmax())
    return tuple(name for name in sources if name != reference)


def _column(rows: pd.DataFrame, name: str, observations: Observations, *, zero: bool) -> Array:
    values = rows[name].to_numpy(float) if name in rows else np.full(len(rows), np.nan)
    wrong = ~(values >= 0) if zero else ~(values > 0)
    if wrong.any():
        where = observations.locator.name(rows, int(wrong.argmax()))
        raise TableError(f"{where}: this law needs `{name}` above 0 in every row, but this one has none.")
    return values

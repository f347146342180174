"""What a law that does not know the training length makes of models that were trained for several lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mnmt_laws.answers.fractions import fitted_fraction
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import Uncertainty, bounds_of
from mnmt_laws.tables.observations import Observations

_NEAR = 1.2  # lengths that differ by a smaller factor are one
_FEWEST_SIZES = 3


@dataclass(frozen=True, kw_only=True)
class OneLength:
    """The capacity law of the models of one training length alone (Fernandes et al. 2023, eqs. 11 and 12)."""

    tokens: float
    """The longest of these models' lengths, target tokens of all tasks."""

    fit: LawFit


@dataclass(frozen=True, kw_only=True)
class WithoutLength:
    """The capacity law, fitted to one training length at a time, and what it says of longer training."""

    by_length: tuple[OneLength, ...]
    """Its fits, the shortest training first; at least two."""

    rows: pd.DataFrame
    """The models of the longest training: `task`, `size`, `weight`, `observed`, `predicted` by the law of the
    next shorter one, and `error`, the measured value over the predicted, less 1."""

    @property
    def error(self) -> float:
        """Root mean square relative error at the longest training."""
        return float(np.sqrt(np.mean(self.rows["error"] ** 2)))

    def fractions(self) -> pd.DataFrame:
        """Return f(p) of each length: `task`, `tokens`, `weight`, `value`, and `lower` and `upper` (95%)."""
        columns = ["task", "tokens", "weight", "value", "lower", "upper"]
        return pd.DataFrame(list(self._fractions()), columns=columns)

    def _fractions(self) -> Iterator[tuple[str, float, float, float, float, float]]:
        for length in self.by_length:
            rows = length.fit.rows
            for task in length.fit.tasks:
                weights = np.unique(rows.loc[rows["task"] == task, "weight"])
                weights = weights[(weights > 0) & (weights < 1)]
                values = fitted_fraction(length.fit, task=task, weight=weights)
                draws = np.asarray(fitted_fraction(length.fit, task=task, weight=weights, draws=True))
                lower, upper = bounds_of(draws.reshape(-1, len(weights)))
                for number in zip(weights, values, lower, upper, strict=True):
                    weight, value, least, most = map(float, number)
                    yield task, length.tokens, weight, value, least, most


def without_length(
    observations: Observations, *, objective: str = "log-ols", uncertainty: Uncertainty | None = None
) -> WithoutLength | None:
    """Fit the capacity law to the models of each training length alone, as if there were no other.

    Args:
        observations: Models of several lengths.
        objective: As in `fit`.
        uncertainty: As in `fit`.

    Returns:
        The fits; None unless two lengths have enough models of enough sizes.
    """
    lengths = []
    for rows in _by_length(observations.fit):
        part = replace(observations, frame=rows.reset_index(drop=True))
        try:
            fitted = fit(part, law="capacity", objective=objective, uncertainty=uncertainty)
        except TableError:
            continue
        lengths.append(OneLength(tokens=float(rows["tokens"].max()), fit=fitted))
    if len(lengths) < 2:
        return None
    return WithoutLength(by_length=tuple(lengths), rows=_predictions(*lengths[-2:]))


def _by_length(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of each training length that has enough sizes, the shortest first."""
    rows = rows.sort_values("tokens")
    number = (rows["tokens"] / rows["tokens"].shift() > _NEAR).cumsum()
    for _, part in rows.groupby(number):
        if part.groupby("task")["size"].nunique().min() >= _FEWEST_SIZES:
            yield part


def _predictions(shorter: OneLength, longest: OneLength) -> pd.DataFrame:
    rows = longest.fit.rows
    rows = rows[rows["task"].isin(shorter.fit.tasks)]
    predicted = shorter.fit.predict(rows)
    return rows[["task", "size", "weight"]].assign(
        observed=rows["value"], predicted=predicted, error=rows["value"] / predicted - 1
    )

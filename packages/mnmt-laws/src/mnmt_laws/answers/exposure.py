"""Exponents of curves over size, and whether they follow the weight, the training length or the exposure.

A *curve* holds the losses of one task at one weight p and one training length D over size. Its *exposure* is
p D, what its models read of the task.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.back_test import ROUNDING
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import Uncertainty
from mnmt_laws.tables.lengths import typical_lengths
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe

Limits = Literal["known", "zero", "free"]
ALL = "all tasks"
MIN_SIZES = 3
"""Fewest sizes of a curve."""
_CURVE = ["task", "weight", "length"]
_VALUES = ["alpha", "beta", "l_inf"]
_COLUMNS = [*_CURVE, "exposure", *_VALUES, *(f"{name}_std" for name in _VALUES), "sizes", "values"]
_FEWEST = 6  # curves of a regression on two predictors
_BIC = 2.0  # by which one predictor must lead
_LITTLE = 0.5  # R² below which a predictor explains little
_PREDICTORS = {"exposure": "exposure", "length": "the training length", "weight": "the weight"}


@dataclass(frozen=True, kw_only=True)
class ExponentTest:
    """What the exponent α of a task's curves over size follows."""

    task: str
    """The task, or `all tasks`, whose curves then count by their distance from their own task's mean."""

    curves: int
    """The number of curves."""

    spearman: dict[str, float]
    """Rank correlation of α with `weight`, `length` and `exposure`; NaN where that does not vary."""

    r_squared: dict[str, float]
    """Share of the variance of α that a line in the logarithm of each explains."""

    per_exposure: tuple[float, float, float]
    """Change of α per unit of log exposure at equal weight, and its 95% interval."""

    at_equal_exposure: tuple[float, float, float]
    """Change of α per unit of log weight at equal exposure, and its 95% interval.

    The intervals are those of least squares with errors of unequal variance (HC3), Student's t.
    """

    @property
    def follows(self) -> tuple[str, ...]:
        """The predictor that explains most of α, and those within 2 of its BIC; empty below half of it."""
        known = {name: share for name, share in self.r_squared.items() if math.isfinite(share)}
        best = max(known.values(), default=0.0)
        if len(known) < len(_PREDICTORS) or self.curves < _FEWEST or best < _LITTLE:
            return ()
        least = math.log(max(1 - best, 1e-12))  # of the same number of parameters, BIC is n log Σr² alone
        behind = {name: self.curves * (math.log(max(1 - known[name], 1e-12)) - least) for name in _PREDICTORS}
        return tuple(name for name in _PREDICTORS if behind[name] <= _BIC)

    @property
    def followed(self) -> str:
        """The same in words."""
        names = " or ".join(_PREDICTORS[name] for name in self.follows)
        return names or "neither weight, length nor exposure closely"

    def describe(self) -> str:
        """Return the finding in a sentence or two."""
        task = "" if self.task == ALL else f" of {self.task}"
        if math.isnan(self.at_equal_exposure[0]):
            return (
                f"Curves over size{task} are too few, or of too few weights and lengths, to tell whether the "
                "exponent α follows the weight or the exposure."
            )
        (first, best), *rest = sorted(self.r_squared.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{_PREDICTORS[name]} {share:.0%}" for name, share in rest)
        halved = sorted(-math.log(2) * end for end in self.at_equal_exposure)
        return (
            f"The exponent α{task} follows {self.followed}: over {self.curves} curves "
            f"{_PREDICTORS[first]} explains {best:.0%} of its variance, {shares}. At equal exposure, half "
            f"the weight moves it by {halved[1]:+.3f} ({halved[0]:+.3f} to {halved[2]:+.3f})."
        )


@dataclass(frozen=True, kw_only=True)
class Exponents:
    """α, β and L∞ of each curve over size, and what α follows."""

    curves: pd.DataFrame
    """A row for each curve: `task`, `weight`, `length` (in `unit`; NaN where unknown), `exposure` = weight ×
    length, `alpha`, `beta` (for N in parameters), `l_inf`, the standard deviation of each (`alpha_std`, …;
    NaN where it was not estimated), and how many `sizes` and `values` it has."""

    tests: tuple[ExponentTest, ...]
    """A test for each task, then of all tasks if there are several."""

    limits: Limits
    """Where L∞ comes from; see `exponents_by_exposure`."""

    unit: str
    """The unit of lengths, `tokens` or `steps`; empty where they are unknown."""

    value_unit: str
    """The unit of L∞."""

    @property
    def lengths_vary(self) -> bool:
        """Whether there are curves of several training lengths."""
        return self.curves["length"].nunique() > 1

    def describe(self) -> str:
        """Return what α follows, over all tasks and of those that differ."""
        if not self.lengths_vary:
            return (
                "The models of a curve over size were all trained for one length, so whether the exponent α "
                "follows the weight or the exposure cannot be told."
            )
        whole = self.tests[-1]
        others = [
            f" Of {test.task} it follows {test.followed}."
            for test in self.tests[:-1]
            if test.follows and set(test.follows).isdisjoint(whole.follows)
        ]
        return whole.describe() + "".join(others)


def exponents_by_exposure(
    source: TableSource | Observations,
    *,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    limits: Limits | None = None,
    uncertainty: Uncertainty | None = None,
) -> Exponents:
    """Fit L = β N^-α + L∞ to each curve over size, and test what α follows.

    A curve has at least three sizes. Where lengths vary, a task's curves are of the sizes that were trained
    for every length, if these are three or more: exponents of other ranges of size are not comparable.

    Args:
        source: Path of a run table or of a folder of run records, or a frame, a run table or observations,
            read as by `observe`.
        metric: As in `observe`; it must fall with size.
        testset: As in `observe`.
        architecture: As in `observe`.
        limits: `known` takes L∞ from the column `irreducible`, and 0 where that is empty; values not above
            it are left out. `zero` takes 0, so α is the slope of the loss on logarithmic axes. `free` fits
            it to each curve by the per-weighting law. By default `free` if there is one length, as in the
            paper; else `known` or, if nothing is, `zero`: one curve seldom tells its α from its L∞.
        uncertainty: Of `free`, as in `fit`. The standard deviations of the others are those of least squares,
            with one variance for the curves of a task and length.

    Raises:
        TableError: If the source cannot be read, or a choice must be made.
        ArgumentError: If the metric rises, or no curve has three sizes.
    """
    observations = observe(source, metric=metric, testset=testset, architecture=architecture)
    if observations.rising:
        raise ArgumentError(f"`metric` must fall with size, as loss does, but is {observations.metric!r}.")
    rows = _comparable(with_length(observations, observations.fit))
    if rows.empty:
        raise ArgumentError(f"`source` must have {MIN_SIZES} sizes of a task at one weight and length.")
    origin = limits or _usual_limits(rows)
    curves = (
        _free(observations, rows, uncertainty) if origin == "free" else _fixed(rows, known=origin == "known")
    )
    curves = curves.assign(exposure=curves["weight"] * curves["length"])[_COLUMNS]
    return Exponents(
        curves=curves,
        tests=tuple(_tests(curves)),
        limits=origin,
        unit=observations.lengths.unit,
        value_unit=observations.unit,
    )


def _usual_limits(rows: pd.DataFrame) -> Limits:
    if rows["length"].nunique() < 2:
        return "free"
    return "known" if bool(rows["irreducible"].notna().any()) else "zero"


def with_length(observations: Observations, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with `length`, within 5% the same; NaN where it is unknown or goes with the size."""
    lengths = observations.lengths
    if not lengths.column or (lengths.between and not lengths.within):
        return rows.assign(length=math.nan)
    return rows.assign(length=typical_lengths(rows[lengths.column].to_numpy(float), rounding=ROUNDING))


def _comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of curves of three sizes, of the sizes that a task has at each of its lengths."""
    rows = _long_enough(rows)
    parts = [rows.iloc[:0]]
    for _, part in rows.groupby("task"):
        counts = part.groupby("size")["length"].nunique()
        common = part[part["size"].isin(counts.index[counts == counts.max()])]
        parts.append(common if common["size"].nunique() >= MIN_SIZES else part)
    return _long_enough(pd.concat(parts, ignore_index=True))


def _long_enough(rows: pd.DataFrame) -> pd.DataFrame:
    sizes = rows.groupby(_CURVE, dropna=False)["size"].transform("nunique")
    return rows[sizes >= MIN_SIZES]


def _fixed(rows: pd.DataFrame, *, known: bool) -> pd.DataFrame:
    """Fit lines to log (L - L∞) over log N, with L∞ known or 0."""
    limit = rows["irreducible"].fillna(0.0) if known else 0.0
    rows = rows.assign(l_inf=limit)
    rows = _long_enough(rows[rows["value"] > rows["l_inf"]])
    lines = [_line(key, curve) for key, curve in rows.groupby(_CURVE, dropna=False)]
    curves = pd.DataFrame(lines)
    noise = curves.groupby(["task", "length"], dropna=False)[["squares", "freedom"]].transform("sum")
    std = np.sqrt(noise["squares"] / noise["freedom"])
    return curves.assign(
        alpha_std=std * curves["alpha_scale"],
        beta_std=std * curves["beta_scale"] * curves["beta"],
        l_inf_std=math.nan,
    )


def _line(key: Hashable, curve: pd.DataFrame) -> dict[str, object]:
    """Return a curve's line of least squares, and its standard deviations over that of a value."""
    x = np.log(curve["size"].to_numpy(float))
    y = np.log((curve["value"] - curve["l_inf"]).to_numpy(float))
    centred, count = x - x.mean(), len(x)
    spread = float(centred @ centred)
    alpha = -float(centred @ y) / spread
    residuals = y - y.mean() + alpha * centred
    return {
        **dict(zip(_CURVE, key, strict=True)),  # type: ignore[call-overload]
        "alpha": alpha, "beta": math.exp(y.mean() + alpha * x.mean()), "l_inf": curve["l_inf"].iloc[0],
        "sizes": curve["size"].nunique(), "values": count,
        "squares": float(residuals @ residuals), "freedom": count - 2,
        "alpha_scale": spread**-0.5, "beta_scale": math.sqrt(1 / count + x.mean() ** 2 / spread),
    }  # fmt: skip


def _free(observations: Observations, rows: pd.DataFrame, uncertainty: Uncertainty | None) -> pd.DataFrame:
    """Fit the per-weighting law to the curves of each length."""
    parts = []
    for length, some in rows.groupby("length", dropna=False):
        one_length = replace(observations, frame=some.drop(columns="length").reset_index(drop=True))
        fitted = fit(one_length, law="per-weighting", uncertainty=uncertainty)
        parts.append(_free_curves(fitted).assign(length=length))
    counts = rows.groupby(_CURVE, dropna=False)["size"].agg(sizes="nunique", values="size").reset_index()
    return pd.concat(parts).merge(counts, on=_CURVE)


def _free_curves(per_weighting: LawFit) -> pd.DataFrame:
    """Return `task`, `weight`, α, β, L∞ and their standard deviations of a fit of the per-weighting law."""
    values = per_weighting.parameters[_VALUES].to_dataframe()[_VALUES]
    std = per_weighting.std[_VALUES].to_dataframe()[_VALUES].add_suffix("_std")
    return values.join(std).dropna(subset=_VALUES).reset_index()


def _tests(curves: pd.DataFrame) -> Iterator[ExponentTest]:
    """Yield the test of each task, and of all tasks if there are several."""
    groups = [(str(task), part) for task, part in curves.groupby("task")]
    for task, part in [*groups, *([(ALL, curves)] if len(groups) > 1 else [])]:
        logs = part[["weight", "length", "exposure"]].transform("log")
        tasks = part["task"]
        centred = logs - logs.groupby(tasks).transform("mean")
        alpha = (part["alpha"] - part["alpha"].groupby(tasks).transform("mean")).to_numpy(float)
        columns = {name: centred[name].to_numpy(float) for name in _PREDICTORS}
        ranks = stats.rankdata(alpha)
        rho = {name: _correlation(stats.rankdata(x), ranks) for name, x in columns.items()}
        squares = {name: _correlation(x, alpha) ** 2 for name, x in columns.items()}
        slopes = _regression(centred[["exposure", "weight"]].to_numpy(float), alpha, tasks.nunique())
        yield ExponentTest(
            task=task, curves=len(part), spearman=rho, r_squared=squares,
            per_exposure=slopes[0], at_equal_exposure=slopes[1],
        )  # fmt: skip


def _correlation(x: Array, y: Array) -> float:
    """Return Pearson's correlation; NaN if either is constant or unknown."""
    x, y = x - np.mean(x), y - np.mean(y)
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 1e-12 * len(x) else math.nan


def _regression(x: Array, y: Array, means: int) -> list[tuple[float, float, float]]:
    """Return each slope of centred predictors, with the ends of its 95% interval (HC3); NaN if undetermined.

    Args:
        x: (n, K) predictors, centred within each task.
        y: (n,) values, centred in the same way.
        means: Number of tasks, whose means were taken away.
    """
    freedom = len(y) - x.shape[1] - means
    if len(y) < _FEWEST or freedom < 1 or not np.isfinite(x).all() or np.linalg.matrix_rank(x, 1e-9) < 2:
        return [(math.nan,) * 3] * x.shape[1]
    inverse = np.linalg.inv(x.T @ x)
    slopes = inverse @ x.T @ y
    leverage = np.sum((x @ inverse) * x, axis=1) + means / len(y)  # of the slopes, and of the means
    errors = (y - x @ slopes) / np.maximum(1 - leverage, 1e-9)
    inner = x * errors[:, None]
    std = np.sqrt(np.diag(inverse @ (inner.T @ inner) @ inverse))
    reach = std * float(stats.t.ppf(0.975, freedom))
    return [(float(b), float(b - r), float(b + r)) for b, r in zip(slopes, reach, strict=True)]

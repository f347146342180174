"""Predictions of held-out runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mnmt_laws.fitting.back_test import ROUNDING, describe_signs, is_tested
from mnmt_laws.fitting.law_fit import LawFit, require_any_fit
from mnmt_laws.fitting.prediction import predict_interval


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Predictions of held-out runs."""

    law: str
    """Name of the law that predicts."""

    rows: pd.DataFrame
    """Columns `run`, `task`, `size`, `weight`, `mixture`, `tokens`, `new_size`, `new_length`, `new_weight`,
    `side` (`above`, `below` or `between`: where a new size lies among those that the task was fitted at),
    `observed`, `predicted`, `lower` and `upper` (95%, of the law), `predicted_lower` and `predicted_upper`
    (95%, of a new model), `error`, the measured value over the predicted, less 1, `irreducible`, the known
    irreducible loss (NaN where unknown), and `constant`, the mean of the task's fitted values."""

    untested: tuple[str, ...] = ()
    """`size` or `length`, where runs lie beyond those fitted and no back-test was possible: the intervals of
    new models take the growth of the law's own error there from other axes, or hold nothing of it."""

    def errors(self) -> pd.Series:
        """Return the absolute relative errors where the law predicts."""
        return self.rows["error"].abs().dropna()

    def reducible_errors(self) -> pd.Series:
        """Return the absolute errors of log(L - L∞) where the irreducible loss L∞ is known and exceeded."""
        least = self.rows[["observed", "predicted"]].min(axis=1, skipna=False)
        known = self.rows[least > self.rows["irreducible"]]
        reducible = known[["observed", "predicted"]].sub(known["irreducible"], axis=0).astype(float)
        return pd.Series(np.abs(np.log(reducible["observed"] / reducible["predicted"])))

    @property
    def num_runs(self) -> int:
        """The number of runs that were predicted."""
        known = self.rows[self.rows["error"].notna()]
        return len(known.drop_duplicates(["run", "size", "mixture"]))

    @property
    def signs(self) -> str:
        """On which side the measured values lie: `all ten above the prediction`."""
        return describe_signs(self.rows["error"].to_numpy(float))

    @property
    def num_inside(self) -> tuple[int, int]:
        """How many values lie within the interval of a new model, and of how many such intervals."""
        return self._count_inside("observed"), len(self._intervals)

    @property
    def num_constant(self) -> int:
        """In how many of these intervals the mean of the task's fitted values lies: those tell little."""
        return self._count_inside("constant")

    @property
    def _intervals(self) -> pd.DataFrame:
        return self.rows.dropna(subset=["predicted_lower", "predicted_upper"])

    def _count_inside(self, column: str) -> int:
        known = self._intervals
        return int(known[column].between(known["predicted_lower"], known["predicted_upper"]).sum())

    @property
    def width(self) -> float:
        """Median width of the intervals of new models, as a share of the prediction; NaN without any."""
        known = self._intervals
        return float(((known["predicted_upper"] - known["predicted_lower"]) / known["predicted"]).median())

    @property
    def reducible_width(self) -> float:
        """Median width as a share of the reducible loss predicted; NaN where no irreducible loss is known."""
        known = self._intervals
        reducible = (known["predicted"] - known["irreducible"]).clip(lower=0)
        return float(((known["predicted_upper"] - known["predicted_lower"]) / reducible).median())

    @property
    def coverage(self) -> str:
        """How many of the values lie within the interval of a new model, as `9 of 10`; empty if unknown."""
        inside, known = self.num_inside
        return f"{inside} of {known}" if known else ""

    @property
    def intervals(self) -> str:
        """How many intervals hold the value and a constant, and how wide they are, in a sentence."""
        inside, count = self.num_inside
        if not count:
            return ""
        share = self.reducible_width
        reducible = f", {share:.2g} times the reducible loss" if np.isfinite(share) else ""
        return (
            f"Of {count} 95% prediction intervals, {inside} hold the value. Their median width is "
            f"{self.width:.1%} of the prediction{reducible}; the mean of the fitted values lies in "
            f"{self.num_constant}."
        )

    @property
    def news(self) -> str:
        """What is new about the values, each once: `2 at a size above those fitted and a new weight`."""
        counts = Counter(kind for kind in self.kinds[self.rows["error"].notna()] if kind)
        return ", ".join(f"{count} at {kind}" for kind, count in counts.items())

    @property
    def kinds(self) -> pd.Series:
        """What is new about each row: `a size above those fitted and a new weight`; empty if nothing."""
        names = {
            "new_size": "a size {side} those fitted",
            "new_length": "a new length",
            "new_weight": "a new weight",
        }
        kinds = [
            " and ".join(name.format(side=row["side"]) for key, name in names.items() if row[key])
            for row in self.rows.to_dict("records")
        ]
        return pd.Series(kinds, index=self.rows.index, dtype=object)

    def describe(self) -> str:
        """Return errors, their sign and the coverage in sentences; empty where nothing was predicted."""
        errors = self.errors()
        if errors.empty:
            return ""
        news = f" ({self.news})" if self.news else ""
        reducible = self.reducible_errors()
        beyond = f" (median error of log(L - L∞): {reducible.median():.2g})" if len(reducible) else ""
        intervals = f" {self.intervals}" if self.intervals else ""
        return (
            f"The {self.law} law predicted {len(errors)} held-out values{news} with a median error of "
            f"{errors.median():.1%} and a largest of {errors.max():.1%}{beyond}: {self.signs}.{intervals}"
            f"{self.caution}"
        )

    @property
    def caution(self) -> str:
        """What the intervals of new models cannot hold, in a sentence; empty if nothing."""
        if not self.untested:
            return ""
        names = {"size": "larger sizes", "length": "longer training"}
        where = " and ".join(names[name] for name in self.untested)
        return (
            f" No back-test tells how far the law errs at {where} (it takes four sizes or lengths): the "
            "intervals there hold only as much of that as the other axes show."
        )


def predict_held_out(fit: LawFit) -> HeldOut:
    """Predict every held-out row that a law can predict, with intervals of the law and of a new model.

    Raises:
        TypeError: If `fit` is not a fit.
    """
    require_any_fit(fit)
    frame, fitted = fit.observations.frame, fit.rows
    predictable = frame["role"].eq("held-out") & (frame["weight"].gt(0) | fit.law.zero_shot)
    rows = frame[predictable & frame["task"].isin(fit.tasks)].reset_index(drop=True)
    known = predict_interval(fit, rows)
    predicted = known.predicted
    columns = ["run", "task", "size", "weight", "mixture", "tokens"]
    new_size = ~_occur(rows, fitted, "size")
    table = rows[columns].assign(
        side=_side(rows, fitted).where(new_size, ""),
        new_size=new_size,
        new_length=_beyond(rows, fitted, "tokens"),
        new_weight=~_occur(rows, fitted, "weight"),
        observed=rows["value"],
        predicted=predicted,
        lower=known.law_lower,
        upper=known.law_upper,
        predicted_lower=known.lower,
        predicted_upper=known.upper,
        error=rows["value"] / predicted - 1,
        irreducible=rows["task"].map({task: _irreducible(fit, task) for task in fit.tasks}).astype(float),
        constant=rows["task"].map(fitted.groupby("task")["value"].mean()).astype(float),
    )
    return HeldOut(law=fit.law.name, rows=table, untested=_untested(fit, rows))


def _irreducible(fit: LawFit, task: str) -> float:
    """Return the known irreducible loss of a task; NaN where none is known."""
    known = fit.observations.irreducible_of(task)
    return known if np.isfinite(known) else float("nan")


def _untested(fit: LawFit, rows: pd.DataFrame) -> tuple[str, ...]:
    """Return along what the rows lie beyond those fitted, though no back-test tells how far the law errs."""
    axes = {"size": "size", "length": "tokens"}
    return tuple(
        name
        for name, axis in axes.items()
        if not is_tested(fit, axis) and axis in rows and _beyond(rows, fit.rows, axis).any()
    )


def _occur(rows: pd.DataFrame, fitted: pd.DataFrame, column: str) -> pd.Series:
    """Return whether a row's size or weight is among those that its task was fitted at."""
    known = {task: part[column].to_numpy(float) for task, part in fitted.groupby("task")}
    return pd.Series(
        [
            bool(np.isclose(known[task], value, rtol=1e-9, atol=1e-9).any())
            for task, value in zip(rows["task"], rows[column], strict=True)
        ],
        index=rows.index,
        dtype=bool,
    )


def _beyond(rows: pd.DataFrame, fitted: pd.DataFrame, axis: str) -> pd.Series:
    """Return whether a row's size or length is greater than any that its task was fitted at."""
    greatest = rows["task"].map(fitted.groupby("task")[axis].max())
    return rows[axis] > (1 + ROUNDING) * greatest


def _side(rows: pd.DataFrame, fitted: pd.DataFrame) -> pd.Series:
    """Return whether a row's size is above, below or between those that its task was fitted at."""
    least, most = (rows["task"].map(fitted.groupby("task")["size"].agg(end)) for end in ("min", "max"))
    sides = np.select([rows["size"] > most, rows["size"] < least], ["above", "below"], "between")
    return pd.Series(sides, index=rows.index)


def compare_irreducible(fit: LawFit) -> pd.DataFrame:
    """Return a law's L∞ beside each task's known irreducible loss, in the unit of the losses.

    Returns:
        Columns `task`, `true`, `fitted`, `std`, `lower`, `upper`, `difference`; empty where none is
        known, the metric is not loss or the law has no L∞.
    """
    std, interval, rows = fit.std, fit.interval(), []
    for task in fit.tasks if "l_inf" in fit.parameters else []:
        true = fit.observations.irreducible_of(task)
        if np.isfinite(true):
            fitted = float(fit.parameters.l_inf.sel(task=task))
            lower, upper = (float(value) for value in interval.l_inf.sel(task=task))
            rows.append((task, true, fitted, float(std.l_inf.sel(task=task)), lower, upper, fitted - true))
    return pd.DataFrame(rows, columns=["task", "true", "fitted", "std", "lower", "upper", "difference"])

"""Back-tests: predictions of the largest models, the longest runs or a mixture by a law fitted without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.refits import log_of, predict_between_weights, predict_without
from mnmt_laws.tables.lengths import level_numbers

Axis = Literal["size", "tokens", "compute", "mixture"]
"""The part that a back-test leaves out: the largest size, the longest training, the greatest compute (size ×
tokens), or each mixture in turn."""

_FEWEST = 3  # values of an axis that a law with a limit must still see
_MANY = 12  # values of an axis; beyond them a tenth of the rows is left out, not one value

ROUNDING = 0.05
"""Relative difference up to which neighbouring sizes or lengths count as one: runs of equal steps on other
mixtures differ in their tokens by a few percent. A back-test that reaches no further says nothing."""

_MOST_MIXTURES = 24
_FACTORS = {"compute": ("size", "tokens")}  # columns whose product is an axis
OUTER: tuple[Axis, ...] = ("size", "tokens", "compute")
"""Axes with a far end, beyond which a law extrapolates."""

_NAMES = {
    "size": "the largest size", "tokens": "the longest training", "compute": "the greatest compute",
    "mixture": "each mixture in turn",
}  # fmt: skip
_UNITS = {"size": "parameters", "tokens": "tokens", "compute": "parameters × tokens"}
_WORDS = (
    "none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BackTest:
    """A law's predictions of rows that it was refitted without."""

    law: str
    """The law's name."""

    left_out: Axis
    """The part that was left out."""

    rows: pd.DataFrame
    """`run`, `task`, `size`, `weight`, `tokens`, `observed`, `predicted` and `error`, the measured value over
    the predicted, less 1."""

    boundary: float
    """The largest value of the axis that the law was refitted to; NaN for mixtures."""

    reach: float
    """Distance of the left-out rows, in multiples of the boundary (geometric mean); NaN for mixtures."""

    excess: float
    """Mean squared error beyond the noise, as a multiple of the variance of the noise; 0 where
    noise explains all of it."""

    beyond_noise: float
    """Share of the mean squared error beyond the noise and the uncertainty of the law, 1 - 1/F."""

    chance: float
    """Probability of errors as large as these if the law is true (Chow's test of predictions)."""

    @property
    def error(self) -> float:
        """Root mean square relative error."""
        return float(np.sqrt(np.mean(self.rows["error"] ** 2)))

    @property
    def signs(self) -> str:
        """The side on which the measured values lie: `all ten above the prediction`."""
        return describe_signs(self.rows["error"].to_numpy(float))

    def describe(self) -> str:
        """Return the back-test in a sentence."""
        where = _NAMES[self.left_out]
        if self.left_out != "mixture":
            limit = f"{self.boundary:.3g} {_UNITS[self.left_out]}"
            where = f"{where} ({self.reach:.1f} times the next, {limit})"
        surprise = "" if not self.chance < 0.05 else ", more than noise explains"
        return (
            f"Fitted without {where}, the {self.law} law missed the values there by {self.error:.1%} "
            f"(root mean square; {self.signs}{surprise})."
        )


def back_test(fit: LawFit, *, left_out: Axis = "size") -> BackTest | None:
    """Predict the largest size, the longest training, the greatest compute or each mixture without them.

    The law is refitted to the other rows, and predicts those left out.

    Of many sizes or lengths, the outer tenth of the rows is left out. Answers that extrapolate rest on the
    error.

    Args:
        fit: A fit.
        left_out: `size`, `tokens`, `compute` or `mixture`.

    Returns:
        The back-test; None where the law does not know the axis, or too little would be left to fit.

    Raises:
        ValueError: If `left_out` is another.
    """
    if left_out not in _NAMES:
        raise ArgumentError(f"`left_out` must be one of {', '.join(_NAMES)}, but is {left_out!r}.")
    masks = masks_of_mixtures(fit) if left_out == "mixture" else _mask_beyond(fit, left_out)
    if not len(masks) or not _can_predict(fit, left_out):
        return None
    keyed = bool(fit.evaluator.varying) and left_out == "mixture"
    predicted = predict_between_weights(fit, masks) if keyed else predict_without(fit, masks)
    return _test(fit, left_out, masks, predicted)


def back_tests(fit: LawFit) -> tuple[BackTest, ...]:
    """Return the back-tests without the largest size, the longest training and the greatest compute.

    Each is there where the data allow it.

    They refit the law, so each fit is tested once.
    """
    if fit not in _tests:
        tests = [back_test(fit, left_out=axis) for axis in OUTER]
        _tests[fit] = tuple(test for test in tests if test is not None)
    return _tests[fit]


_tests: WeakKeyDictionary[LawFit, tuple[BackTest, ...]] = WeakKeyDictionary()


def is_tested(fit: LawFit, axis: str) -> bool:
    """Return whether a back-test measures a law's errors beyond the data on an axis, if it has that axis."""
    return axis not in fit.law.predictors or any(test.left_out == axis for test in back_tests(fit))


def _can_predict(fit: LawFit, axis: Axis) -> bool:
    if axis == "mixture":
        return fit.knows_mixture
    return set(_FACTORS.get(axis, (axis,))) <= set(fit.law.predictors)


def positions(rows: pd.DataFrame, axis: Axis) -> Array:
    """Return (n,) the place of each row on an axis other than mixtures: its size, tokens or their product."""
    return np.asarray(rows[list(_FACTORS.get(axis, (axis,)))].prod(axis=1, skipna=False), dtype=float)


def beyond(values: Array) -> NDArray[np.bool_]:
    """Return (n,) the rows of the largest value, or the outer tenth of the rows where values are many."""
    levels = level_numbers(values, rounding=ROUNDING)
    highest = levels.max()
    if 0 < highest < _MANY:
        return np.asarray(levels == highest)
    return np.asarray(values > np.quantile(values, 0.9))


def _mask_beyond(fit: LawFit, axis: Axis) -> NDArray[np.bool_]:
    """Return (1, n) the rows to leave out, of tasks with enough others; (0, n) if there are none."""
    rows, mask = fit.rows, np.zeros(len(fit.rows), dtype=bool)
    at = positions(rows, axis)
    for task in fit.tasks:
        places = np.flatnonzero(rows["task"] == task)
        values = at[places]
        outer = beyond(values) if np.isfinite(values).all() else np.zeros(len(values), dtype=bool)
        outer &= _enough_at_weights(fit, rows["weight"].to_numpy(float)[places], values, outer)
        if outer.any() and _enough(fit, values[~outer], task):
            mask[places[outer]] = True
    return mask[None] if mask.any() else np.zeros((0, len(mask)), dtype=bool)


def _enough_at_weights(
    fit: LawFit, weights: Array, values: Array, outer: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return (n,) whether a law that is fitted to each weight can still be fitted to the row's weight."""
    if any(parameter.varies != "weight" for parameter in fit.law.parameters):
        return np.ones(len(weights), dtype=bool)
    enough = {
        weight: _num_apart(values[(weights == weight) & ~outer]) >= _fewest(fit)
        for weight in np.unique(weights)
    }
    return np.array([enough[weight] for weight in weights], dtype=bool)


def _enough(fit: LawFit, values: Array, task: str) -> bool:
    """Return whether a law can be refitted to the remaining rows, at these values (n,) of the axis."""
    return len(values) > fit.num_parameters(task) and _num_apart(values) >= _fewest(fit)


def _fewest(fit: LawFit) -> int:
    """Return the values of an axis that a law must still see: a line needs two, a limit a third."""
    return _FEWEST if any(parameter.kind == "limit" for parameter in fit.law.parameters) else _FEWEST - 1


def _num_apart(values: Array) -> int:
    """Return the number of values that differ by more than rounding."""
    return len(np.unique(np.floor(np.log(values / values.min()) / np.log1p(ROUNDING)))) if len(values) else 0


def masks_of_mixtures(fit: LawFit) -> NDArray[np.bool_]:
    """Return (mixtures, n) the rows of each mixture within the others, or of groups of many mixtures.

    For each task, its own least and greatest weight always stay.
    """
    rows = fit.rows
    names = rows["mixture"].where(rows["mixture"] != "", rows["weight"].map("{:.9g}".format))
    groups = rows.groupby("task")["weight"]
    least, greatest = groups.transform("min"), groups.transform("max")
    inner = (rows["weight"].gt(least) & rows["weight"].lt(greatest)) | least.eq(greatest)
    codes, texts = pd.factorize(names.where(inner), sort=True)
    folds = np.where(codes < 0, -1, codes % _MOST_MIXTURES)
    masks = [] if len(texts) < 2 else [folds == fold for fold in np.unique(folds[folds >= 0])]
    return np.array(masks, dtype=bool).reshape(-1, len(rows))


def _test(fit: LawFit, axis: Axis, masks: NDArray[np.bool_], predicted: Array) -> BackTest | None:
    rows, out = fit.rows, masks.any(axis=0)
    values = np.where(masks, predicted, 0.0).sum(axis=0)
    out &= np.isfinite(values) & (values != 0)
    if not out.any():
        return None
    observed = rows["value"].to_numpy(float)
    columns = [name for name in ("run", "task", "size", "weight", "tokens") if name in rows]
    table = rows.loc[out, columns].assign(
        observed=observed[out], predicted=values[out], error=observed[out] / values[out] - 1
    )
    boundary = reach = chance = np.nan
    excess = beyond = 0.0
    if axis != "mixture":
        at = positions(rows, axis)
        rest = ~masks.any(axis=0)
        inside = pd.Series(at[rest]).groupby(rows["task"].to_numpy()[rest]).max()
        boundary = float(inside[table["task"].unique()].max())
        reach = float(np.exp(np.log(at[out] / table["task"].map(inside)).mean()))
        if reach <= 1 + ROUNDING:
            return None
        size, beyond, chance = _chow(fit, predicted[0], out)
        excess = size * beyond
    return BackTest(
        law=fit.law.name, left_out=axis, rows=table.reset_index(drop=True), boundary=boundary, reach=reach,
        excess=excess, beyond_noise=beyond, chance=chance,
    )  # fmt: skip


def _chow(fit: LawFit, predicted: Array, out: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the squared error in variances of noise, its share beyond noise, and the chance of such errors.

    F = (S - S_inside) / (m s²) with the sums of squares S of all rows and S_inside of the remaining ones, m
    rows left out and s² = S_inside / (n - m - k) (Chow 1960); summed over tasks. A share of 1 - 1/F of the
    mean squared error exceeds noise and the uncertainty of the law.
    """
    rows = fit.rows
    observed = log_of(fit, rows["value"].to_numpy(float))
    whole = (observed - log_of(fit, fit.predict(rows))) ** 2
    inside = (observed - log_of(fit, predicted)) ** 2
    statistic, squares, freedom = 0.0, [], 0.0
    for task in rows.loc[out, "task"].unique():
        of_task = (rows["task"] == task).to_numpy()
        rest = int((of_task & ~out).sum()) - fit.num_parameters(str(task))
        variance = float(inside[of_task & ~out].sum()) / max(rest, 1)
        statistic += (float(whole[of_task].sum()) - variance * max(rest, 1)) / max(variance, 1e-300)
        squares.append(inside[of_task & out] / max(variance, 1e-300))
        freedom += rest
    count = int(out.sum())
    ratio = max(statistic / count, 0.0)
    chance = float(f_distribution.sf(ratio, count, max(freedom, 1)))
    size = float(np.concatenate(squares).mean())
    return size, (1 - 1 / ratio if ratio > 1 else 0.0), chance


def count_in_words(count: int) -> str:
    """Return a number up to twelve as a word, and others in digits."""
    return _WORDS[count] if 0 <= count < len(_WORDS) else str(count)


def describe_signs(errors: Array) -> str:
    """Describe the side of their predictions on which measured values lie.

    Args:
        errors: (n,) measured less predicted, NaN where nothing was predicted.

    Returns:
        `all ten above the prediction`, `all ten below the prediction`, or `7 of 10 above the prediction`.
    """
    known = errors[np.isfinite(errors)]
    count, above = len(known), int((known > 0).sum())
    if not count:
        return "nothing was predicted"
    if above in (0, count):
        who = "the one value is" if count == 1 else f"all {count_in_words(count)}"
        return f"{who} {'above' if above else 'below'} the prediction"
    return f"{above} of {count} above the prediction"

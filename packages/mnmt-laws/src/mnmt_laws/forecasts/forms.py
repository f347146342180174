"""The forms of a forecast: laws and rulers, each with its back-tests and its share in the average."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.arrays import Array
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.back_test import BackTest, back_test
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.refits import NO_REFITS
from mnmt_laws.forecasts.own_error import OwnError, log_errors, own_error
from mnmt_laws.forecasts.rivals import find_rivals
from mnmt_laws.forecasts.target import Target, at_length, is_near
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.units import check_units

_log = logging.getLogger(__name__)

_KEYS = ("run", "task", "size", "weight", "tokens")
AXES = ("size", "tokens", "mixture")
_COLUMNS = {"size": "size_error", "tokens": "length_error", "mixture": "mixture_error"}
_MOST_EVIDENCE = 4  # independent errors of one back-test; those of a run's tasks and weights are akin


@dataclass(frozen=True, kw_only=True, eq=False)
class Form:
    """A law fitted to the table, and how it did in its back-tests."""

    fit: LawFit
    """The estimate, without refits."""

    tests: dict[str, BackTest]
    """The back-tests that the table allows, by axis."""

    errors: dict[str, pd.Series]
    """Errors of log-losses in each, of the rows nearest to the target, by run, task and place."""

    model_errors: tuple[OwnError, ...]
    """The law's own error beyond the data."""

    @property
    def untested(self) -> dict[str, float]:
        """The greatest value of each axis that the law knows and no back-test has left out."""
        rows = self.fit.rows
        return {
            axis: float(rows[axis].max())
            for axis in ("size", "tokens")
            if axis in self.fit.law.predictors and axis not in self.tests
        }

    @property
    def name(self) -> str:
        """The name of its law."""
        return self.fit.law.name


def forms_of(
    observations: Observations,
    target: Target,
    laws: Sequence[Law] | None = None,
    *,
    length: bool = False,
    **options: Any,
) -> list[Form]:
    """Return the forms that a table admits for a target.

    Laws without length see the rows of the target's length only, where the table has such.

    Args:
        observations: The table.
        target: The model to predict.
        laws: The laws to fit; by default all that the table admits.
        length: Whether only laws are fitted that predict from size and length, and level off.
        **options: Of `fit`.
    """
    check_units(observations.rows_to_fit(zero_shot=True), observations.locator, observations.scaled)
    views = [observations]
    if observations.lengths.within and target.tokens is not None:
        short = at_length(observations, target.tokens)
        views += [] if short is None else [short]
    forms: dict[str, Form] = {}
    for view in views:
        for law in find_rivals(view, laws):
            if law.name not in forms and (not length or _levels_off(law)):
                form = _form(view, law, target, options)
                forms |= {} if form is None else {law.name: form}
    return list(forms.values())


def _levels_off(law: Law) -> bool:
    """Return whether a law knows size and length, and levels off far from the data, as rulers do not."""
    limited = any(parameter.kind == "limit" for parameter in law.parameters)
    return limited and {"size", "tokens"} <= set(law.predictors)


def _form(observations: Observations, law: Law, target: Target, options: dict[str, Any]) -> Form | None:
    try:
        fitted = fit(observations, law=law, **{**options, "uncertainty": NO_REFITS})
    except TableError as error:
        _log.debug("%s law: %s", law.name, error)
        return None
    mixed = len(fitted.tasks) > 1
    if set(fitted.tasks) != set(observations.tasks) or (mixed and not fitted.knows_mixture):
        return None
    return form_of(fitted, target)


def form_of(fitted: LawFit, target: Target) -> Form:
    """Return a fitted law as a form."""
    results = {axis: back_test(fitted, left_out=axis) for axis in AXES}  # type: ignore[arg-type]
    tests = {axis: test for axis, test in results.items() if test is not None}
    near = {axis: _nearest(test, target) for axis, test in tests.items()}
    errors = {axis: pd.Series(log_errors(rows), _keys(rows)) for axis, rows in near.items()}
    scatter, floors = float(np.sqrt(np.mean(fitted.residuals() ** 2))), floors_of(fitted)
    model_errors = tuple(
        own_error(test, near[axis], floors, scatter, float(fitted.rows[axis].max()))
        for axis, test in tests.items()
        if axis != "mixture"
    )
    return Form(fit=fitted, tests=tests, errors=errors, model_errors=model_errors)


def _keys(rows: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(rows[[name for name in _KEYS if name in rows]])


def floors_of(fitted: LawFit) -> dict[str, float]:
    """Return the known irreducible loss of each task, 0 where none is known."""
    known = {task: fitted.observations.irreducible_of(task) for task in fitted.tasks}
    return {task: floor if np.isfinite(floor) else 0.0 for task, floor in known.items()}


def _nearest(test: BackTest, target: Target) -> pd.DataFrame:
    """Return the rows of a back-test that are most like the target: of its length, of the larger sizes."""
    rows = test.rows
    if test.left_out != "tokens" and "tokens" in rows and target.tokens is not None:
        longest = min(target.tokens, float(rows["tokens"].max()))
        rows = rows[is_near(rows["tokens"].to_numpy(float), longest)]
    if test.left_out != "size" and rows["size"].notna().any():
        rows = rows[rows["size"] >= rows["size"].median()]
    return rows if len(rows) else test.rows


def shares_of(forms: Sequence[Form]) -> Array:
    """Return (forms,) the share of each form in the average, by its errors where something was left out.

    A form is as likely as the left-out values are under normal errors of its own size, σ^-n: n counts the
    independent errors of a back-test, two a task (a level and a slope over p) and four at most. A form that
    one back-test cannot judge has the worst error of the others there; where none can be judged all count
    alike.
    """
    score = np.zeros(len(forms))
    for axis in AXES if len(forms) else ():
        errors = left_out_errors(forms, axis)
        if np.isfinite(errors).any():
            errors = np.where(np.isfinite(errors), errors, np.nanmax(errors))
            evidence = min(2 * len(forms[0].fit.tasks), _MOST_EVIDENCE)
            score -= evidence * np.log(np.maximum(errors, 1e-6))
    if not len(forms):
        return score
    likely = np.exp(score - score.max())
    return np.asarray(likely / likely.sum())


def left_out_errors(forms: Sequence[Form], axis: str) -> Array:
    """Return (forms,) root mean square errors of log-losses on rows that all forms were tested on.

    NaN for a form without the back-test; each has its own rows where none are common.
    """
    tested = [form.errors[axis] for form in forms if axis in form.errors]
    if not tested:
        return np.full(len(forms), np.nan)
    common = set.intersection(*(set(errors.index) for errors in tested))
    return np.array([_rms(form.errors.get(axis), common) for form in forms])


def _rms(errors: pd.Series | None, common: set[Any]) -> float:
    if errors is None:
        return float("nan")
    rows = errors[errors.index.isin(common)] if common else errors
    return float(np.sqrt(np.mean(rows**2)))


def forms_table(forms: Sequence[Form]) -> pd.DataFrame:
    """Return `law`, `share` and the errors of what was left out, the greatest share first."""
    columns: dict[str, Any] = {"law": [form.name for form in forms], "share": shares_of(forms)}
    columns |= {column: left_out_errors(forms, axis) for axis, column in _COLUMNS.items()}
    return pd.DataFrame(columns).sort_values("share", ascending=False, kind="stable").reset_index(drop=True)

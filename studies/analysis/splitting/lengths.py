"""Laws that know the length of training: what f(p) is when training is no limit, and what they predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, fitted_fraction
from mnmt_laws.fitting.uncertainty import bounds_of
from mnmt_laws.laws import LawName
from studies.analysis.splitting.tables import fit_losses, fit_reducible, relative_errors, rms, saturated

LENGTH_LAWS: tuple[LawName, ...] = ("share-tied", "share-coupled", "length", "length-full")
USUAL: LawName = "share-tied"


def length_laws(
    rows: pd.DataFrame, *, laws: Sequence[LawName] = LENGTH_LAWS, refits: int
) -> Iterator[dict[str, object]]:
    """Yield each law's errors, f, α and L∞ on all rows and on the saturated, L∞ known and not."""
    some = saturated(rows)
    parts = {"saturated": some} if len(some) == len(rows) else {"all": rows, "saturated": some}
    for label, part in parts.items():
        for known in (True, False):
            for law in laws:
                yield {"rows": label, "L∞": "known" if known else "fitted", "law": law} | of_law(
                    part, law, known=known, refits=refits if law == USUAL else 0
                )


def of_law(rows: pd.DataFrame, law: LawName, *, known: bool, refits: int) -> dict[str, object]:
    """Return a law's error on the rows, on the longest training left out, and its parameters by task."""
    method = fit_reducible if known else fit_losses
    fitted = method(rows, law, refits=refits)
    is_last = rows["step"].eq(rows["step"].max())
    briefer = method(rows[~is_last], law) if rows["step"].nunique() > 2 else None
    return {
        "error": rms(errors_of(fitted, rows, known=known)),
        "longest left out": rms(errors_of(briefer, rows[is_last], known=known)) if briefer else None,
        "tasks": {task: parameters_of(fitted, rows, task) for task in fitted.tasks},
    }


def errors_of(fitted: LawFit, rows: pd.DataFrame, *, known: bool) -> np.ndarray:
    """Return a fit's errors as shares of the reducible loss."""
    some = rows.reset_index(drop=True)
    floor = some["irreducible"].to_numpy() if known else 0.0
    return relative_errors(fitted.predict(some) + floor, some)


def parameters_of(fitted: LawFit, rows: pd.DataFrame, task: str) -> dict[str, object]:
    """Return α, L∞ and f̂ at the fitted weights with their intervals; the true L∞ too."""
    of_task = rows[rows["task"] == task]
    weights = np.array(sorted(set(of_task["weight"]) - {1.0}))
    shares = fitted_fraction(fitted, task=task, weight=weights)
    low, high = bounds_of(fitted_fraction(fitted, task=task, weight=weights, draws=True))
    columns = zip(weights.tolist(), shares.tolist(), low.tolist(), high.tolist(), strict=True)
    return {
        "alpha": with_interval(fitted, "alpha", task), "l_inf": with_interval(fitted, "l_inf", task),
        "true l_inf": float(of_task["irreducible"].iloc[0]), "f": [list(column) for column in columns],
    }  # fmt: skip


def with_interval(fitted: LawFit, name: str, task: str) -> list[float]:
    """Return a parameter and the ends of its 95% interval."""
    ends = bounds_of(fitted.draws[name].sel(task=task).to_numpy())
    return [float(fitted.parameters[name].sel(task=task)), *map(float, ends)]

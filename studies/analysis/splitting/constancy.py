"""Which parameters of the law change with the weight: forms of it, tried on seeds and sizes left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, TableError, check_claims
from mnmt_laws.arrays import Array
from mnmt_laws.laws import LawName
from studies.analysis.splitting.tables import (
    RESIDUALS,
    SATURATED,
    fit_losses,
    fit_reducible,
    relative_errors,
    rms,
)

Fit = Callable[..., LawFit]
FORMS: Mapping[str, LawName] = {
    "β": "joint", "α": "exponent-varies", "L∞": "limit-varies", "α, β (and L∞)": "per-weighting",
}  # fmt: skip
"""What changes with the weight, and the law that says so."""

FRACTIONS: Mapping[str, LawName] = {
    "β, by eq. 12": "capacity", "β, by eq. 13": "linear-capacity", "β, f(p) = p": "power",
}  # fmt: skip
"""Forms of f̂; f(p) = p is a power law of p N."""

PICKS = 2000


def contest(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the errors of every form at each length, at all weights and the larger, L∞ known and not."""
    for step, some in rows.groupby("step"):
        for label, part in weight_groups(some).items():
            for known, method in (("known", fit_reducible), ("fitted", fit_losses)):
                key = {"step": step, "weights": label, "L∞": known}
                yield from (key | row for row in errors_of_forms(part, method))


def weight_groups(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return all rows, and those of larger weights where there are smaller ones."""
    larger = rows["weight"] >= SATURATED["weight"]
    return {"all": rows} if larger.all() else {"all": rows, "p ≥ .3": rows[larger]}


def errors_of_forms(rows: pd.DataFrame, method: Fit) -> Iterator[dict[str, object]]:
    """Yield for each form its errors on each seed and on the largest size, both left out.

    Errors are shares of the measured reducible loss; `…_ratio` is that to the error where β changes alone,
    with a 95% interval over cells of size, weight and task.
    """
    is_known = method is fit_reducible
    forms = {name: law for name, law in FORMS.items() if not (is_known and law == "limit-varies")}
    forms |= FRACTIONS if is_known else {}
    errors = {name: held_out_errors(rows, method, law) for name, law in forms.items()}
    for name, parts in errors.items():
        row: dict[str, object] = {"changes": name}
        for kind, part in parts.items():
            row[kind] = rms(part["error"].to_numpy())
            row[f"{kind}_ratio"] = ratio_of(part, errors["β"][kind])
        yield row


def held_out_errors(rows: pd.DataFrame, method: Fit, law: LawName) -> dict[str, pd.DataFrame]:
    """Return the errors of a law on rows that it was not fitted to, where it can be fitted without them."""
    seeds = [rows["seed"].eq(seed) for seed in sorted(rows["seed"].unique())]
    largest = rows["size"].eq(rows["size"].max())
    errors = {"seed": pd.concat([errors_on(rows, each, method, law) for each in seeds])}
    try:
        return errors | {"size": errors_on(rows, largest, method, law)}
    except TableError:  # two sizes are too few for a law of each weight
        return errors


def errors_on(rows: pd.DataFrame, left_out: pd.Series, method: Fit, law: LawName) -> pd.DataFrame:
    """Return the rows left out with the `error` of the law fitted to the others."""
    scaled = rows.assign(size=rows["size"] * rows["weight"]) if law == "power" else rows
    fitted, tests = method(scaled[~left_out], law), scaled[left_out].reset_index(drop=True)
    floor = tests["irreducible"].to_numpy() if method is fit_reducible else 0.0
    return tests.assign(error=relative_errors(fitted.predict(tests) + floor, tests))


def ratio_of(part: pd.DataFrame, base: pd.DataFrame | None) -> list[float] | None:
    """Return the ratio of two errors and its interval."""
    if base is None or part is base:
        return None
    squares = [cell_means(each) for each in (part, base)]
    rng = np.random.default_rng(0)
    picks = rng.integers(len(squares[0]), size=(PICKS, len(squares[0])))
    draws = np.sqrt(squares[0][picks].mean(axis=1) / squares[1][picks].mean(axis=1))
    estimate = np.sqrt(squares[0].mean() / squares[1].mean())
    return [float(estimate), *map(float, np.quantile(draws, [0.025, 0.975]))]


def cell_means(part: pd.DataFrame) -> Array:
    """Return the mean squared error of each cell."""
    squares = part.assign(square=part["error"] ** 2)
    return squares.groupby(["task", "mixture", "encoder_size"])["square"].mean().to_numpy()


def claims(rows: pd.DataFrame, *, refits: int) -> Iterator[dict[str, object]]:
    """Yield what `mnmt-laws report` says of α and L∞, at each length, L∞ known and not."""
    for step, some in rows.groupby("step"):
        for label, part in weight_groups(some).items():
            for known, method in (("known", fit_reducible), ("fitted", fit_losses)):
                fits = {
                    law: method(part, law, refits=refits, over=RESIDUALS)
                    for law in ("per-weighting", "joint")
                }
                checked = check_claims(per_weighting=fits["per-weighting"], joint=fits["joint"])
                for claim in checked:
                    if claim.about == "alpha" or (claim.about == "l_inf" and known == "fitted"):
                        yield {
                            "step": step, "weights": label, "L∞": known, "task": claim.task,
                            "about": claim.about, "holds": claim.holds, "finding": claim.finding,
                        }  # fmt: skip

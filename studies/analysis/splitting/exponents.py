"""What the exponent α of a curve over size follows: regressions of log reducible losses, L∞ known.

A *curve* holds the losses of one task at one weight p and one length T over size. Each has a factor β of its
own; its α is α of the task plus a line in the logarithms of some predictors. Intervals are Student's of 95%,
by errors common to the runs of one trunk (all that one model and seed branches to).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws.arrays import Array
from mnmt_laws.laws import LawName
from studies.analysis.intervals import half_interval, half_of_a_run
from studies.analysis.rates import CELL
from studies.analysis.splitting.tables import fit_reducible, rms

CURVE = ["task", "weight", "step"]
RIVALS: dict[str, tuple[str, ...]] = {
    "one α": (), "weight p": ("weight",), "length T": ("step",), "exposure p T": ("exposure",),
    "p and p T": ("weight", "exposure"), "mean loss of the curve": ("level",),
}  # fmt: skip
"""What α is a line in."""

EQUALS = {
    "step": ((500, 500), (2000, 2000), (8000, 8000)),
    "exposure": ((100, 250), (350, 500), (600, 1000), (1400, 2400)),
}
"""Lengths, and ranges of p T in steps, each with weights of two or more lengths."""

LENGTH_LAWS: tuple[LawName, ...] = ("share-tied", "exponent-exposure")
"""Laws of size, length and weight: one of one α and a term of training, one whose α follows exposure."""


def as_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with their `curve`, `group` (task), `exposure` in steps, mean loss `level` and trunk."""
    rows = rows.reset_index(drop=True)
    logs, keys = np.log(rows["reducible"]), [rows[name] for name in CURVE]
    return rows.assign(
        curve=rows[CURVE].astype(str).agg(" ".join, axis=1), group=rows["task"],
        exposure=rows["weight"] * rows["step"], level=np.exp(logs.groupby(keys).transform("mean")),
        trunk=rows[["size", "mixture", "seed"]].astype(str).agg(" ".join, axis=1),
    )  # fmt: skip


def curve_exponents(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield α of each curve, with Student's 95% interval from how seeds of its task and length scatter."""
    for (task, step), of_length in rows.groupby(["task", "step"]):
        half = half_of_a_run(of_length.groupby(CELL)["log"])
        for weight, curve in of_length.groupby("weight"):
            x = np.log(curve["size"]) - np.log(curve["size"]).mean()
            alpha, error = -float(x @ curve["log"] / (x @ x)), half / float(x @ x) ** 0.5
            yield {
                "task": task, "step": step, "weight": weight, "exposure": weight * step, "alpha": alpha,
                "lower": alpha - error, "upper": alpha + error,
            }  # fmt: skip


def regress(
    rows: pd.DataFrame, predictors: Sequence[str], *, bent: bool = False
) -> tuple[dict[str, list[float]], float]:
    """Fit α as a line in the logarithms of predictors to the rows of `as_curves`.

    Returns:
        The coefficient of each predictor with the ends of its interval, and the BIC.
    """
    x, y = _design(rows, predictors, bent=bent), np.log(rows["reducible"].to_numpy(float))
    inverse = np.linalg.pinv(x.T @ x)
    values = inverse @ x.T @ y
    errors = y - x @ values
    scores = pd.DataFrame(x * errors[:, None]).groupby(rows["trunk"].to_numpy()).sum().to_numpy()
    freedom = len(scores) - 1
    half = half_interval(np.diag(inverse @ scores.T @ scores @ inverse) * len(scores) / freedom, freedom)
    ends = np.transpose([values, values - half, values + half])[x.shape[1] - len(predictors) :]
    bic = len(y) * np.log(np.mean(errors**2)) + np.linalg.matrix_rank(x) * np.log(len(y))
    return dict(zip(predictors, ends.tolist(), strict=True)), float(bic)


def _design(rows: pd.DataFrame, predictors: Sequence[str], *, bent: bool) -> Array:
    """Return (n, K) columns: β of each curve, α of each group, curvature, and α's predictors."""
    size = -np.log(rows["size"].to_numpy(float))[:, None]
    size -= size.mean()
    curves, groups = (pd.get_dummies(rows[name]).to_numpy(float) for name in ("curve", "group"))
    logs, exposure = (np.log(rows[[*names]].to_numpy(float)) for names in (predictors, ["exposure"]))
    bend = [size**2, size**2 * exposure] if bent else []
    return np.hstack([curves, groups * size, *bend, logs * size])


def slopes_at_equal(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield the change of α per unit of log p among curves of equal length, or of like exposure."""
    curves = as_curves(rows)
    for column, ranges in EQUALS.items():
        parts = {}
        for low, high in ranges:
            part = curves[curves[column].between(low, high)]
            if part["curve"].nunique() > 1:
                parts[f"{low} to {high}"] = part.assign(group=part["task"] + str(low))
        for name, part in {**parts, "all of these": pd.concat(parts.values())}.items():
            slopes, _ = regress(part, ["weight"])
            yield {"equal": column, "of": name, "curves": part["curve"].nunique(), **slopes}


def rivals(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield for each rival its BIC above that of exposure, and its coefficients."""
    curves = as_curves(rows)
    regressions = {name: regress(curves, predictors) for name, predictors in RIVALS.items()}
    regressions["α of each curve"] = regress(curves.assign(group=curves["curve"]), ())
    _, base = regressions["exposure p T"]
    for name, (slopes, bic) in regressions.items():
        yield {"α is a line in": name, "BIC above exposure": bic - base, **slopes}


def checks(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield the coefficients of log p T and log p where another explanation is taken away.

    *Bent* gives curves a curvature in log N, a line in log exposure. *Of the law* replaces losses by those
    that a law fitted to them predicts, to see what its α would look like.
    """
    curves, both = as_curves(rows), ("exposure", "weight")
    sizes = sorted(rows["size"].unique())
    parts = {"all": rows, "small sizes": rows[rows["size"].isin(sizes[:3])],
             "large sizes": rows[rows["size"].isin(sizes[-3:])]}  # fmt: skip
    for name, part in parts.items():
        yield {"curves": name, **regress(as_curves(part), both)[0]}
    yield {"curves": "bent", **regress(curves, both, bent=True)[0]}
    for law in LENGTH_LAWS:
        expected = curves.assign(reducible=fit_reducible(curves, law).predict(curves))
        error = rms(np.log(expected["reducible"] / curves["reducible"]))
        yield {"curves": f"of the law {law}", **regress(as_curves(expected), both)[0], "error": error}


def saturation(rows: pd.DataFrame, *, ends: Sequence[float] = (0, 250, 1000, np.inf)) -> Iterator[Figures]:
    """Yield the change of α per unit of log exposure within ranges of exposure."""
    curves = as_curves(rows)
    for low, high in pairwise(ends):
        part = curves[curves["exposure"].between(low, high, inclusive="right")]
        yield {
            "exposure above": low, "up to": min(high, float(part["exposure"].max())),
            **regress(part, ["exposure"])[0],
        }  # fmt: skip

"""What the exponent α of a curve over size follows: regressions of log reducible losses, L∞ known.

A *curve* holds the losses of one task at one weight p and one length T over size. Each has a factor β of its
own; its α is α of the task plus a line in the logarithms of some predictors. Intervals are Student's of 95%,
by errors common to the runs of one trunk (all that one model and seed branches to).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
FREE = "free"
"""In place of predictors: an α of its own for each curve."""

RIVALS: dict[str, tuple[str, ...]] = {
    "one α": (), "weight p": ("weight",), "length T": ("step",), "exposure p T": ("exposure",),
    "p and p T": ("weight", "exposure"), "mean loss of the curve": ("level",), "α of each curve": (FREE,),
}  # fmt: skip
"""What α is a line in."""

EXPOSURES = (100, 250), (350, 500), (600, 1000), (1400, 2400)
"""Ranges of p T in steps, each with weights of two or more lengths."""

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
    rows = rows.assign(log=np.log(rows["reducible"]))
    for (task, step), of_length in rows.groupby(["task", "step"]):
        half = half_of_a_run(of_length.groupby(CELL)["log"])
        for weight, curve in of_length.groupby("weight"):
            x = np.log(curve["size"]) - np.log(curve["size"]).mean()
            alpha, error = -float(x @ curve["log"] / (x @ x)), half / float(x @ x) ** 0.5
            yield {
                "task": task, "step": step, "weight": weight, "exposure": weight * step, "alpha": alpha,
                "lower": alpha - error, "upper": alpha + error,
            }  # fmt: skip


@dataclass(frozen=True)
class Regression:
    """Log reducible losses on -log N times what α is a line in."""

    slopes: dict[str, list[float]]
    """Coefficient of each predictor with the ends of its interval."""
    bic: float
    error: float
    """Root mean square of the residuals."""


def regress(rows: pd.DataFrame, predictors: Sequence[str], *, bent: bool = False) -> Regression:
    """Fit α as a line in the logarithms of predictors to the rows of `as_curves`."""
    x, y = _design(rows, predictors, bent=bent), np.log(rows["reducible"].to_numpy(float))
    inverse = np.linalg.pinv(x.T @ x)
    values = inverse @ x.T @ y
    errors = y - x @ values
    scores = pd.DataFrame(x * errors[:, None]).groupby(rows["trunk"].to_numpy()).sum().to_numpy()
    freedom = len(scores) - 1
    half = half_interval(np.diag(inverse @ scores.T @ scores @ inverse) * len(scores) / freedom, freedom)
    names = [] if FREE in predictors else list(predictors)
    ends = zip(names, range(-len(names), 0), strict=True)
    slopes = {name: [float(values[n] + sign * half[n]) for sign in (0, -1, 1)] for name, n in ends}
    bic = len(y) * np.log(np.mean(errors**2)) + np.linalg.matrix_rank(x) * np.log(len(y))
    return Regression(slopes=slopes, bic=float(bic), error=rms(errors))


def _design(rows: pd.DataFrame, predictors: Sequence[str], *, bent: bool = False) -> Array:
    """Return (n, K) columns: β of each curve, α of each group or curve, curvature, and α's predictors."""
    size = -np.log(rows["size"].to_numpy(float))[:, None]
    size -= size.mean()
    curves = pd.get_dummies(rows["curve"]).to_numpy(float)
    alphas = curves if FREE in predictors else pd.get_dummies(rows["group"]).to_numpy(float)
    logs = np.log(rows[[name for name in predictors if name != FREE]].to_numpy(float))
    exposure = np.log(rows[["exposure"]].to_numpy(float))
    bend = [size**2, size**2 * exposure] if bent else []
    return np.hstack([curves, alphas * size, *bend, logs * size])


def one_or_free(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield for curves of equal length or exposure what an α of each weight is worth over one α of the task.

    `BIC gain` is how far one α's BIC lies above that of α free: below 0 β alone varies. `weight` is the
    change of α per unit of log p.
    """
    curves = as_curves(rows)
    lengths = {f"T = {step:,}": curves["step"].eq(step) for step in sorted(curves["step"].unique())}
    exposures = {f"p T = {low} to {high}": curves["exposure"].between(low, high) for low, high in EXPOSURES}
    for kind, groups in {"length": lengths, "exposure": exposures}.items():
        parts = {name: curves[mask].assign(group=curves["task"] + name) for name, mask in groups.items()}
        parts = {name: part for name, part in parts.items() if part["curve"].nunique() > 1}
        for name, part in {**parts, "all of these": pd.concat(parts.values())}.items():
            yield {
                "equal": kind, "curves of": name, "curves": part["curve"].nunique(), "losses": len(part),
                "BIC gain": regress(part, ()).bic - regress(part, (FREE,)).bic,
                "weight": regress(part, ("weight",)).slopes["weight"],
            }  # fmt: skip


def rivals(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield for each rival its BIC above that of exposure, error and coefficients."""
    curves = as_curves(rows)
    base = regress(curves, RIVALS["exposure p T"]).bic
    for name, predictors in RIVALS.items():
        regression = regress(curves, predictors)
        yield {
            "α is a line in": name, "BIC above exposure": regression.bic - base, "error": regression.error,
            **regression.slopes,
        }  # fmt: skip


def checks(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield the coefficients of log p T and log p where another explanation is taken away.

    *Bent* gives curves a curvature in log N, a line in log exposure. *Of the law* replaces losses by those
    that a law fitted to them predicts, to see what its α would look like.
    """
    curves, both, sizes = as_curves(rows), ("exposure", "weight"), sorted(rows["size"].unique())
    parts = {
        "all": curves, "bent": curves,
        "small sizes": curves[curves["size"].isin(sizes[:3])],
        "large sizes": curves[curves["size"].isin(sizes[-3:])],
    }  # fmt: skip
    for name, part in parts.items():
        slopes = regress(part, both, bent=name == "bent").slopes
        yield {"curves": name, "number": part["curve"].nunique(), **slopes}
    for law in LENGTH_LAWS:
        fitted = fit_reducible(curves, law)
        expected = curves.assign(reducible=fitted.predict(curves))
        slopes = regress(as_curves(expected), both).slopes
        error = rms(np.log(expected["reducible"] / curves["reducible"]))
        yield {"curves": f"of the law {law}", "number": curves["curve"].nunique(), **slopes, "error": error}


def saturation(rows: pd.DataFrame, *, ends: Sequence[float] = (0, 250, 1000, np.inf)) -> Iterator[Figures]:
    """Yield the change of α per unit of log exposure within ranges of exposure."""
    curves = as_curves(rows)
    for low, high in pairwise(ends):
        part = curves[curves["exposure"].between(low, high, inclusive="right")]
        yield {
            "exposure above": low, "up to": min(high, float(part["exposure"].max())),
            "curves": part["curve"].nunique(), **regress(part, ["exposure"]).slopes,
        }  # fmt: skip

"""The law of Zhang et al. 2022, eq. 7, of all models together: its parameters and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from scipy.stats import f as fisher

from benchmarks.measurement import Figures
from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.arrays import Array
from mnmt_laws.laws.power import PowerLaw
from studies.analysis.architectures.models import MODELS

ONE_LIMIT = PowerLaw(
    name="one-limit",
    equation="Zhang et al. 2022, eq. 7, with one L∞",
    formula="L_m(N) = β_m N^(-p_m) + L∞",
    varying=frozenset({"alpha", "beta"}),
)
"""The entropy of a test set is the same for all models; `per-weighting` gives each an L∞ of its own."""

WEIGHTS = {name: number / len(MODELS) for number, name in enumerate(MODELS.values(), 1)}
"""Parameters vary with a weight: here each model is one."""


def fit_models(losses: pd.DataFrame, *, refits: int, law: PowerLaw | str = ONE_LIMIT) -> LawFit:
    """Fit a law to all models of a table of losses together."""
    rows = losses[["model", "task", "size", "value"]]
    rows = rows.assign(metric="loss", weight=losses["model"].map(WEIGHTS))
    return fit(rows, law=law, prior="none", uncertainty=ResidualBootstrap(refits=refits))


def exponents(fits: Mapping[str, LawFit]) -> pd.DataFrame:
    """Return a row for each setting and model: p, and p over the encoder-decoder's, with 95% intervals."""
    parts = []
    for setting, fitted in fits.items():
        table = pd.DataFrame({"setting": setting, "model": names_of(fitted)})
        best, draws = (
            some["alpha"].squeeze("task").transpose(..., "weight").to_numpy()
            for some in (fitted.parameters, fitted.draws)
        )
        ratios = best / best[0], draws / draws[:, :1]  # the encoder-decoder is the first
        for name, (value, copies) in {"exponent": (best, draws), "relative": ratios}.items():
            low, high = np.quantile(copies, [0.025, 0.975], axis=0)
            table = table.assign(**{name: value, f"{name}_lower": low, f"{name}_upper": high})
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def names_of(fitted: LawFit) -> list[str]:
    """Return the models of a fit, the encoder-decoder first."""
    fitted_weights = set(fitted.observations.frame["weight"])
    return [name for name, weight in WEIGHTS.items() if weight in fitted_weights]


def limits(settings: Mapping[str, pd.DataFrame], fits: Mapping[str, LawFit]) -> Iterator[Figures]:
    """Yield the common L∞ of each setting, and what goes for it: the F test against an L∞ for each model."""
    for setting, fitted in fits.items():
        apart = fit_models(settings[setting], refits=0, law="per-weighting")
        low, high = fitted.interval()["l_inf"].to_numpy().reshape(-1)
        errors = [float(np.sum(_residuals(each) ** 2)) for each in (fitted, apart)]
        count, rows = len(names_of(fitted)), len(settings[setting])
        ratio = (errors[0] - errors[1]) / (count - 1) / (errors[1] / (rows - 3 * count))
        yield {
            "setting": setting,
            "l_inf": float(fitted.parameters["l_inf"].squeeze()), "lower": float(low), "upper": float(high),
            "scatter, one": (errors[0] / (rows - 2 * count - 1)) ** 0.5,
            "scatter, each": (errors[1] / (rows - 3 * count)) ** 0.5,
            "p of one": float(fisher.sf(ratio, count - 1, rows - 3 * count)),
            "at bound, each": int((apart.parameters["l_inf"] < 1e-6).sum()),
        }  # fmt: skip


def _residuals(fitted: LawFit) -> Array:
    rows = fitted.observations.frame
    return np.asarray(np.log(rows["value"].to_numpy()) - np.log(fitted.predict(rows)))


def predictions(losses: pd.DataFrame) -> Figures:
    """Return the median and the largest relative error over the largest models, predicted by the others.

    A line is fitted to the logarithms of size and loss; interpolation is along the line through the last two.
    """
    largest = losses["width"].eq(losses["width"].max())
    rest, tried = losses[~largest].sort_values("size"), losses[largest]
    laws = {"law, one L∞": ONE_LIMIT, "law, each L∞": "per-weighting"}
    fits = {name: fit_models(rest, refits=0, law=law) for name, law in laws.items()}
    points = {model: some[["size", "value"]].to_numpy(float) for model, some in rest.groupby("model")}
    errors = pd.DataFrame([
        {name: predict(fitted, row.model, row.size) for name, fitted in fits.items()}
        | {"line": power(points[row.model], row.size)}
        | {"interpolation": power(points[row.model][-2:], row.size)}
        for row in tried.itertuples()
    ]).div(tried["value"].to_numpy(), axis=0).sub(1).abs()  # fmt: skip
    median, most = errors.median().add_prefix("median, "), errors.max().add_prefix("largest, ")
    return {"width left out": int(tried["width"].max()), "models": len(tried), **median, **most}


def power(points: Array, size: float) -> float:
    """Return a straight line in logarithms through points (n, 2) at a size."""
    x, y = np.log(points).T
    return float(np.exp(np.polyval(np.polyfit(x, y, 1), np.log(size))))


def predict(fitted: LawFit, model: str, size: float | Array) -> Array:
    """Return a model's loss at some sizes."""
    return fitted.predict(task=fitted.tasks[0], weight=WEIGHTS[model], size=size)

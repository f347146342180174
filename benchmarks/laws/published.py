"""Refits of published laws of size and data.

They are Chinchilla's law, as refitted by Besiroglu et al. 2024, and the law of Gordon et al. 2021.

Claim: our fits reach the published optima and parameters. Peer: the published parameters. Cited in
docs/laws/tutorial.md.

The tables are not ours to distribute; give their paths. Chinchilla's needs the columns `Model Size`,
`Training FLOP` and `loss` (the points that Besiroglu et al. read off the figure; like them, we leave out the
five of highest loss), Gordon's `Lang`, `params`, `data_bytes` and `ent_dev`. Without paths, tables are
simulated from the published laws.

    python -m benchmarks.laws.published --chinchilla chinchilla.csv --gordon gordon.csv
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_laws import LawFit, Perturbation, fit, observe

PUBLISHED = {
    "lad": {"a": 482.01, "b": 2085.43, "e": 1.81686, "alpha": 0.34781, "beta": 0.36585},
    "huber": {"a": 477.84, "b": 2143.9, "e": 1.81722, "alpha": 0.34731, "beta": 0.36717},
}
OUTLIERS = 5
NO_REFITS = Perturbation(refits=0)


def main(
    *,
    chinchilla: Path | None = None,
    gordon: Path | None = None,
    points: int = 240,
    objectives: Names = ("lad", "huber", "log-ols"),
    out: Out = None,
) -> None:
    """Fit both tables; print our parameters beside the published ones.

    Args:
        chinchilla: CSV file of Chinchilla's models; simulated by default.
        gordon: CSV file of Gordon et al.'s models; simulated by default.
        points: Rows of simulated tables.
        objectives: Objectives of the fits to Chinchilla's models.
        out: JSON file for the figures.
    """
    models = pd.read_csv(chinchilla) if chinchilla else simulated_chinchilla(points)
    figures: Figures = {"simulated": chinchilla is None and gordon is None}
    figures["chinchilla"] = list(chinchilla_rows(models, objectives))
    print_table(figures["chinchilla"])
    figures["gordon"] = list(gordon_rows(pd.read_csv(gordon) if gordon else simulated_gordon(points)))
    print_table(figures["gordon"])
    write_report(out, "refits of published laws", figures, provenance("mnmt-laws", "numpy", "scipy"))


def simulated_chinchilla(points: int) -> pd.DataFrame:
    """Return models that obey the published law with 0.5% noise."""
    rng = np.random.default_rng(0)
    law = PUBLISHED["huber"]
    size, tokens = 10 ** rng.uniform(7.7, 10.2, points), 10 ** rng.uniform(9, 11.5, points)
    loss = law["e"] + law["a"] * size ** -law["alpha"] + law["b"] * tokens ** -law["beta"]
    loss *= np.exp(0.005 * rng.standard_normal(points))
    return pd.DataFrame({"Model Size": size, "Training FLOP": 6 * size * tokens, "loss": loss})


def simulated_gordon(points: int) -> pd.DataFrame:
    """Return models of one language pair that obey a law of Gordon et al.'s form with 1% noise."""
    rng = np.random.default_rng(1)
    size, data = 10 ** rng.uniform(5, 8, points), 10 ** rng.uniform(7, 9.5, points)
    loss = ((1e6 / size) ** 0.8 + 1e9 / data) ** 0.25 * np.exp(0.01 * rng.standard_normal(points))
    return pd.DataFrame({"Lang": "de-en", "params": size, "data_bytes": data, "ent_dev": loss})


def run_table(size: pd.Series, tokens: pd.Series, values: pd.Series, task: str) -> pd.DataFrame:
    """Return a run table with one row a model."""
    return pd.DataFrame(
        {
            "size": size,
            "tokens": tokens,
            "task": task,
            "weight": 1.0,
            "metric": "loss",
            "value": values,
            "seed": np.arange(len(values)),
        }
    )


def chinchilla_rows(models: pd.DataFrame, objectives: tuple[str, ...]) -> Iterator[Figures]:
    """Fit L = E + A/N^α + B/D^β with D = C / 6N; yield the published and our parameters."""
    points = models.sort_values("loss").iloc[:-OUTLIERS]
    tokens = points["Training FLOP"] / 6 / points["Model Size"]
    table = run_table(points["Model Size"], tokens, points["loss"], "text")
    for objective in objectives:
        fitted = fit(observe(table), law="chinchilla", objective=objective, uncertainty=NO_REFITS)
        ours = {name: float(fitted.parameters[name][0]) for name in ("a", "b", "e", "alpha", "beta")}
        whose = {"published": PUBLISHED[objective]} if objective in PUBLISHED else {}
        for name, parameters in {**whose, "ours": ours}.items():
            total = value(fitted, table, parameters)
            yield {"objective": objective, "whose": name, **rounded(parameters, 6), "Σ ρ": f"{total:.10g}"}


def value(fitted: LawFit, table: pd.DataFrame, parameters: Mapping[str, float]) -> float:
    """Return the objective at some parameters, computed here rather than by the solver."""
    by_size = table["size"] ** -parameters["alpha"]
    by_data = table["tokens"] ** -parameters["beta"]
    predicted = parameters["e"] + parameters["a"] * by_size + parameters["b"] * by_data
    residual = np.abs(np.log(predicted) - np.log(table["value"])).to_numpy()
    if fitted.objective == "lad":
        return float(residual.sum())
    delta = 1e-3 if fitted.objective == "huber" else np.inf
    is_inside = residual <= delta
    linear = delta * (residual - delta / 2) if np.isfinite(delta) else 0
    return float(np.where(is_inside, residual**2 / 2, linear).sum())


def gordon_rows(models: pd.DataFrame) -> Iterator[Figures]:
    """Fit L = [(N_C/N)^(α_N/α_D) + D_C/D]^α_D, D in bytes; yield our parameters."""
    for pair, points in models.groupby("Lang"):
        table = run_table(points["params"], points["data_bytes"], points["ent_dev"], str(pair))
        observations = observe(table)
        for objective in ("log-ols", "ols"):
            fitted = fit(observations, law="gordon", objective=objective, uncertainty=NO_REFITS)
            observed, predicted = fitted.fitted_values
            r2 = 1 - np.sum((observed - predicted) ** 2) / np.sum((observed - observed.mean()) ** 2)
            parameters = {
                name: float(fitted.parameters[name][0]) for name in ("alpha_n", "alpha_d", "n_c", "d_c")
            }
            row = {"pair": pair, "objective": objective, "models": len(points)}
            yield {**row, **rounded(parameters, 4), "R²": f"{r2:.4f}"}


def rounded(parameters: Mapping[str, float], digits: int) -> dict[str, str]:
    """Return the parameters with so many significant digits."""
    return {name: f"{number:.{digits}g}" for name, number in parameters.items()}


if __name__ == "__main__":
    run(main, smoke={"points": 40, "objectives": ("huber",)})

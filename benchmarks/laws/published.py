"""Published fits of laws of size and data, done again.

They are the refits of Chinchilla's law by Besiroglu et al. 2024, and the law of Gordon et al. 2021.

The tables are not ours to ship; give their paths. Chinchilla's needs the columns `Model Size`, `Training
FLOP` and `loss` (the points Besiroglu et al. read off the figure; the five of highest loss are left out, as
they do), Gordon's `Lang`, `params`, `data_bytes` and `ent_dev`.

    python -m benchmarks.laws.published --chinchilla chinchilla.csv --gordon gordon.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from mnmt_laws import LawFit, Perturbation, fit, observe

PUBLISHED = {
    "lad": {"a": 482.01, "b": 2085.43, "e": 1.81686, "alpha": 0.34781, "beta": 0.36585},
    "huber": {"a": 477.84, "b": 2143.9, "e": 1.81722, "alpha": 0.34731, "beta": 0.36717},
}
OUTLIERS = 5
NONE = Perturbation(refits=0)


def main() -> None:
    """Fit what was given, print ours beside the published."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chinchilla", type=Path)
    parser.add_argument("--gordon", type=Path)
    arguments = parser.parse_args()
    if arguments.chinchilla:
        chinchilla(pd.read_csv(arguments.chinchilla))
    if arguments.gordon:
        gordon(pd.read_csv(arguments.gordon))


def chinchilla(points: pd.DataFrame) -> None:
    """L = E + A/N^α + B/D^β with D = C / 6N."""
    kept = points.sort_values("loss").iloc[:-OUTLIERS]
    table = pd.DataFrame(
        {
            "size": kept["Model Size"],
            "tokens": kept["Training FLOP"] / 6 / kept["Model Size"],
            "task": "text",
            "weight": 1.0,
            "metric": "loss",
            "value": kept["loss"],
            "seed": np.arange(len(kept)),
        }
    )
    print(f"Chinchilla, {len(kept)} points\n")
    print("| objective | whose | A | B | E | α | β | Σ ρ |")
    print("|--|--|--|--|--|--|--|--|")
    for objective in ("lad", "huber", "log-ols"):
        fitted = fit(observe(table), law="chinchilla", objective=objective, uncertainty=NONE)
        ours = {name: float(fitted.parameters[name][0]) for name in ("a", "b", "e", "alpha", "beta")}
        if objective in PUBLISHED:
            _row(objective, "published", PUBLISHED[objective], value(fitted, table, PUBLISHED[objective]))
        _row(objective, "ours", ours, value(fitted, table, ours))


def value(fitted: LawFit, table: pd.DataFrame, found: dict[str, float]) -> float:
    """The objective at some parameters, computed here rather than by the solver."""
    by_size, by_data = table["size"] ** -found["alpha"], table["tokens"] ** -found["beta"]
    predicted = found["e"] + found["a"] * by_size + found["b"] * by_data
    residual = np.abs(np.log(predicted) - np.log(table["value"])).to_numpy()
    if fitted.objective == "lad":
        return float(residual.sum())
    delta = 1e-3 if fitted.objective == "huber" else np.inf
    inside = residual <= delta
    return float(
        np.where(inside, residual**2 / 2, delta * (residual - delta / 2) if np.isfinite(delta) else 0).sum()
    )


def _row(objective: str, whose: str, found: dict[str, float], total: float) -> None:
    shown = " | ".join(f"{found[name]:.6g}" for name in ("a", "b", "e", "alpha", "beta"))
    print(f"| {objective} | {whose} | {shown} | {total:.10g} |")


def gordon(points: pd.DataFrame) -> None:
    """L = [(N_C/N)^(α_N/α_D) + D_C/D]^α_D, D in bytes, a row a language pair and objective."""
    print(
        "\nGordon et al. 2021\n\n| pair | objective | models | α_N | α_D | N_C | D_C | R² |\n"
        "|--|--|--|--|--|--|--|--|"
    )
    for pair, own in points.groupby("Lang"):
        table = pd.DataFrame(
            {
                "size": own["params"],
                "tokens": own["data_bytes"],
                "task": pair,
                "weight": 1.0,
                "metric": "loss",
                "value": own["ent_dev"],
                "seed": np.arange(len(own)),
            }
        )
        observations = observe(table)
        for objective in ("log-ols", "ols"):
            fitted = fit(observations, law="gordon", objective=objective, uncertainty=NONE)
            observed, predicted = fitted.fitted_values
            explained = 1 - np.sum((observed - predicted) ** 2) / np.sum((observed - observed.mean()) ** 2)
            values = [float(fitted.parameters[name][0]) for name in ("alpha_n", "alpha_d", "n_c", "d_c")]
            shown = " | ".join(f"{number:.4g}" for number in values)
            print(f"| {pair} | {objective} | {len(own)} | {shown} | {explained:.4f} |")


if __name__ == "__main__":
    main()

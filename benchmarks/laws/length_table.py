"""Laws of size, training length and mixture on a table in which all three vary.

Claim: a law in which a task learns as it would alone from its share f̂ of the parameters and of the training
predicts longer training better than laws of own tokens, of the whole mixture's tokens, or without length.
Peers: the laws of Hoffmann et al. 2022 on own tokens, He et al. 2024, Shukor et al. 2025, Longpre et al. 2025
(ATLAS), and the capacity law of Fernandes et al. 2023.

The table is `teacher_n_t_p.csv` in the folder that `--tables` or the environment variable MNMT_TABLES names:
tiny models of two languages alike, whose entropies are known exactly. Without it nothing is measured.

Twice: with the irreducible loss known, both languages as one and errors those of the logarithm of the
reducible loss; and one language by itself, with L∞ from the data alone.

    python -m benchmarks.laws.length_table --tables tables --out benchmarks/results/laws/length_table.json
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from mnmt_laws import LawFit, ResidualBootstrap, fit
from mnmt_laws.laws import LAWS

FAMILY = (
    "share-tied", "share-coupled", "share", "transfer-share", "length-full", "length-coupled",
    "length-shared", "length", "atlas", "he", "shukor", "chinchilla-own", "chinchilla", "capacity",
)  # fmt: skip
WEIGHTS = np.array([0.25, 0.5, 0.75])
RICHEST = "length-full"
SHORT, SMALL, LATE = 2_000, 21_000, 8_000
LENGTHS = (500, 2_000, 8_000)
KNOWN = 1e-9  # the irreducible part of a reducible loss, as a table must have it


def main(*, tables: Path | None = None, laws: Names = FAMILY, refits: int = 200, out: Out = None) -> None:
    """Fit every law to both views of the table; print a row for each.

    Args:
        tables: Folder of the table; by default that of MNMT_TABLES.
        laws: Names of the laws.
        refits: Refits behind each interval.
        out: JSON file for the figures.
    """
    folder = tables or (Path(os.environ["MNMT_TABLES"]) if "MNMT_TABLES" in os.environ else None)
    path = folder / "teacher_n_t_p.csv" if folder else None
    if path is None or not path.exists():
        print("Skipped: `teacher_n_t_p.csv` is not there; name its folder by --tables or MNMT_TABLES.")
        return
    table = read(path)
    figures: Figures = {}
    for name, view, irreducible in views(table):
        print(f"\n### {name}\n")
        figures[name] = [study(law, view, irreducible, refits) for law in laws]
        add_evidence(figures[name])
        print_table([as_text(row) for row in figures[name]])
        if irreducible == "known":
            figures["capacity law, one length at a time"] = one_at_a_time(view, refits)
    write_report(out, "laws of size, length and mixture", figures, provenance("mnmt-laws", "numpy", "scipy"))


def read(path: Path) -> pd.DataFrame:
    """Return the table with its mixtures; the second language is a second seed."""
    table = pd.read_csv(path)
    other = {"a": "b", "b": "a"}
    table["mixture"] = [
        f"{task}:{weight}" + (f",{other[task]}:{1 - weight}" if weight < 1 else "")
        for task, weight in zip(table["task"], table["weight"], strict=True)
    ]
    return table


def views(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, str]]:
    """Yield both views of the table, and what its column `irreducible` is used for."""
    names = {"a": "a", "b": "b"} | {f"{task}:": task for task in ("a", "b")}
    swapped = table["mixture"].str.translate(str.maketrans("ab", "ba"))
    pooled = table.assign(
        value=table["value"] - table["irreducible"], irreducible=KNOWN,
        seed=(table["task"] == "b").astype(int), task="a",
        mixture=table["mixture"].where(table["task"].map(names) == "a", swapped),
    )  # fmt: skip
    yield "both languages, L∞ known", pooled, "known"
    yield "language a, L∞ from the data", table[table["task"] == "a"].reset_index(drop=True), "ignore"


def study(name: str, table: pd.DataFrame, irreducible: str, refits: int) -> Figures:
    """Return a law's error on the table, its BIC and coefficients, and its errors on what was left out."""
    floor = 0.0 if irreducible == "known" else table["irreducible"].to_numpy()
    fitted = fit_to(name, table, irreducible, refits)
    everything = log_errors(fitted, table, floor)
    count = sum(block_width(fitted, p.name) for p in fitted.law.parameters) - (irreducible == "known")
    short, small = table["step"] <= SHORT, table["size"] <= SMALL
    later = fit_to(name, table[short], irreducible)
    at_late = table[table["step"] == LATE]
    return {
        "law": name,
        "parameters": count,
        "error": rms(everything),
        "bic": float(len(table) * np.log(np.mean(everything**2)) + count * np.log(len(table))),
        "later": rms(log_errors(later, table[~short], floor_of(floor, ~short))),
        "later errors": log_errors(later, table[~short], floor_of(floor, ~short)),
        "at 8,000 steps": rms(log_errors(later, at_late, floor_of(floor, table["step"] == LATE))),
        "of the loss at 8,000 steps": rms(log_errors(later, at_late, 0.0)),
        "mean at 8,000 steps": float(
            log_errors(later, at_late, floor_of(floor, table["step"] == LATE)).mean()
        ),
        "larger": rms(
            log_errors(fit_to(name, table[small], irreducible), table[~small], floor_of(floor, ~small))
        ),
        "f": fractions(fitted),
        "alpha": interval(fitted, "alpha"),
        "l_inf": interval(fitted, next(p.name for p in fitted.law.parameters if p.kind == "limit")),
        "warnings": list(fitted.warnings),
    }


def one_at_a_time(table: pd.DataFrame, refits: int) -> list[Figures]:
    """Return what the capacity law makes of the runs of each length alone: f̂ and α come out too small."""
    rows: list[Figures] = []
    for step in LENGTHS:
        fitted = fit_to("capacity", table[table["step"] == step], "known", refits)
        rows.append({"steps": step, "f": fractions(fitted), "alpha": interval(fitted, "alpha")})
    return rows


def add_evidence(rows: list[Figures]) -> None:
    """Add to each row in how many resamples of the later losses it beats the richest law in squared error."""
    squares = {row["law"]: np.square(row.pop("later errors")) for row in rows}
    rng = np.random.default_rng(0)
    for row in rows:
        rival = squares.get(RICHEST, squares[row["law"]])
        differences = squares[row["law"]] - rival
        picks = rng.integers(len(differences), size=(4000, len(differences)))
        row[f"beats {RICHEST}"] = float((differences[picks].mean(axis=1) < 0).mean())


def fit_to(name: str, table: pd.DataFrame, irreducible: str, refits: int = 0) -> LawFit:
    """Fit a law to rows of a view."""
    rows = table.reset_index(drop=True)
    if not LAWS[name].knows_length:  # such laws refuse runs of unequal length, unless it is not told
        rows = rows.drop(columns=["tokens", "step"]).assign(seed=np.arange(len(rows)))
    method = ResidualBootstrap(refits=refits)
    return fit(rows, law=LAWS[name], irreducible=irreducible, uncertainty=method)  # type: ignore[arg-type]


def log_errors(fitted: LawFit, table: pd.DataFrame, floor: float | np.ndarray) -> np.ndarray:
    """Return log of predicted over observed reducible loss."""
    rows = table.reset_index(drop=True)
    predicted = np.maximum(fitted.predict(rows) - floor, 1e-6)
    return np.asarray(np.log(predicted / (rows["value"].to_numpy() - floor)))


def floor_of(floor: float | np.ndarray, rows: pd.Series) -> float | np.ndarray:
    """Return the irreducible losses of some rows."""
    return floor if isinstance(floor, float) else floor[rows.to_numpy()]


def rms(errors: np.ndarray) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def block_width(fitted: LawFit, name: str) -> int:
    """Return how many values a parameter has."""
    return int(np.isfinite(fitted.parameters[name].sel(task="a").to_numpy()).sum())


def interval(fitted: LawFit, name: str) -> list[float]:
    """Return a parameter and the ends of its interval."""
    draws = fitted.draws[name].sel(task="a").to_numpy() if fitted.draws.sizes["draw"] else np.array([np.nan])
    return [float(fitted.parameters[name].sel(task="a")), *map(float, np.nanquantile(draws, [0.025, 0.975]))]


def fractions(fitted: LawFit) -> list[list[float]]:
    """Return f̂ at the weights with the ends of its interval; nothing for laws without one."""
    fraction = fitted.law.fraction
    if fraction is None:
        return []
    x = {"weight": WEIGHTS, "partners": (1 - WEIGHTS)[:, None]}
    names = [parameter.name for parameter in fraction.parameters]

    def share(parameters: xr.Dataset) -> np.ndarray:
        theta = {name: parameters[name].sel(task="a").to_numpy() for name in names}
        if "partner" in parameters.dims:
            keep = np.isfinite(theta["tau"]).reshape(-1, theta["tau"].shape[-1]).all(axis=0)
            theta["tau"] = theta["tau"][..., keep]
        return fraction.share(x, {k: v[..., None] if k != "tau" else v for k, v in theta.items()})

    estimate = share(fitted.parameters)
    if not fitted.draws.sizes["draw"]:
        return [[float(value)] for value in estimate]
    low, high = np.quantile(share(fitted.draws), [0.025, 0.975], axis=0)
    return [[float(value) for value in row] for row in np.column_stack([estimate, low, high])]


def as_text(row: Figures) -> dict[str, str]:
    """Return a row of figures as text."""
    f = [f"{one[0]:.2f}" + (f" ({one[1]:.2f}–{one[2]:.2f})" if len(one) > 1 else "") for one in row["f"]]
    l_inf = row["l_inf"]
    return {
        "law": f"`{row['law']}`",
        "k": str(row["parameters"]),
        "error": f"{row['error']:.1%}",
        "BIC": f"{row['bic']:.0f}",
        "later": f"{row['later']:.1%}",
        "beats": f"{row[f'beats {RICHEST}']:.0%}",
        "8,000 steps": f"{row['at 8,000 steps']:.1%} ({row['mean at 8,000 steps']:+.1%})",
        "of the loss": f"{row['of the loss at 8,000 steps']:.2%}",
        "larger": f"{row['larger']:.1%}",
        **dict(zip(("f(.25)", "f(.5)", "f(.75)"), f or ["–"] * 3, strict=True)),
        "α": f"{row['alpha'][0]:.2f} ({row['alpha'][1]:.2f}–{row['alpha'][2]:.2f})".replace(
            "nan–nan", "unknown"
        ),
        "L∞": "known" if l_inf[0] <= KNOWN else f"{l_inf[0]:.3f} ({l_inf[1]:.3f}–{l_inf[2]:.3f})",
    }


if __name__ == "__main__":
    run(main, smoke={"laws": ("share-tied", "he"), "refits": 3})

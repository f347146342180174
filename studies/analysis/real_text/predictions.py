"""Errors of predictions, and losses that advice reaches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator

from benchmarks.measurement import Figures
from mnmt_laws import HeldOut, LawFit, Observations, ResidualBootstrap, fit, predict_held_out, recommend
from mnmt_laws.laws import LawName
from studies.analysis.real_text.laws import WITH_LENGTH
from studies.analysis.real_text.pairs import GRID, TESTSETS, UNSEEN, Pair


def held_out_at_length(pair: Pair, *, testset: str, refits: int) -> HeldOut:
    """Return predictions of the held-out runs of the longest training, by the law without length."""
    return _predict(pair.observations(testset=testset, step=pair.steps[-1]), "capacity", refits)


def held_out_length(pair: Pair, *, testset: str, refits: int) -> HeldOut:
    """Return predictions of the longest training, fitted to the shorter ones."""
    return _predict(pair.all_but(pair.steps[-1], testset=testset), WITH_LENGTH, refits)


def _predict(rows: Observations, law: LawName, refits: int) -> HeldOut:
    fitted: LawFit = fit(rows, law=law, uncertainty=ResidualBootstrap(refits=refits))
    return predict_held_out(fitted)


def prediction_errors(pair: Pair, *, refits: int) -> Iterator[Figures]:
    """Yield the errors of every kind of held-out run, on both test sets."""
    for testset in TESTSETS:
        name = {"pair": pair.name, "testset": testset}
        rows = held_out_at_length(pair, testset=testset, refits=refits).rows
        first = pair.first_weights(rows)
        unseen, larger = first.eq(UNSEEN), rows["size"].eq(pair.largest)
        yield {**name, "new": "size", **_errors(rows[larger & first.isin(GRID)])}
        yield {**name, "new": "weight", **_errors(rows[unseen & ~larger])}
        yield {**name, "new": "size and weight", **_errors(rows[unseen & larger])}
        rows = held_out_length(pair, testset=testset, refits=refits).rows
        rows = rows[rows["new_length"]]
        larger = rows["size"].eq(pair.largest)
        yield {**name, "new": "length", **_errors(rows[~larger])}
        yield {**name, "new": "length and size", **_errors(rows[larger])}
        yield {**name, "new": "length", **_errors(_as_at_the_length_before(pair, rows, testset)),
               "law": "no change"}  # fmt: skip


def _errors(rows: pd.DataFrame) -> Figures:
    """Return the median and the largest relative error, how many lie above, and how many in the interval."""
    errors = rows["error"].dropna()
    known = "predicted_lower" in rows
    inside = rows["observed"].between(rows["predicted_lower"], rows["predicted_upper"]) if known else None
    return {
        "count": len(errors), "median": float(errors.abs().median()), "largest": float(errors.abs().max()),
        "above": int((errors > 0).sum()), "inside": None if inside is None else int(inside.sum()),
    }  # fmt: skip


def _as_at_the_length_before(pair: Pair, rows: pd.DataFrame, testset: str) -> pd.DataFrame:
    """Return the same rows, predicted to be as good as after the length before."""
    rows = rows.assign(seed=rows["run"].map(pair.rows.drop_duplicates("run").set_index("run")["seed"]))
    keys = ["task", "size", "mixture", "seed"]
    before = pair.observations(testset=testset, step=pair.steps[-2]).frame.set_index(keys)["value"]
    predicted = before.reindex(pd.MultiIndex.from_frame(rows[keys])).to_numpy()
    table = pd.DataFrame({"observed": rows["observed"].to_numpy(float), "predicted": predicted})
    return table.assign(error=np.asarray(table["observed"] / table["predicted"] - 1))


PREFERENCES = ((0.5, 0.5), (0.8, 0.2), (0.2, 0.8))
"""λ of both tasks: what their losses count."""

NEAR = 0.01
"""A model trained as advised has a weight so near the advised one (lengths were evened after it was)."""


def advise(pair: Pair, *, refits: int) -> Iterator[Figures]:
    """Yield, for each preference, the weight that the law advises, and what is reached there and elsewhere.

    The law of size, length and mixture is fitted to the smaller sizes of the first seed at all lengths, as
    `mnmt-laws recommend --size N --tokens D` does it. So all other seeds are new to it.
    """
    known = pair.of(pair.seeds[0]).observations()
    fitted = fit(known, law=WITH_LENGTH, uncertainty=ResidualBootstrap(refits=refits))
    losses = largest_models(pair)
    tokens = float(losses["tokens"].median())
    for factors in PREFERENCES:
        preference = dict(zip(pair.tasks, factors, strict=True))
        answer = recommend(fitted, size=pair.largest, tokens=tokens, preference=preference)
        weight = answer.weights[pair.tasks[0]]
        yield {
            "pair": pair.name, "preference": list(factors), "weight": weight,
            "range": list(answer.ranges[pair.tasks[0]]),
            "predicted": float(np.dot([answer.predicted[task] for task in pair.tasks], factors)),
            "regret": answer.regret, **_reached(losses, pair.tasks, factors, weight),
        }  # fmt: skip


def largest_models(pair: Pair, *, testset: str = "test") -> pd.DataFrame:
    """Return the losses of the largest models at the longest training: (seed, weight) by task."""
    rows = pair.observations(testset=testset, step=pair.steps[-1], fit_all=True).frame
    rows = rows[rows["size"].eq(pair.largest)]
    rows = rows.assign(first=pair.first_weights(rows))
    table = rows.pivot_table(index=["seed", "first"], columns="task", values="value")
    return table.assign(tokens=rows.groupby(["seed", "first"])["tokens"].median())


def _reached(losses: pd.DataFrame, tasks: list[str], factors: tuple[float, ...], weight: float) -> Figures:
    """Return the preferred sum of losses as advised, at equal weights, and at the grid's best weight.

    Sums are means over seeds. The best weight of all is also the luckiest: `best of others` is what a seed
    reaches at the weight that was best for the other seeds.
    """
    by_seed = (losses[tasks] @ pd.Series(factors, index=tasks)).unstack("first")
    sums, columns = by_seed.mean(), by_seed.columns.to_numpy(float)
    grid = by_seed[[w for w in columns if w in (*GRID, UNSEEN)]]
    near = by_seed.loc[:, abs(columns - weight) < NEAR].iloc[:, :1]
    return {
        "reached": None if near.empty else float(near.iloc[:, 0].mean()),
        "reached by seed": near.to_numpy().ravel().tolist(),
        "between": _between(grid.mean(), weight),
        "equal": float(sums[0.5]), "equal by seed": by_seed[0.5].tolist(),
        "best_weight": grid.mean().idxmin(), "best": float(grid.mean().min()),
        "best of others": _best_of_others(grid),
        "grid": {f"{w:g}": float(value) for w, value in grid.mean().items()},
    }  # fmt: skip


def _best_of_others(grid: pd.DataFrame) -> float | None:
    """Return the mean over seeds (rows) of a seed's sum at the weight (column) best for the others."""
    if len(grid) < 2:
        return None
    best = {seed: grid.drop(index=seed).mean().idxmin() for seed in grid.index}
    return float(np.mean([grid.loc[seed, weight] for seed, weight in best.items()]))


def _between(sums: pd.Series, weight: float) -> float | None:
    """Return the sum at a weight between those of the grid, by a smooth curve through all of them."""
    inner = sums[(sums.index > 0) & (sums.index < 1)]
    if not inner.index.min() <= weight <= inner.index.max():
        return None
    return float(PchipInterpolator(inner.index.to_numpy(float), inner.to_numpy(float))(weight))

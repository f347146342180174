"""Losses that the laws had not seen: a larger size, another weight, a longer training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import HeldOut, LawFit, Observations, ResidualBootstrap, fit, predict_held_out
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

"""What exponents follow, what a task gains beside another at equal exposure, and f of each size: no law.

Runs of equal steps count as equally long, though whole sentences leave their tokens a percent apart. Ends of
intervals are the least and the greatest of one seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import (
    EqualExposure,
    Exponents,
    exponents_by_exposure,
    fractions_by_size,
    observe,
    transfer_at_equal_exposure,
)
from studies.analysis.real_text.pairs import TESTSETS, Pair, read_pair

BATCH = 2048
"""Source and target tokens of a step."""

KEYS = ["task", "weight", "length"]


def exponents(pair: Pair, testset: str = "test") -> Exponents:
    """Return the slopes of log loss over log N."""
    return exponents_by_exposure(observe(_rows(pair, testset, pair.lengths).assign(role="fit")))


def _rows(pair: Pair, testset: str, lengths: Sequence[int]) -> pd.DataFrame:
    rows = pair.losses(testset=testset, lengths=lengths)
    return rows.assign(tokens=BATCH * rows["step"])


def every_length(pair: Pair, testset: str) -> pd.DataFrame:
    """Return the losses of all lengths, of which runs of equal steps have equal `tokens`."""
    return _rows(pair, testset, sorted(pair.rows["step"].unique()))


def describe_exponents(pair: Pair) -> Iterator[Figures]:
    """Yield for each task, and for both, how well weight, length and exposure explain α."""
    for testset in TESTSETS:
        for test in exponents(pair, testset).tests:
            yield {
                "pair": pair.name, "testset": testset, "task": test.task, "curves": test.curves,
                "Spearman": test.spearman, "R²": test.r_squared,
                "log p at equal exposure": list(test.at_equal_exposure),
                "log exposure at equal p": list(test.per_exposure),
            }  # fmt: skip


def describe_bends(pair: Pair) -> Iterator[Figures]:
    """Yield which way curves of log loss over log N bend after the longest training, by task.

    `t of a square` is of one square for all weights, each with a line of its own. `slopes` are of a task
    alone, between neighbouring sizes. A power law with a limit bends upwards: its slopes fall with N.
    """
    for testset in TESTSETS:
        rows = pair.losses(testset=testset, lengths=pair.lengths[-1:])
        rows = rows[rows["first"].isin(pair.grid) & rows["weight"].gt(0)]
        for task, part in rows.groupby("task"):
            curves = [
                np.log(curve[["size", "value"]].to_numpy(float)).T for _, curve in part.groupby("weight")
            ]
            alone = np.log(part[part["weight"].eq(1)].groupby("size")["value"].mean())
            yield {
                "pair": pair.name, "testset": testset, "task": task, **bends(curves),
                "slopes": (-np.diff(alone) / np.diff(np.log(alone.index))).tolist(),
            }  # fmt: skip


def bends(curves: list[np.ndarray]) -> Figures:
    """Return how many curves, each (2, n) of x and y, bend downwards, and t of their common square."""
    lines = [np.polynomial.Polynomial.fit(x, y, 1) for x, y in curves]
    squares = [x**2 - np.polynomial.Polynomial.fit(x, x**2, 1)(x) for x, _ in curves]
    errors = [y - line(x) for (x, y), line in zip(curves, lines, strict=True)]
    down = sum(float(square @ error) < 0 for square, error in zip(squares, errors, strict=True))
    x, y = np.concatenate(squares), np.concatenate(errors)
    square = x @ y / (x @ x)
    variance = np.sum((y - square * x) ** 2) / (len(y) - 2 * len(curves) - 1) / (x @ x)
    return {"curves": len(curves), "downwards": down, "t of a square": float(square / np.sqrt(variance))}


def transfer_by_size(rows: pd.DataFrame) -> pd.DataFrame:
    """Return `value`, the difference of each model and size, with the ends `lower` and `upper` of seeds."""
    return _with_seeds(rows, lambda part: _transfer(part).by_size.assign(value=lambda x: x["difference"]))


def _transfer(rows: pd.DataFrame) -> EqualExposure:
    return transfer_at_equal_exposure(rows, metric="loss")


def describe_transfer(pair: Pair) -> Iterator[Figures]:
    """Yield each task's mean difference at each weight and length: over sizes, of each seed, of each size."""
    for testset in TESTSETS:
        for row in mean_transfer(every_length(pair, testset)):
            yield {"pair": pair.name, "testset": testset, **row}


def mean_transfer(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield the same from rows of one test set; `std` is of seeds, not of sizes."""
    seeds = [_transfer(part).means.set_index([*KEYS, "mixture"]) for _, part in rows.groupby("seed")]
    whole = _transfer(rows)
    sizes = whole.by_size.sort_values("size")
    for row in whole.means[whole.means["sizes"] > 1].to_dict("records"):
        model = tuple(row[name] for name in [*KEYS, "mixture"])
        part = sizes[(sizes[KEYS] == list(model[:3])).all(axis=1)]
        yield {
            **row, "by size": part["difference"].tolist(),
            "by seed": [float(seed["difference"].get(model, float("nan"))) for seed in seeds],
        }  # fmt: skip


def shares_by_size(pair: Pair, testset: str = "test") -> pd.DataFrame:
    """Return f of each size, read without a law after the longest training.

    Columns as of `fractions_by_size`, with ends of seeds. Where a model is worse than the smallest alone, or
    better than the largest, f is not known; `bound` is the greatest or the least that it can be. An end of a
    seed may be such a bound too.
    """
    return _with_seeds(_rows(pair, testset, pair.lengths[-1:]), _read_shares, of="bound")


def _read_shares(rows: pd.DataFrame) -> pd.DataFrame:
    table = fractions_by_size(rows)
    bound = table["upper"].where(table["upper"].lt(float("inf")), table["lower"])
    limits = {True: "at least", False: "at most"}
    kind = table["lower"].gt(0).map(limits).mask(table["value"].notna(), "measured")
    return table.assign(bound=bound, kind=kind)


_MODEL = [*KEYS, "size"]


def describe_shares(pair: Pair) -> Iterator[Figures]:
    """Yield f of all sizes at each weight that several sizes have; None where only a bound is known."""
    for testset in TESTSETS:
        for (task, weight), part in shares_by_size(pair, testset).groupby(["task", "weight"]):
            if len(part) > 1:
                columns = {name: part.sort_values("size")[name].tolist()
                           for name in ("size", "value", "lower", "upper", "bound")}  # fmt: skip
                yield {"pair": pair.name, "testset": testset, "task": task, "weight": weight, **columns}


def _with_seeds(
    rows: pd.DataFrame, read: Callable[[pd.DataFrame], pd.DataFrame], *, of: str = "value"
) -> pd.DataFrame:
    """Return what is read from all rows, `lower` and `upper` the least and greatest `of` of one seed."""
    seeds = pd.concat(read(part) for _, part in rows.groupby("seed"))
    ends = seeds.groupby(_MODEL)[of].agg(lower="min", upper="max").reset_index()
    return read(rows).drop(columns=["lower", "upper"], errors="ignore").merge(ends, on=_MODEL)


def costs_of_sharing(folder: Path) -> Iterator[Figures]:
    """Yield by how much German is worse beside each language than alone.

    `relative` is a share of the loss alone, the mean over seeds. Both tables have the same German sentences,
    so it does not depend on how a vocabulary cuts them.
    """
    for name, words in BESIDE.items():
        pair = read_pair(folder / f"{name}.csv", name)
        rows = pair.losses(lengths=pair.lengths[-1:])
        rows = rows[rows["task"].eq("en-de") & rows["weight"].gt(0)]
        losses = rows.pivot_table(index="size", columns="weight", values="value")
        relative = losses.div(losses[1.0], axis=0) - 1
        for size, costs in relative.dropna(how="all").iterrows():
            yield {"table": words, "size": size, "relative": costs.dropna().to_dict()}


BESIDE = {"en-de-zh": "beside Chinese", "en-de-fr": "beside French"}
"""Tables with German and another target."""

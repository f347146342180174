"""Errors of predictions by a law and by rulers, each kind after its back-test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import ResidualBootstrap, fit, observe, predict_held_out
from mnmt_laws.laws import LawName
from studies.analysis.real_text.laws import WITH_LENGTH
from studies.analysis.real_text.pairs import TESTSETS, Pair
from studies.analysis.rulers import coverage, with_rulers

METHODS = ("law", "line", "interpolation", "no change")
"""A law, the rulers of `studies.analysis.rulers`, and the loss after the training before."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Losses to predict from others: of a new size, a new weight or longer training."""

    new: str
    target: str
    known: pd.DataFrame
    asked: pd.DataFrame

    @property
    def law(self) -> LawName:
        """The law that answers."""
        return WITH_LENGTH if self.new == "length" else "capacity"


def questions(pair: Pair, testset: str) -> Iterator[Question]:
    """Yield questions of each kind, its back-test first."""
    rows = pair.losses(testset=testset)
    grid = rows[rows["first"].isin(pair.grid) & rows["weight"].gt(0)]
    *shorter, longest = pair.lengths
    last = grid[grid["step"].eq(longest)]
    for size in pair.sizes[-2:]:
        yield Question(new="size", target=f"N = {size:,.0f}", known=last[last["size"] < size],
                       asked=last[last["size"] == size])  # fmt: skip
    for weight in pair.grid[2:-2]:
        left = last["first"].eq(weight)
        yield Question(new="weight", target="each weight left out", known=last[~left], asked=last[left])
    between = rows["step"].eq(longest) & ~rows["first"].isin(pair.grid)
    if between.any():
        yield Question(new="weight", target="weights between", known=last, asked=rows[between])
    before, largest = grid[grid["step"].isin(shorter)], last["size"].eq(pair.sizes[-1])
    for words, asked in (("smaller sizes", last[~largest]), ("largest size", last[largest])):
        yield Question(new="length", target=f"{longest} steps, {words}", known=before, asked=asked)
    for step in pair.longer:
        rows = pair.losses(testset=testset, lengths=[step])
        asked = rows[rows["first"].isin(pair.grid) & rows["weight"].gt(0)]
        yield Question(new="length", target=f"{step} steps", known=grid, asked=asked)


def prediction_errors(pair: Pair, *, refits: int) -> Iterator[Figures]:
    """Yield the median relative error of every method, and how many intervals of the law hold the losses.

    There are intervals in domain, but for back-tests, since refits take most of the time.
    `chosen` had the least error in the first row of the same kind.
    """
    for testset in TESTSETS:
        asked: dict[tuple[str, str], list[Question]] = {}
        for question in questions(pair, testset):
            asked.setdefault((question.new, question.target), []).append(question)
        best: dict[str, str] = {}
        for (new, target), parts in asked.items():
            count = refits if new in best and testset == "test" else 0
            table = pd.concat(answer(question, refits=count) for question in parts)
            medians = {name: float(_errors(table, name).median()) for name in METHODS}
            yield {
                "pair": pair.name, "testset": testset, "new": new, "target": target, "count": len(table),
                **medians, "chosen": best.get(new, ""),
                **(coverage(table) if count else {}),
            }  # fmt: skip
            best.setdefault(new, min(METHODS, key=lambda name: np.nan_to_num(medians[name], nan=np.inf)))


def answer(question: Question, *, refits: int) -> pd.DataFrame:
    """Return the rows of `HeldOut` with a column for each method."""
    rows = pd.concat([question.known.assign(role="fit"), question.asked.assign(role="held-out")])
    observations = observe(rows, metric="loss")
    fitted = fit(observations, law=question.law, uncertainty=ResidualBootstrap(refits=refits))
    table = with_rulers(observations, predict_held_out(fitted).rows)
    longer = _longer(question.known, table) if question.new == "length" else {"no change": np.nan}
    return table.assign(law=table["predicted"], **longer)


def _longer(known: pd.DataFrame, rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the mean losses of the same models after the longest training known, and beyond it.

    `interpolation` is on the straight line through the last two lengths, in log loss and log steps.
    """
    before, last = sorted(known["step"].unique())[-2:]
    means = known.pivot_table(index=["task", "size", "weight"], columns="step", values="value")
    means = means.reindex(pd.MultiIndex.from_frame(rows[["task", "size", "weight"]]))
    reach = np.log(rows["step"].to_numpy(float) / last) / np.log(last / before)
    return {
        "no change": means[last].to_numpy(),
        "interpolation": (means[last] * (means[last] / means[before]) ** reach).to_numpy(),
    }


def _errors(rows: pd.DataFrame, method: str) -> pd.Series:
    return (rows["observed"] / rows[method].astype(float) - 1).abs()

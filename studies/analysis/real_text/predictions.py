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


def prediction_errors(pair: Pair, *, refits: int) -> Iterator[Figures]:
    """Yield the median relative error of every method, and the law's intervals of a new model.

    `chosen` had the least error in the row before, of the same kind.
    """
    for testset in TESTSETS:
        answers: dict[tuple[str, str], list[pd.DataFrame]] = {}
        for question in questions(pair, testset):
            answers.setdefault((question.new, question.target), []).append(answer(question, refits=refits))
        best, kind = "", ""
        for (new, target), parts in answers.items():
            table = pd.concat(parts)
            medians = {name: float(_errors(table, name).median()) for name in METHODS}
            yield {
                "pair": pair.name, "testset": testset, "new": new, "target": target, "count": len(table),
                **medians, "chosen": best if new == kind else "", **coverage(table),
            }  # fmt: skip
            best, kind = min(METHODS, key=lambda name: np.nan_to_num(medians[name], nan=np.inf)), new


def answer(question: Question, *, refits: int) -> pd.DataFrame:
    """Return the rows of `HeldOut` with a column for each method."""
    rows = pd.concat([question.known.assign(role="fit"), question.asked.assign(role="held-out")])
    observations = observe(rows, metric="loss")
    fitted = fit(observations, law=question.law, uncertainty=ResidualBootstrap(refits=refits))
    table = with_rulers(observations, predict_held_out(fitted).rows)
    longer = question.new == "length"
    unchanged = _before(question.known, table) if longer else np.nan
    return table.assign(**{"law": table["predicted"], "no change": unchanged})


def _before(known: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Return the mean loss over seeds of the same models after the longest training known."""
    last = known[known["step"].eq(known["step"].max())]
    keys = ["task", "size", "weight"]
    means = last.groupby(keys)["value"].mean()
    return means.reindex(pd.MultiIndex.from_frame(rows[keys])).to_numpy(float)


def _errors(rows: pd.DataFrame, method: str) -> pd.Series:
    return (rows["observed"] / rows[method].astype(float) - 1).abs()

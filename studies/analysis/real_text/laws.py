"""The laws of each table, which parameter varies, and scores beside losses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import (
    ResidualBootstrap,
    check_claims,
    compare,
    fit,
    fitted_fraction,
    pair_metrics,
    quality_lines,
)
from mnmt_laws.answers.claims import r_squared
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LawName
from studies.analysis.real_text.pairs import GRID, TESTSETS, Pair

LENGTH_LAWS: tuple[LawName, ...] = (
    "length", "length-shared", "length-coupled", "length-full", "share", "share-coupled", "share-tied",
)  # fmt: skip
"""Laws with a term of training length. In those of `share` one f̂ acts on parameters and training; in the
others it acts on parameters alone, and training is shared in another way."""

WITH_LENGTH: LawName = "share-tied"
"""The law of length that `mnmt-laws recommend` takes."""

TOLD = (0.1, 0.5, 0.9)
"""Weights at which f̂ of different laws is compared."""

VERDICTS = {True: "yes", False: "no", None: "undetermined"}


class Fits:
    """The fits of one pair to all its runs, each made once."""

    def __init__(self, pair: Pair, *, refits: int) -> None:
        """Take what is fitted, and the number of refits behind intervals."""
        self.pair, self.refits = pair, refits
        self.grid = pair.at(*GRID)  # the weights that every size has
        self.of = cache(self._fit)

    def _fit(self, law: LawName, testset: str = "test", step: int | None = None, metric: str = "loss",
             fit_all: bool = True) -> LawFit:  # fmt: skip
        rows = self.grid.observations(testset=testset, step=step, metric=metric, fit_all=fit_all)
        objective = "log-ols" if metric == "loss" else "ols"
        return fit(rows, law=law, objective=objective, uncertainty=ResidualBootstrap(refits=self.refits))


def describe_laws(fits: Fits) -> Iterator[Figures]:
    """Yield a row for each test set, length and task: α, L∞, what one law explains, and the claims."""
    for testset in TESTSETS:
        for step in fits.pair.steps:
            separate, joint = fits.of("per-weighting", testset, step), fits.of("joint", testset, step)
            claims = {(claim.task, claim.about): claim for claim in
                      check_claims(per_weighting=separate, joint=joint)}  # fmt: skip
            for task in fits.pair.tasks:
                known = {about: claims[task, about] for about in ("alpha", "l_inf", "joint")}
                yield {
                    "pair": fits.pair.name, "testset": testset, "step": step, "task": task,
                    **_with_interval(joint, task, "alpha"), **_with_interval(joint, task, "l_inf"),
                    "r2_joint": r_squared(joint, task, _rows(joint, task)),
                    "r2_separate": r_squared(separate, task, _rows(separate, task)),
                    "one_alpha": VERDICTS[known["alpha"].holds], "one_l_inf": VERDICTS[known["l_inf"].holds],
                    "one_law": VERDICTS[known["joint"].holds],
                    "findings": {about: claim.finding for about, claim in known.items()},
                }  # fmt: skip


def _with_interval(fitted: LawFit, task: str, name: str) -> Figures:
    lower, upper = (float(end) for end in fitted.interval()[name].sel(task=task))
    return {name: float(fitted.parameters[name].sel(task=task)), f"{name}_interval": [lower, upper]}


def _rows(fitted: LawFit, task: str) -> pd.DataFrame:
    return fitted.rows[fitted.rows["task"].eq(task)]


def what_varies(pair: Pair, *, tables: int) -> Iterator[Figures]:
    """Yield, for each test set, what the mixture acts through by BIC at the longest training."""
    for testset in TESTSETS:
        rows = pair.observations(testset=testset, step=pair.steps[-1], fit_all=True)
        method = ResidualBootstrap(refits=40)
        comparison = compare(rows, left_out=False, tables=tables, uncertainty=method)
        bic = comparison.table.groupby("label")["bic"].sum(min_count=len(pair.tasks))
        bic = bic / comparison.errors.design_effect
        yield {
            "pair": pair.name, "testset": testset, "best": comparison.best, "verdict": comparison.verdict,
            "bic_above_best": (bic - bic.min()).sort_values().to_dict(),
        }  # fmt: skip


def shares_by_law(fits: Fits) -> Iterator[Figures]:
    """Yield f̂ of every law of length, and how far it is behind the best in BIC (summed over tasks)."""
    for testset in TESTSETS:
        rows = fits.grid.observations(testset=testset, fit_all=True)
        comparison = compare(rows, laws=LENGTH_LAWS, left_out=False, tables=0)
        bic = comparison.table.groupby("law")["bic"].sum() / comparison.errors.design_effect
        for law, behind in (bic - bic.min()).sort_values().items():
            fitted = fit(rows, law=law, uncertainty=ResidualBootstrap(refits=0))
            yield {
                "pair": fits.pair.name, "testset": testset, "law": law, "bic_above_best": float(behind),
                **{task: fitted_fraction(fitted, task=task, weight=TOLD).tolist() for task in fitted.tasks},
            }  # fmt: skip


def laws_of_length(fits: Fits) -> Iterator[Figures]:
    """Yield, for each test set and task, the laws of length with their scatter, and what one of them says."""
    for testset in TESTSETS:
        rows = fits.grid.observations(testset=testset, fit_all=True)
        table = compare(rows, laws=LENGTH_LAWS, left_out=False, tables=0).table
        for task, part in table.groupby("task"):
            fitted = fits.of(WITH_LENGTH, testset)
            yield {
                "pair": fits.pair.name, "testset": testset, "task": task,
                **_with_interval(fitted, str(task), "alpha"), **_with_interval(fitted, str(task), "l_inf"),
                "scatter": dict(zip(part["law"], part["scatter"], strict=True)),
                "bic_above_best": dict(zip(part["law"], part["bic"] - part["bic"].min(), strict=True)),
            }  # fmt: skip


def scored(pair: Pair) -> bool:
    """Return whether the table has chrF."""
    return bool(pair.rows["metric"].eq("chrf").any())


def pairs_of_metrics(pair: Pair) -> pd.DataFrame:
    """Return loss, chrF and BLEU of the runs that were trained on the task, at the longest training."""
    rows = pair.rows[pair.rows["step"].eq(pair.steps[-1])]
    metrics = pair_metrics(rows, testset="test")
    return metrics[metrics["weight"].gt(0)].reset_index(drop=True)


def describe_quality(fits: Fits) -> Iterator[Figures]:
    """Yield, for each task, the line from loss to chrF and to BLEU, and how well laws of chrF fit."""
    metrics, step = pairs_of_metrics(fits.pair), fits.pair.steps[-1]
    for name in ("chrf", "bleu"):
        lines: list[Any] = quality_lines(metrics, name).to_dict("records")
        for line in lines:
            yield {"pair": fits.pair.name, "best": float(metrics[name].max()), **line}
    for law in ("per-weighting", "joint", "capacity"):
        fitted = fits.of(law, "test", step, "chrf")
        for task in fitted.tasks:
            rows = fitted.rows[fitted.rows["task"].eq(task)]
            yield {"pair": fits.pair.name, "task": task, "law": law, "r2": r_squared(fitted, task, rows)}

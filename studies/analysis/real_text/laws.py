"""The laws of each table: what they explain, which parameter varies, and what their shares are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.measurement import Figures
from mnmt_laws import ResidualBootstrap, check_claims, fit, fitted_fraction
from mnmt_laws.answers.claims import r_squared
from mnmt_laws.answers.comparison.evidence import criteria_of, shared_errors
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.laws import LawName
from studies.analysis.real_text.pairs import MODEL, TESTSETS, Pair

AT_ONE_LENGTH: tuple[LawName, ...] = (
    "capacity", "linear-capacity", "joint", "limit-varies", "exponent-varies", "per-weighting",
)  # fmt: skip
"""Laws without a term of length. By eq. 12, by eq. 13, or with a value for each weight."""

LENGTH_LAWS: tuple[LawName, ...] = ("share-tied", "share-coupled", "length-full", "share-free")
"""Laws with a term of length. In `length-full` f̂ acts on parameters alone, and training is shared in another
way; in the others f̂ acts on both, by eq. 12, which cannot cross p, or with a share for each weight."""

WITH_LENGTH: LawName = "share-tied"
"""The law of length that predicts any weight."""

_REFITTED = {"test": ("joint", "per-weighting", "capacity", "linear-capacity", "share-free"),
             "debian": ("joint", "per-weighting")}  # fmt: skip
"""Laws whose intervals are shown: of the longest training or of all lengths. Refits take most of the time."""

VERDICTS = {True: "yes", False: "no", None: "undetermined"}


class Fits:
    """The fits of one pair to all its runs, each made once."""

    def __init__(self, pair: Pair, *, refits: int) -> None:
        """Take what is fitted, and the number of refits behind intervals."""
        self.pair, self.refits = pair, refits
        self.of = cache(self._fit)

    def _fit(
        self, law: LawName, testset: str = "test", step: int | None = None, metric: str = "loss"
    ) -> LawFit:
        rows = self.pair.observations(testset=testset, step=step, metric=metric)
        objective = "log-ols" if metric == "loss" else "ols"
        has_interval = law in _REFITTED[testset] if metric == "loss" else law == "capacity"
        refits = self.refits if has_interval and step in (None, self.pair.lengths[-1]) else 0
        return fit(rows, law=law, objective=objective, uncertainty=ResidualBootstrap(refits=refits))

    def longest(self, law: LawName, testset: str = "test", metric: str = "loss") -> LawFit:
        """Return a fit to the models of the longest training."""
        return self.of(law, testset, self.pair.lengths[-1], metric)


def describe_laws(fits: Fits) -> Iterator[Figures]:
    """Yield α, what one law explains, and the verdicts on each task after the longest training."""
    for testset in TESTSETS:
        separate, joint = fits.longest("per-weighting", testset), fits.longest("joint", testset)
        claims = {(claim.task, claim.about): claim for claim in
                  check_claims(per_weighting=separate, joint=joint)}  # fmt: skip
        for task in fits.pair.tasks:
            known = {about: claims[task, about] for about in ("alpha", "l_inf", "joint")}
            yield {
                "pair": fits.pair.name, "testset": testset, "task": task,
                "alpha": float(joint.parameters["alpha"].sel(task=task)),
                "r2_joint": r_squared(joint, task, _rows(joint, task)),
                "r2_separate": r_squared(separate, task, _rows(separate, task)),
                "one_alpha": VERDICTS[known["alpha"].holds], "one_l_inf": VERDICTS[known["l_inf"].holds],
                "one_law": VERDICTS[known["joint"].holds],
            }  # fmt: skip


def _rows(fitted: LawFit, task: str) -> pd.DataFrame:
    return fitted.rows[fitted.rows["task"].eq(task)]


def compare_laws(fits: Fits) -> Iterator[Figures]:
    """Yield BIC of each law above the least, summed over both tasks, of one length and of all lengths.

    It is divided by the design effect of errors that the losses of one model share.
    """
    for testset in TESTSETS:
        for laws, step in ((AT_ONE_LENGTH, fits.pair.lengths[-1]), (LENGTH_LAWS, None)):
            fitted = {law: fits.of(law, testset, step) for law in laws}
            effect = max(shared_errors(law).design_effect for law in fitted.values())
            rows = pd.DataFrame(
                criteria_of(one, task, law) for law, one in fitted.items() for task in fits.pair.tasks
            )
            bic = rows.groupby("label")["bic"].sum().reindex(laws) / effect
            yield {
                "pair": fits.pair.name, "testset": testset, "steps": step or "all",
                "bic_above_best": (bic - bic.min()).to_dict(),
                "scatter": {task: part.set_index("label")["scatter"].to_dict()
                            for task, part in rows.groupby("task")},
            }  # fmt: skip


def shares_by_law(fits: Fits) -> Iterator[Figures]:
    """Yield f in domain by each law of length; ends are of the 95% interval of the law with f free."""
    weights = [weight for weight in fits.pair.grid if 0 < weight < 1]
    *by_formula, free = (fits.of(law) for law in LENGTH_LAWS)
    for task in fits.pair.tasks:
        named = {law.law.name: fitted_fraction(law, task=task, weight=weights) for law in by_formula}
        parts = (free.parameters, free.draws)
        gains = (part.gain.sel(task=task).reindex(weight=weights) for part in parts)
        value, draws = (gain * gain.weight for gain in gains)
        ends = np.quantile(draws, [0.025, 0.975], axis=draws.get_axis_num("draw"))
        yield {
            "pair": fits.pair.name, "task": task, "weights": weights,
            **{name: share.tolist() for name, share in named.items()},
            free.law.name: value.to_numpy().tolist(), "ends": ends.tolist(),
        }  # fmt: skip


def lack_of_fit(fits: Fits) -> Iterator[Figures]:
    """Yield how far laws by eqs. 12 and 13 lie from the means over seeds, against the scatter of seeds.

    F is the variance of these means about the law, times their number of seeds, over that of seeds about
    their mean.
    """
    for testset in TESTSETS:
        for law in AT_ONE_LENGTH[:2]:
            fitted = fits.longest(law, testset)
            errors = fitted.rows[MODEL].assign(error=fitted.residuals())
            for task, part in errors.groupby("task"):
                cells = part.groupby(MODEL)["error"]
                about, freedom = float(cells.var().mean()), len(part) - cells.ngroups
                spare = cells.ngroups - fitted.num_parameters(str(task))
                ratio = float((cells.mean() ** 2 * cells.size()).sum()) / spare / about
                yield {
                    "pair": fits.pair.name, "testset": testset, "task": task, "law": law,
                    "off": float(np.sqrt(np.mean(cells.mean() ** 2))), "seeds": float(np.sqrt(about)),
                    "F": ratio, "p": float(stats.f.sf(ratio, spare, freedom)),
                }  # fmt: skip


def spreads(pair: Pair) -> Iterator[Figures]:
    """Yield the standard deviation of a loss over seeds, pooled over models and the tasks they train on."""
    for testset in TESTSETS:
        for step in pair.lengths:
            rows = pair.observations(testset=testset, step=step).frame
            cells = rows[rows["weight"].gt(0)].groupby(MODEL)["value"]
            deviations, means = cells.std().dropna(), cells.mean()
            yield {
                "pair": pair.name, "testset": testset, "step": step, "cells": len(deviations),
                "spread": float(np.sqrt((deviations**2).mean())),
                "relative": float(np.sqrt(((deviations / means) ** 2).mean())),
            }  # fmt: skip

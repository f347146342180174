"""Effective shares by law, test set and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.measurement import Figures
from mnmt_laws import fitted_fraction
from mnmt_laws.arrays import Array
from studies.analysis.real_text.laws import WITH_LENGTH, Fits
from studies.analysis.real_text.pairs import TESTSETS, Pair

WEIGHTS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


@dataclass(frozen=True, kw_only=True)
class Share:
    """F(p) of one task at `WEIGHTS`."""

    value: Array
    """(weights,) the estimate."""

    draws: Array
    """(refits, weights)."""

    def rows(self) -> Iterator[Figures]:
        """Yield weight, f, its 95% interval, and f/p."""
        lower, upper = np.quantile(self.draws, [0.025, 0.975], axis=0)
        for weight, value, low, high in zip(WEIGHTS, self.value, lower, upper, strict=True):
            yield {"weight": weight, "f": value, "interval": [low, high], "gain": value / weight}


def joint_share(fits: Fits, task: str, *, testset: str, step: int) -> Share:
    """Return f(p) of the joint law at one length (Fernandes et al. 2023, eq. 10)."""
    joint = fits.of("joint", testset, step)
    parameters = (part.sel(task=task) for part in (joint.parameters, joint.draws))
    value, draws = ((part.beta.sel(weight=1.0) / part.beta.reindex(weight=WEIGHTS)) ** (1 / part.alpha)
                    for part in parameters)  # fmt: skip
    return Share(value=value.to_numpy(), draws=draws.transpose("draw", "weight").to_numpy())


def share_with_length(fits: Fits, task: str, *, testset: str) -> Share:
    """Return f̂(p) of the law of size, length and mixture, fitted to all lengths."""
    fitted = fits.of(WITH_LENGTH, testset)
    value, draws = (
        fitted_fraction(fitted, task=task, weight=WEIGHTS, draws=draws) for draws in (False, True)
    )
    return Share(value=value, draws=draws)


def all_shares(fits: Fits) -> Iterator[Figures]:
    """Yield f(p) of every task, test set and length, and with the term of length."""
    for testset in TESTSETS:
        for task in fits.pair.tasks:
            name = {"pair": fits.pair.name, "testset": testset, "task": task}
            for step in fits.pair.steps:
                share = joint_share(fits, task, testset=testset, step=step)
                yield from ({**name, "law": f"joint, {step} steps", **row} for row in share.rows())
            share = share_with_length(fits, task, testset=testset)
            yield from ({**name, "law": WITH_LENGTH, **row} for row in share.rows())


def differences(fits: Mapping[str, Fits], *, step: int) -> Iterator[Figures]:
    """Yield the mean of log f of one task less that of another over common weights, with its 95% interval.

    0.1 means that f is 10% greater. Refits of different tables or test sets are taken as independent; those
    of both test sets share models, so that their interval is too wide rather than too narrow.
    """
    for name, (pair, task, testset), (other, partner, base) in _questions():
        if pair in fits and other in fits:
            first = joint_share(fits[pair], task, testset=testset, step=step)
            second = joint_share(fits[other], partner, testset=base, step=step)
            known = np.isfinite(first.value) & np.isfinite(second.value)
            value = np.log(first.value[known] / second.value[known]).mean()
            means = [np.log(share.draws[:, known]).mean(axis=1) for share in (first, second)]
            draws = means[0] - means[1][::-1]  # refits of two tables do not belong together
            yield {
                "question": name, "first": f"{task} of {pair}, {testset}",
                "second": f"{partner} of {other}, {base}", "weights": WEIGHTS[known].tolist(),
                "difference": float(value),
                "interval": np.quantile(draws, [0.025, 0.975]).tolist(),
            }  # fmt: skip


def _questions() -> Iterator[tuple[str, tuple[str, str, str], tuple[str, str, str]]]:
    """Yield what is compared: (pair, task, test set) with another."""
    for testset in TESTSETS:
        yield "related", ("en-de-fr", "en-de", testset), ("en-de-zh", "en-de", testset)
        for task, back in (("de-en", "en-de"), ("zh-en", "en-zh")):
            yield "into English", ("de-zh-en", task, testset), ("en-de-zh", back, testset)
    for pair, tasks in PARTNERS.items():
        for task in tasks:
            yield "domain", (pair, task, "debian"), (pair, task, "test")


PARTNERS = {"en-de-fr": ("en-de", "en-fr"), "en-de-zh": ("en-de", "en-zh"), "de-zh-en": ("de-en", "zh-en")}
"""The tasks of each pair."""


CELL = ["task", "size", "mixture"]


def spreads(pair: Pair) -> Iterator[Figures]:
    """Yield the standard deviation of a loss over seeds, pooled over models and the tasks they train on."""
    for testset in TESTSETS:
        for step in pair.steps:
            rows = pair.observations(testset=testset, step=step, fit_all=True).frame
            cells = rows[rows["weight"].gt(0)].groupby(CELL)["value"]
            deviations, means = cells.std().dropna(), cells.mean()
            by_size = (deviations**2).groupby("size").mean() ** 0.5
            yield {
                "pair": pair.name, "testset": testset, "step": step, "cells": len(deviations),
                "spread": float(np.sqrt((deviations**2).mean())),
                "relative": float(np.sqrt(((deviations / means) ** 2).mean())),
                "by size": by_size.to_dict(),
            }  # fmt: skip


def fits_by_seed(fits: Fits) -> dict[int, Fits]:
    """Return the fits to each seed's runs, none if there is but one."""
    pair = fits.pair
    several = pair.seeds if len(pair.seeds) > 1 else []
    return {seed: Fits(pair.of(seed), refits=fits.refits) for seed in several}


def shares_by_seed(by_seed: Mapping[int, Fits]) -> Iterator[Figures]:
    """Yield f(p) at the longest training from the runs of each seed alone."""
    for seed, fits in by_seed.items():
        pair = fits.pair
        for testset in TESTSETS:
            for task in pair.tasks:
                share = joint_share(fits, task, testset=testset, step=pair.steps[-1])
                values = dict(zip(WEIGHTS.tolist(), share.value.tolist(), strict=True))
                yield {"pair": pair.name, "testset": testset, "task": task, "seed": seed, "f": values}


def differences_by_seed(alone: Mapping[str, Mapping[int, Fits]], *, step: int) -> Iterator[Figures]:
    """Yield the differences of `shares.differences` from the runs of each seed alone."""
    for seed in sorted(set().union(*alone.values())):
        of_seed = {name: by_seed[seed] for name, by_seed in alone.items() if seed in by_seed}
        yield from ({"seed": seed, **row} for row in differences(of_seed, step=step))

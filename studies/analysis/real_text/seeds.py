"""How much losses differ from seed to seed, and what each seed alone says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.measurement import Figures
from studies.analysis.real_text.laws import Fits
from studies.analysis.real_text.pairs import TESTSETS, Pair
from studies.analysis.real_text.shares import WEIGHTS, differences, joint_share

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

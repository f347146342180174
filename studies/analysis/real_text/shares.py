"""Effective shares by the joint law, and their differences between tasks and test sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import effective_fractions
from studies.analysis.real_text.laws import Fits
from studies.analysis.real_text.pairs import TESTSETS


def all_shares(fits: Fits) -> Iterator[Figures]:
    """Yield f(p) of every task, test set and length by the joint law (Fernandes et al. 2023, eq. 10)."""
    for testset in TESTSETS:
        for step in fits.pair.lengths:
            known = effective_fractions(fits.of("joint", testset, step)).fractions
            for task in fits.pair.tasks:
                for weight in known.weight.to_numpy()[:-1]:
                    cell = known.sel(task=task, weight=weight)
                    value = float(cell["value"])
                    yield {
                        "pair": fits.pair.name, "testset": testset, "task": task, "step": step,
                        "weight": float(weight), "f": value, "interval": cell["interval"].to_numpy().tolist(),
                        "gain": value / float(weight),
                    }  # fmt: skip


def differences(fits: Mapping[str, Fits]) -> Iterator[Figures]:
    """Yield the mean of log f of one task less that of another over common weights, with its 95% interval.

    0.1 means that f is 10% greater. Refits of different tables or test sets are taken as independent; those
    of both test sets share models, so that their interval is too wide rather than too narrow.
    """
    for name, (pair, task, testset), (other, partner, base) in _questions(fits):
        value, draws = _log_shares(fits[pair], task, testset)
        base_value, base_draws = _log_shares(fits[other], partner, base)
        weights = value.index.intersection(base_value.index)
        means = draws[weights].mean(axis=1).to_numpy(), base_draws[weights].mean(axis=1).to_numpy()
        apart = means[0] - means[1][::-1]  # refits of two tables do not belong together
        yield {
            "question": name, "first": f"{task} of {pair}, {testset}",
            "second": f"{partner} of {other}, {base}", "weights": weights.tolist(),
            "difference": float((value[weights] - base_value[weights]).mean()),
            "interval": np.quantile(apart, [0.025, 0.975]).tolist(),
        }  # fmt: skip


def _log_shares(fits: Fits, task: str, testset: str) -> tuple[pd.Series, pd.DataFrame]:
    """Return log f by weight below 1, and the same of each refit (draw, weight)."""
    joint = fits.longest("joint", testset)
    value, draws = (
        (np.log(part.beta.sel(weight=1.0, drop=True) / part.beta) / part.alpha).sel(task=task)
        for part in (joint.parameters, joint.draws)
    )
    known = value.to_series().dropna().drop(1.0)
    return known, draws.transpose("draw", "weight").to_pandas()[known.index]


def _questions(
    fits: Mapping[str, Fits],
) -> Iterator[tuple[str, tuple[str, str, str], tuple[str, str, str]]]:
    """Yield what is compared: (pair, task, test set) with another."""
    for testset in TESTSETS:
        yield "related", ("en-de-fr", "en-de", testset), ("en-de-zh", "en-de", testset)
        for task, back in (("de-en", "en-de"), ("zh-en", "en-zh")):
            yield "into English", ("de-zh-en", task, testset), ("en-de-zh", back, testset)
    for pair, fit in fits.items():
        for task in fit.pair.tasks:
            yield "domain", (pair, task, "debian"), (pair, task, "test")

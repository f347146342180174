"""Does β alone vary: one α against an α for each weight, at equal length and at equal exposure."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.measurement import Figures
from studies.analysis.splitting.exponents import FREE, as_curves, regress, seed_error

EXPOSURES = (100, 250), (350, 500), (600, 1000), (1400, 2400)
"""Ranges of p T in steps, each with weights of two or more lengths."""


def constancy(rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield for curves of equal length or exposure what an α of each weight is worth over one α of the task.

    `BIC gain` is how far one α's BIC lies above that of α free: below 0 β alone varies. `seed left out` is
    the error of α free over that of one α, `weight` the change of α per unit of log p.
    """
    curves = as_curves(rows)
    lengths = {f"T = {step:,}": curves["step"].eq(step) for step in sorted(curves["step"].unique())}
    exposures = {f"p T = {low} to {high}": curves["exposure"].between(low, high) for low, high in EXPOSURES}
    for kind, groups in {"length": lengths, "exposure": exposures}.items():
        parts = [curves[mask].assign(group=curves["task"] + name) for name, mask in groups.items()]
        for name, part in zip(groups, parts, strict=True):
            yield {"equal": kind, "curves of": name, **_compare(part)}
        yield {"equal": kind, "curves of": "all of these", **_compare(pd.concat(parts))}


def _compare(rows: pd.DataFrame) -> Figures:
    one, free = regress(rows, ()), regress(rows, (FREE,))
    by_weight = regress(rows, ("weight",))
    return {
        "curves": rows["curve"].nunique(), "losses": len(rows), "least p": rows["weight"].min(),
        "BIC gain": one.bic - free.bic,
        "BIC gain of a line in log p": one.bic - by_weight.bic,
        "seed left out": seed_error(rows, (FREE,)) / seed_error(rows, ()),
        "error of one α": one.error, "weight": by_weight.slopes["weight"],
    }  # fmt: skip

"""Scores beside losses: whether chrF is linear in the loss, and how well laws of chrF fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import pair_metrics, quality_lines
from mnmt_laws.answers.claims import r_squared
from studies.analysis.real_text.laws import Fits
from studies.analysis.real_text.pairs import TESTSETS, Pair

LAWS = ("per-weighting", "joint", "capacity", "linear-capacity")


def scores(pair: Pair, testset: str) -> pd.DataFrame:
    """Return loss, chrF and BLEU of the runs trained on the task, after the longest training."""
    rows = pair.rows[pair.rows["step"].eq(pair.lengths[-1])]
    metrics = pair_metrics(rows.drop(columns="first"), testset=testset)
    return metrics[metrics["weight"].gt(0)].dropna(subset="chrf").reset_index(drop=True)


def describe_quality(fits: Fits) -> Iterator[Figures]:
    """Yield, for each task, the line of chrF over the loss, and whether a curve is nearer to the scores."""
    for testset in TESTSETS if fits.pair.is_scored else ():
        table = scores(fits.pair, testset)
        lines = quality_lines(table, "chrf").set_index("task")
        for task, part in table.groupby("task"):
            line = lines.loc[task, ["slope", "lower", "upper", "r"]].to_dict()
            yield {"pair": fits.pair.name, "testset": testset, "task": task, **line,
                   **bend(part["loss"].to_numpy(float), part["chrf"].to_numpy(float))}  # fmt: skip


def bend(loss: np.ndarray, score: np.ndarray) -> Figures:
    """Return t of a square of the loss, and slopes of the quadratic at the best and at the worst loss."""
    x = loss - loss.mean()
    design = np.vander(x, 3)
    (square, slope, _), (squares,), *_ = np.linalg.lstsq(design, score, rcond=None)
    variance = squares / (len(x) - 3) * np.linalg.inv(design.T @ design)[0, 0]
    return {
        "count": len(score), "best": float(score.max()), "t of a square": float(square / np.sqrt(variance)),
        "slopes": [float(slope + 2 * square * end) for end in (x.min(), x.max())],
    }  # fmt: skip


def laws_of_chrf(fits: Fits) -> Iterator[Figures]:
    """Yield the share of the variance of chrF that each law explains."""
    for testset in TESTSETS if fits.pair.is_scored else ():
        for law in LAWS:
            fitted = fits.longest(law, testset, "chrf")  # type: ignore[arg-type]
            for task in fitted.tasks:
                rows = fitted.rows[fitted.rows["task"].eq(task)]
                yield {"pair": fits.pair.name, "testset": testset, "task": task, "law": law,
                       "r2": r_squared(fitted, task, rows)}  # fmt: skip

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
    """Yield, for each task and score, the line over the loss, and whether a curve is nearer to the scores."""
    for testset in TESTSETS:
        table = scores(fits.pair, testset)
        for metric in ("chrf", "bleu"):
            lines = quality_lines(table, metric).set_index("task")
            for task, part in table.groupby("task"):
                line = lines.loc[task, ["slope", "lower", "upper", "r"]].to_dict()
                yield {"pair": fits.pair.name, "testset": testset, "task": task, "metric": metric, **line,
                       **bend(part["loss"].to_numpy(float), part[metric].to_numpy(float))}  # fmt: skip


def bend(loss: np.ndarray, score: np.ndarray) -> Figures:
    """Return t of a square of the loss, slopes at both ends, and BIC of curves above that of the line.

    The curves are a quadratic and a line in the log loss. The line of the better half of the losses is there
    as well: a floor of the score bends the worse half.
    """
    x = loss - loss.mean()
    designs = {"line": np.vander(x, 2), "quadratic": np.vander(x, 3), "log": np.vander(np.log(loss), 2)}
    fits = {name: np.linalg.lstsq(design, score, rcond=None) for name, design in designs.items()}
    count = len(score)
    bic = {name: count * np.log(squares[0] / count) + designs[name].shape[1] * np.log(count)
           for name, (_, squares, *_) in fits.items()}  # fmt: skip
    square, slope, _ = fits["quadratic"][0]
    variance = (
        fits["quadratic"][1][0] / (count - 3) * np.linalg.inv(designs["quadratic"].T @ designs["quadratic"])
    )
    better = loss <= np.median(loss)
    return {
        "count": count, "best": float(score.max()), "t of a square": float(square / np.sqrt(variance[0, 0])),
        "slopes": [float(slope + 2 * square * end) for end in (x.min(), x.max())],
        "slopes of halves": [float(np.polyfit(x[half], score[half], 1)[0]) for half in (better, ~better)],
        "BIC": {name: float(value - bic["line"]) for name, value in bic.items() if name != "line"},
    }  # fmt: skip


def laws_of_chrf(fits: Fits) -> Iterator[Figures]:
    """Yield the share of the variance of chrF that each law explains."""
    for testset in TESTSETS:
        for law in LAWS:
            fitted = fits.longest(law, testset, "chrf")  # type: ignore[arg-type]
            for task in fitted.tasks:
                rows = fitted.rows[fitted.rows["task"].eq(task)]
                yield {"pair": fits.pair.name, "testset": testset, "task": task, "law": law,
                       "r2": r_squared(fitted, task, rows)}  # fmt: skip

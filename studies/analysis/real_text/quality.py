"""Translations of the models of the longest training: chrF against loss, and laws of chrF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchmarks.measurement import Figures
from mnmt_laws import pair_metrics, quality_lines
from mnmt_laws.answers.claims import r_squared
from studies.analysis.real_text.laws import Fits
from studies.analysis.real_text.pairs import Pair


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

"""Losses by the length of the source, and the laws of each length (Zhang et al. 2022, figs. 3 and 8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_eval.compare.groups import group_sentences
from mnmt_eval.runs.losses import sentence_losses
from mnmt_eval.runs.texts import run_text
from mnmt_laws import ResidualBootstrap, compare_architectures
from studies.analysis.architectures.models import ENCDEC, MODELS, SUPERVISED, read_losses

PARTS = {"1/8 short": "shortest eighth", "4/8 medium": "fourth eighth", "8/8 long": "longest eighth"}
"""The paper's short, medium and long, of a test set in eight parts by source length."""


def write_lengths(runs: Path, rows: pd.DataFrame, table: Path) -> None:
    """Write a run table whose test sets are the parts of `test` by length.

    Args:
        runs: Folder of the run records.
        rows: The study's run table.
        table: The table to write.
    """
    losses = rows[rows["metric"].eq("loss") & rows["testset"].eq("test")]
    parts = [part for row in losses.to_dict("records") for part in _parts_of(runs, row)]
    pd.DataFrame(parts).to_csv(table, index=False, float_format="%.5g")


def _parts_of(runs: Path, row: dict[Hashable, Any]) -> Iterator[dict[Hashable, Any]]:
    text = run_text([runs / row["run"]], "test", row["task"])
    statistics, groups = sentence_losses(runs / row["run"], text), group_sentences(text, "eighths")
    for group in PARTS:
        nats, tokens = statistics[np.array(groups) == group].sum(axis=0)
        yield {**row, "testset": group, "value": nats / tokens}


def laws_by_length(table: Path, *, refits: int) -> pd.DataFrame:
    """Return the exponent and limit of every model on each part, of the mean over the trained tasks."""
    base = read_losses(table, testset=next(iter(PARTS)))
    start = float(base.loc[base["model"].eq(ENCDEC), "size"].min())
    parameters = {}
    for group, label in PARTS.items():
        losses = read_losses(table, testset=group)
        rows = losses[losses["task"].eq(SUPERVISED)].rename(columns={"model": "architecture"})
        laws = compare_architectures(
            rows.assign(metric="loss"), n_0=start, uncertainty=ResidualBootstrap(refits=refits)
        )
        parameters[label] = laws.parameters
    return pd.concat(parameters, names=["part"]).droplevel(1).reset_index()


def gaps_by_length(table: Path) -> Iterator[Figures]:
    """Yield each language model's loss less the encoder-decoder's of equal width, by part and width."""
    for group, label in PARTS.items():
        losses = read_losses(table, testset=group)
        some = losses[losses["task"].eq(SUPERVISED)]
        by_model = some.pivot_table(index="width", columns="model", values="value")
        for model in list(MODELS.values())[1:]:
            gaps = by_model[model] - by_model[ENCDEC]
            yield {
                "task": SUPERVISED,
                "part": label,
                "model": model,
                **{f"d{width}": float(gap) for width, gap in gaps.items()},
            }

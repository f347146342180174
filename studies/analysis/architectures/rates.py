"""Whether one learning rate is fair to all models: three rates at one width."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from studies.analysis.architectures.models import ENCDEC, MODELS, SUPERVISED

USUAL = 0.05
"""The rate of all other models."""

_RUN = r"^(?P<label>[a-z-]+)-d\d+-rate-(?P<rate>\d+)_"


def compare_rates(table: Path) -> pd.DataFrame:
    """Return the mean loss over trained tasks of each model at each rate, and gaps to the encoder-decoder.

    Columns: `model`, `task`, one for each rate, `best` (the rate), `gap` (to the encoder-decoder, both at the
    usual rate, nats per token) and `tuned_gap` (each at its best).
    """
    rows = pd.read_csv(table)
    rows = rows[rows["metric"].eq("loss") & rows["testset"].eq("test") & rows["weight"].gt(0)]
    names = rows["run"].str.extract(_RUN)
    rows = rows.assign(model=names["label"].map(MODELS), rate=("." + names["rate"]).astype(float))
    losses = rows.pivot_table(index="model", columns="rate", values="value").reindex(list(MODELS.values()))
    best = losses.min(axis=1)
    return losses.assign(
        task=SUPERVISED, best=losses.idxmin(axis=1), gap=losses[USUAL] - losses[USUAL][ENCDEC],
        tuned_gap=best - best[ENCDEC],
    ).rename(columns=str).reset_index()  # fmt: skip

"""Models of all languages trained for longer, against the models of one language after the same 400 steps."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.measurement import Figures
from studies.analysis.many_languages.models import BILINGUAL, interval_of_mean, values_by_language
from studies.analysis.many_languages.questions import HALVES, contrasts

UPDATED = "bilingual, a twelfth of the batch"


AT_EQUAL_COST = (
    *((name, UPDATED) for name in ("dense, T = 1", "moe16, T = 1", "dense, T = 5", "moe16, T = 5")),
    ("moe16, T = 1", "dense, T = 1"),
    ("moe16, T = 5", "dense, T = 5"),
    ("dense, T = 5", "dense, T = 1"),
    ("moe16, T = 5", "moe16, T = 1"),
)
"""Models of all languages after the longest training, and what they are compared with."""


def at_equal_cost(longer: pd.DataFrame, batches: pd.DataFrame) -> Iterator[Figures]:
    """Yield differences of the models that were trained longest; see `longer_training` for the arguments."""
    longest = longer[longer["step"].eq(longer["step"].max())]
    return contrasts(pd.concat([longest, batches.assign(name=UPDATED)]), "loss", AT_EQUAL_COST)


def longer_training(rows: pd.DataFrame, longer: pd.DataFrame, batches: pd.DataFrame) -> Iterator[Figures]:
    """Yield, for each model and length, how much worse than bilingual it is (`delta`, nats a token).

    Twelve times the steps of a bilingual model cost what all twelve cost, and read a language as often.

    Args:
        rows: The study's runs, of `read_runs`.
        longer: Those of some of its models, trained for several lengths.
        batches: Bilingual models of as many tokens in twelve times as many steps.
    """
    alone = values_by_language(rows)[BILINGUAL]
    brief = rows[rows["name"].isin(longer["name"])]
    models = pd.concat([brief, longer, batches.assign(name=UPDATED)])
    for (name, step), some in models.groupby(["name", "step"]):
        losses = values_by_language(some)[name]
        worse = (losses - alone).reindex(alone.index)
        half = len(worse) // 2
        yield {
            "model": name, "steps": step, "flops": float(some["flops"].median()), "mean": losses.mean(),
            "delta": worse.mean(), "delta_interval": interval_of_mean(worse),
            "delta_by_seed": [float((values_by_language(of_seed)[name] - alone).mean())
                              for _, of_seed in some.groupby("seed")],
            "better_in": int((worse < 0).sum()), HALVES[0]: worse.iloc[:half].mean(),
            HALVES[1]: worse.iloc[half:].mean(), "by language": worse.to_dict(),
        }  # fmt: skip

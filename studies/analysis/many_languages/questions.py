"""Who gains from one model after equal steps, and at equal cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from benchmarks.measurement import Figures
from studies.analysis.intervals import half_of_a_run
from studies.analysis.many_languages.models import BILINGUAL, UPDATED, interval_of_mean, values_by_language

CONTRASTS = (
    *((name, UPDATED) for name in ("dense, T = 1", "moe16, T = 1", "dense, T = 5", "moe16, T = 5")),
    *((f"moe{count}, T = 1", "dense, T = 1") for count in (4, 16, 64)),
    ("moe16, T = 5", "dense, T = 5"),
    ("dense-deep, T = 1", "dense, T = 1"),
    ("moe16-deep, T = 1", "moe16, T = 1"),
    *((f"{name}, T = 5", f"{name}, T = 1") for name in ("dense", "moe4", "moe16", "moe64")),
)
"""Models of one length that differ in one thing."""

UNRELATED = ("en-fi", "en-tr")
"""The least text, and no relative among the twelve; Japanese and Chinese have none either."""


def contrasts(rows: pd.DataFrame, pairs: Iterable[tuple[str, str]] = CONTRASTS) -> Iterator[Figures]:
    """Yield the mean difference of two models over the languages, with its interval over languages.

    `by_seed` has the mean difference of the models of each seed, and `half_over_seeds` half of the interval
    over seeds, by the spread of such means pooled over all models.

    Args:
        rows: Runs of one length.
        pairs: Names of a model and of the one that it is compared with.
    """
    table = values_by_language(rows)
    by_seed = [values_by_language(part) for _, part in rows.groupby("seed")]
    half = half_of_a_run(rows.groupby(["name", "seed"])["value"].mean().groupby("name"))
    for name, other in pairs:
        if {name, other} <= set(table.columns):
            less = table[name] - table[other]
            yield {
                "steps": int(rows["step"].max()), "model": name, "other": other,
                "difference": float(less.mean()), "interval": interval_of_mean(less),
                "better_in": int((less < 0).sum()),
                "by_seed": [float((of_seed[name] - of_seed[other]).mean()) for of_seed in by_seed],
                "half_over_seeds": float(half * np.sqrt(2 / len(by_seed))),
            }  # fmt: skip


def gains_by_text(gains: pd.DataFrame) -> Iterator[Figures]:
    """Yield for each model what twice as much text of a language adds to its gain, in nats, and Spearman's ρ.

    The interval draws languages with replacement, the same ones for every model. At T = 1 a language is read
    in proportion to its text and at T = 5 to its fifth root, so a line through both slopes tells that of
    languages read alike. `others` is the slope without `UNRELATED`.
    """
    slopes = {}
    for name, some in gains.groupby("name"):
        text, gain = np.log2(some["share"].to_numpy(float)), some["value"].to_numpy(float)
        slopes[name] = _slopes(text, gain)
        others = ~some["task"].isin(UNRELATED).to_numpy()
        yield _slope(name, slopes[name]) | {
            "rank_correlation": float(spearmanr(text, gain).statistic),
            "others": float(_slopes(text[others], gain[others], draws=0)[0]),
        }
    for kind in ("dense", "moe16"):
        uneven, even = (slopes[f"{kind}, T = {heat}"] for heat in (1, 5))
        yield _slope(f"{kind}, read alike", even - (uneven - even) / 4)


def _slopes(x: np.ndarray, y: np.ndarray, draws: int = 2000) -> np.ndarray:
    """Return the least-squares slope, and after it those of samples with replacement."""
    samples = np.random.default_rng(0).integers(len(x), size=(draws, len(x)))
    return np.array([np.polyfit(x[rows], y[rows], 1)[0] for rows in (np.arange(len(x)), *samples)])


def _slope(model: str, slopes: np.ndarray) -> Figures:
    ends = [float(end) for end in np.quantile(slopes[1:], [0.025, 0.975])]
    return {"model": model, "per_doubling": float(slopes[0]), "interval": ends}


def by_length(rows: pd.DataFrame, longer: pd.DataFrame, batches: pd.DataFrame) -> Iterator[Figures]:
    """Yield, for each model and length, how much worse than bilingual it is (`delta`, nats a token).

    Twelve times the steps of a bilingual model cost what all twelve cost, and read a language as often.
    `flops` is the cost of a seed, of twelve models together where they are bilingual.

    Args:
        rows: The study's runs, of `read_runs`.
        longer: Those of some of its models, trained for several lengths.
        batches: Bilingual models of as many tokens in twelve times as many steps.
    """
    alone = values_by_language(rows)[BILINGUAL]
    models = pd.concat([rows, longer, batches.assign(name=UPDATED)])
    for (name, step), some in models.groupby(["name", "step"]):
        losses = values_by_language(some)[name]
        worse = (losses - alone).reindex(alone.index)
        cost = some.drop_duplicates("run").groupby("seed")["flops"].sum().mean()
        seeds = [values_by_language(of_seed)[name].mean() for _, of_seed in some.groupby("seed")]
        yield {
            "model": name, "steps": step, "parameters": float(some["size"].median()),
            "flops": float(cost), "mean": losses.mean(), "by_seed": seeds,
            "delta": worse.mean(), "delta_interval": interval_of_mean(worse),
            "better_in": int((worse < 0).sum()),
        }  # fmt: skip

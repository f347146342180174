"""What a task lacks that is read as often as alone; plateaus of losses."""

from __future__ import annotations

import tomllib
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_data.synthetic.contexts import ContextsConfig, contexts_of, test_sources
from studies.analysis.splitting.rates import read_rates
from studies.analysis.splitting.tables import log_means, seeds_drawn_again

STUDY = "studies/splitting.toml"
LONG = "rates"
"""The table of the smallest size for 32,000 steps."""


def equal_exposure(rows: pd.DataFrame, *, draws: int) -> pd.DataFrame:
    """Return by weight and length how many times the loss of a task alone, read as often, a shared task's is.

    A run at weight p and T steps is compared with runs at weight 1 and p T steps of the same size: reducible
    losses, those alone between their lengths on log axes. 1 would be exposure alone. Geometric means over
    sizes; 95% intervals over seeds.
    """
    rng, gaps = np.random.default_rng(0), mean_gaps(rows)
    others = pd.DataFrame([mean_gaps(seeds_drawn_again(rows, rng)) for _ in range(draws)])
    low, high = (np.exp(others[gaps.index].quantile(end)) for end in (0.025, 0.975))
    return pd.DataFrame({"ratio": np.exp(gaps), "lower": low, "upper": high}).reset_index()


def mean_gaps(rows: pd.DataFrame) -> pd.Series:
    """Return the mean log ratio by task, weight and step."""
    means = log_means(rows).rename("log").reset_index()
    cells = [cell for _, cell in means.groupby(["task", "size"]) if cell["weight"].eq(1).any()]
    gaps = pd.concat([_gaps(cell) for cell in cells])
    return gaps.groupby(["task", "weight", "step"])["gap"].mean()


def _gaps(cell: pd.DataFrame) -> pd.DataFrame:
    """Return the shared tasks whose own steps lie between the lengths of those alone, with their `gap`."""
    alone, shared = cell[cell["weight"] == 1].sort_values("step"), cell[cell["weight"] < 1]
    steps = shared["weight"] * shared["step"]
    others = np.interp(np.log(steps), np.log(alone["step"]), alone["log"])
    is_between = steps.between(0.9999 * alone["step"].min(), alone["step"].max())
    return shared.assign(gap=shared["log"] - others)[is_between]


def plateaus() -> list[Figures]:
    """Return the reducible loss of the best model that sees some of the source words, in nats per token.

    Of target word i with the source words w it is the mean of -ln E[p(y|context) | w] less the entropy,
    over the contexts of the test set; m/(m + 1) of it, since `</s>` costs nothing.
    """
    table = tomllib.loads(Path(STUDY).read_text(encoding="utf-8"))["data"]["synthetic"]
    config = ContextsConfig(**table | {"languages": tuple(table["languages"])})
    contexts = contexts_of(test_sources(config), config).ravel()
    share = config.target_words / (config.target_words + 1)
    rows = []
    for task in config.tasks:
        odds = config.teacher.probabilities(task.partition("-")[2])
        cube = odds.reshape(*[config.words] * config.context, config.words)
        positions = range(config.context)
        for words in chain.from_iterable(combinations(positions, count) for count in positions):
            others = tuple(axis for axis in range(config.context) if axis not in words)
            best = np.broadcast_to(cube.mean(axis=others, keepdims=True), cube.shape).reshape(odds.shape)
            loss = (odds * np.log(odds / best))[contexts].sum(axis=1).mean()
            rows.append({
                "task": task, "words": [word + 1 for word in words], "reducible": float(share * loss)
            })  # fmt: skip
    return rows


def longer(*, draws: int) -> pd.DataFrame:
    """Return `equal_exposure` of the smallest size at smaller rates, trained for up to 32,000 steps."""
    rows = read_rates(LONG)
    parts = [equal_exposure(some, draws=draws).assign(rate=rate) for rate, some in rows.groupby("rate")]
    return pd.concat(parts)

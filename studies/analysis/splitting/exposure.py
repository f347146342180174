"""Storage or exposure: does a task of small weight lack room in the model, or has it been read too little?"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd

from mnmt_data.synthetic.context_sources import contexts_of, test_sources
from mnmt_data.synthetic.contexts import ContextsConfig
from studies.analysis.splitting.seeds import pooled_spread
from studies.analysis.splitting.tables import read

STUDY = "studies/splitting.toml"
BROKEN = 3.0
"""Standard deviations over seeds by which a longer training must end worse to count as broken."""


def equal_exposure(rows: pd.DataFrame, *, draws: int) -> Iterator[dict[str, object]]:
    """Yield by weight and length how many times the loss of a task alone, read as often, a shared task's is.

    A run at weight p and T steps is compared with runs at weight 1 and p T steps of the same size: reducible
    losses, those alone between their lengths on log axes. 1 would be exposure alone. Geometric means over
    the sizes that have all lengths; 95% intervals over seeds.
    """
    rows = rows[rows["size"].isin(rows[rows["step"] == rows["step"].max()]["size"])]
    rng = np.random.default_rng(0)
    gaps = gaps_at_equal_exposure(rows)
    others = pd.DataFrame([gaps_at_equal_exposure(resampled(rows, rng)) for _ in range(draws)])
    ends = np.exp(others[gaps.index].quantile([0.025, 0.975]))
    for (task, weight, step), gap in gaps.items():
        low, high = ends[(task, weight, step)]
        yield {
            "task": task, "weight": weight, "step": step, "ratio": float(np.exp(gap)),
            "lower": float(low), "upper": float(high),
        }  # fmt: skip


def gaps_at_equal_exposure(rows: pd.DataFrame) -> pd.Series:
    """Return the mean log ratio by task, weight and step."""
    logs = np.log(rows["reducible"]).groupby([rows[name] for name in ("task", "size", "weight", "step")])
    means = logs.mean().reset_index()
    gaps = [
        gap
        for _, cell in means.groupby(["task", "size"])
        for gap in gaps_of_cell(cell[cell["weight"] < 1], cell[cell["weight"] == 1])
    ]
    columns = ["task", "weight", "step"]
    return pd.DataFrame(gaps, columns=[*columns, "gap"]).groupby(columns)["gap"].mean()


def gaps_of_cell(shared: pd.DataFrame, alone: pd.DataFrame) -> Iterator[tuple[str, float, int, float]]:
    """Yield the gap of each shared run whose own steps lie between the lengths of those alone."""
    alone = alone.sort_values("step")
    low, high = alone["step"].min(), alone["step"].max()
    for run in shared.itertuples():
        steps = run.weight * run.step
        if low <= 1.0001 * steps and steps <= high:
            other = np.interp(np.log(steps), np.log(alone["step"]), alone["reducible"])
            yield run.task, run.weight, run.step, float(run.reducible - other)


def resampled(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows with seeds drawn again in every cell."""
    cells = rows.groupby(["task", "size", "weight", "step"], sort=False).indices
    return rows.iloc[np.concatenate([rng.choice(cell, len(cell)) for cell in cells.values()])]


def longer(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield every run of the longest training beside the mean of the same model at 8,000 steps.

    `ratio` is its reducible loss over that mean; `broken` says that it is greater by more than `BROKEN`
    standard deviations over seeds: then training failed, and says nothing of size or exposure.
    """
    size, last = read("long")["size"].iloc[0], rows["step"].max()
    before = rows[rows["size"].eq(size) & rows["step"].eq(last)]
    means = np.exp(np.log(before["reducible"]).groupby([before["task"], before["weight"]]).mean())
    limit = float(np.exp(BROKEN * pooled_spread(before)))
    for run in read("long").itertuples():
        mean = means.get((run.task, run.weight))
        if mean is not None:
            yield {
                "task": run.task, "weight": run.weight, "seed": run.seed, "steps": run.step,
                "reducible": run.reducible, "at 8,000": float(mean), "ratio": run.reducible / float(mean),
                "broken": bool(run.reducible / float(mean) > limit),
            }  # fmt: skip


def plateaus() -> list[dict[str, object]]:
    """Return the reducible loss of the best model that sees some of the source words, in nats per token.

    Of target word i with the source words w it is the mean of -ln E[p(y|context) | w] less the entropy,
    over the contexts of the test set; m/(m + 1) of it, since `</s>` costs nothing.
    """
    config = config_of(STUDY)
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
            positions_read = [word + 1 for word in words]
            rows.append({"task": task, "words": positions_read, "reducible": float(share * loss)})
    return rows


def config_of(study: str) -> ContextsConfig:
    """Return the languages of a study file."""
    table = tomllib.loads(Path(study).read_text(encoding="utf-8"))["data"]["synthetic"]
    return ContextsConfig(**table | {"languages": tuple(table["languages"])})

"""What a task lacks when it is read as often as alone, at the usual and at other rates."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd

from mnmt_data.synthetic.contexts import ContextsConfig, contexts_of, test_sources
from studies.analysis.splitting.fractions import pooled_spread
from studies.analysis.splitting.tables import FOLDER, read

STUDY = "studies/splitting.toml"
BROKEN = 3.0
"""Standard deviations over seeds by which a longer training must end worse to count as broken."""


def equal_exposure(rows: pd.DataFrame, *, draws: int) -> pd.DataFrame:
    """Return by weight and length how many times the loss of a task alone, read as often, a shared task's is.

    A run at weight p and T steps is compared with runs at weight 1 and p T steps of the same size: reducible
    losses, those alone between their lengths on log axes. 1 would be exposure alone. Geometric means over
    the sizes that have all lengths; 95% intervals over seeds.
    """
    rows = rows[rows["size"].isin(rows[rows["step"] == rows["step"].max()]["size"])]
    rng = np.random.default_rng(0)
    gaps = gaps_at_equal_exposure(rows)
    others = pd.DataFrame([gaps_at_equal_exposure(resampled(rows, rng)) for _ in range(draws)])
    low, high = (np.exp(others[gaps.index].quantile(end)) for end in (0.025, 0.975))
    return pd.DataFrame({"ratio": np.exp(gaps), "lower": low, "upper": high}).reset_index()


def gaps_at_equal_exposure(rows: pd.DataFrame) -> pd.Series:
    """Return the mean log ratio by task, weight and step."""
    logs = np.log(rows["reducible"]).groupby([rows[name] for name in ("task", "size", "weight", "step")])
    means = logs.mean().reset_index()
    gaps = pd.concat([gaps_of_cell(cell) for _, cell in means.groupby(["task", "size"])])
    return gaps.groupby(["task", "weight", "step"])["gap"].mean()


def gaps_of_cell(cell: pd.DataFrame) -> pd.DataFrame:
    """Return the shared tasks whose own steps lie between the lengths of those alone, with their `gap`."""
    alone, shared = cell[cell["weight"] == 1].sort_values("step"), cell[cell["weight"] < 1]
    steps = shared["weight"] * shared["step"]
    others = np.interp(np.log(steps), np.log(alone["step"]), alone["reducible"])
    is_between = steps.between(0.9999 * alone["step"].min(), alone["step"].max())
    return shared.assign(gap=shared["reducible"] - others)[is_between]


def resampled(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows with seeds drawn again in every cell."""
    cells = rows.groupby(["task", "size", "weight", "step"], sort=False).indices
    return rows.iloc[np.concatenate([rng.choice(cell, len(cell)) for cell in cells.values()])]


def longer(rows: pd.DataFrame) -> pd.DataFrame:
    """Return every run of the longest training beside the mean of the same model at 8,000 steps.

    `ratio` is its reducible loss over that mean; `broken` says that it is greater by more than `BROKEN`
    standard deviations over seeds: then training failed, and says nothing of size or exposure.
    """
    runs = read("long").rename(columns={"step": "steps"})
    before = rows[rows["size"].isin(runs["size"]) & rows["step"].eq(rows["step"].max())]
    logs = np.log(before["reducible"]).groupby([before["task"], before["weight"]])
    runs = runs.merge(np.exp(logs.mean()).rename("at 8,000").reset_index(), on=["task", "weight"])
    runs["ratio"] = runs["reducible"] / runs["at 8,000"]
    runs["broken"] = runs["ratio"] > np.exp(BROKEN * pooled_spread(before))
    columns = ["task", "weight", "seed", "steps", "reducible", "at 8,000", "ratio", "broken"]
    return runs[columns]


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


USUAL_RATE = 0.05
"""The rate of all other tables."""

_RUN = r"-rate-(?P<rate>\d+)_"


def read_rates(name: str) -> pd.DataFrame:
    """Return the losses of a table whose runs' names tell their rate (`d8-rate-0125`), with `rate`."""
    if not (FOLDER / f"{name}.csv").exists():
        return pd.DataFrame()
    rows = read(name)
    return rows.assign(rate=("0." + rows["run"].str.extract(_RUN)["rate"]).astype(float))


def tuned(name: str = "tuning") -> Iterator[dict[str, object]]:
    """Yield for each size, length and task the best rate, and what the usual rate loses against it.

    `by rate` holds the geometric means over seeds of the reducible loss, and `lost` the factor by which that
    at the usual rate is above the least.
    """
    rows = read_rates(name)
    if rows.empty:
        return
    for key, cell in rows.groupby(["size", "step", "task", "weight"]):
        means = np.exp(np.log(cell["reducible"]).groupby(cell["rate"]).mean())
        yield {
            **dict(zip(("size", "step", "task", "weight"), key, strict=True)),
            "by rate": {f"{rate:g}": float(value) for rate, value in means.items()},
            "best rate": float(means.idxmin()), "lost": float(means[USUAL_RATE] / means.min()),
        }  # fmt: skip


def gaps(name: str = "tuning", *, task: str = "xx-aa") -> Iterator[dict[str, object]]:
    """Yield how many times a task's loss alone it has when shared, at the usual rate and at the best of each.

    Both are ratios of geometric means over seeds; the best rate is chosen for each weight by itself.
    """
    cells = pd.DataFrame(tuned(name))
    if cells.empty:
        return
    for (size, step), some in cells[cells["task"].eq(task)].groupby(["size", "step"]):
        losses = {row["weight"]: row["by rate"] for row in some.to_dict("records")}
        alone = losses.pop(1.0)
        for weight, shared in losses.items():
            usual = f"{USUAL_RATE:g}"
            yield {
                "size": size, "step": step, "task": task, "weight": weight,
                "usual": shared[usual] / alone[usual],
                "tuned": min(shared.values()) / min(alone.values()),
            }  # fmt: skip


def long_rates() -> pd.DataFrame:
    """Return every long run at a smaller rate, with its reducible loss."""
    rows = read_rates("rates")
    if rows.empty:
        return rows
    columns = ["task", "weight", "rate", "step", "seed", "reducible"]
    return rows.sort_values(columns)[columns]

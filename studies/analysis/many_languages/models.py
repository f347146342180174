"""The run table: losses by model, temperature and language."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from studies.page import PAGES

FOLDER = PAGES / "many-languages"

TABLE, LONGER, SMALL_BATCHES, EXPERTS = "runs.csv", "longer.csv", "small-batches.csv", "experts.csv"

MODELS = ("dense", "dense-deep", "moe4", "moe16", "moe64", "moe16-deep")

BILINGUAL = "bilingual"

LANGUAGES = {
    "en-cs": "Czech", "en-de": "German", "en-es": "Spanish", "en-fi": "Finnish", "en-fr": "French",
    "en-it": "Italian", "en-ja": "Japanese", "en-pl": "Polish", "en-ru": "Russian", "en-tr": "Turkish",
    "en-uk": "Ukrainian", "en-zh": "Chinese",
}  # fmt: skip


def read_runs(file: Path) -> pd.DataFrame:
    """Return what the runs reached on the test sets, a row for each run, task and metric.

    Returns:
        The table's columns, `model` (a size's name, or `bilingual`), `temperature` (0 for one language),
        `share` (the language's share of the text), and `name` (model and temperature).
    """
    rows = pd.read_csv(file)
    rows = rows[rows["testset"].eq("test") & rows["weight"].gt(0)].copy()
    rows = rows[rows["step"].eq(rows.groupby("run")["step"].transform("max"))]
    rows["temperature"] = rows["mixture"].map(_temperatures(rows))
    alone = rows["temperature"].eq(0)
    rows["model"] = rows["run"].str.partition("_")[0].mask(alone, BILINGUAL)
    rows["name"] = rows["model"].mask(~alone, rows["model"] + ", T = " + rows["temperature"].astype(str))
    text = rows[rows["temperature"].eq(1)].drop_duplicates("task").set_index("task")["weight"]
    return rows.assign(share=rows["task"].map(text))


def _temperatures(rows: pd.DataFrame) -> dict[str, int]:
    """Return 0 for a mixture of one language, 1 for the one as uneven as the text, and 5 for the other."""
    spread = rows.groupby("mixture")["weight"].max()
    spread = spread[spread < 1].sort_values(ascending=False)
    return dict.fromkeys(rows["mixture"], 0) | dict(zip(spread.index, (1, 5), strict=False))


def values_by_language(rows: pd.DataFrame, metric: str = "loss") -> pd.DataFrame:
    """Return a row for each language, most text first, and a column for each model."""
    table = rows[rows["metric"].eq(metric)].pivot_table(index="task", columns="name", values="value")
    order = rows.drop_duplicates("task").set_index("task")["share"].sort_values(ascending=False).index
    return table.reindex([task for task in order if task in table.index])


def gains(rows: pd.DataFrame, metric: str = "loss") -> pd.DataFrame:
    """Return how much better each model of all languages is than the language's own: positive is better."""
    table = values_by_language(rows, metric)
    sign = -1 if metric == "loss" else 1
    better: pd.DataFrame = sign * table.drop(columns=BILINGUAL).sub(table[BILINGUAL], axis=0)
    return better


def costs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return parameters, FLOPs of training and steps of each model."""
    return rows.groupby("name")[["size", "flops", "step"]].median()


def interval_of_mean(values: pd.Series, *, seed: int = 0, draws: int = 2000) -> list[float]:
    """Return the 95% interval of a mean over languages, languages drawn with replacement."""
    rng, numbers = np.random.default_rng(seed), values.dropna().to_numpy(float)
    means = numbers[rng.integers(len(numbers), size=(draws, len(numbers)))].mean(axis=1)
    return [float(end) for end in np.quantile(means, [0.025, 0.975])]

"""The run tables: losses by model, temperature and language."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from studies.analysis.intervals import half_interval
from studies.page import PAGES

FOLDER = PAGES / "many-languages"

BILINGUAL = "bilingual"
UPDATED = "bilingual, a twelfth of the batch"
OWN = "bilingual, own vocabularies"

LANGUAGES = {
    "en-cs": "Czech", "en-de": "German", "en-es": "Spanish", "en-fi": "Finnish", "en-fr": "French",
    "en-it": "Italian", "en-ja": "Japanese", "en-pl": "Polish", "en-ru": "Russian", "en-tr": "Turkish",
    "en-uk": "Ukrainian", "en-zh": "Chinese",
}  # fmt: skip


def read_runs(file: Path, testset: str = "test") -> pd.DataFrame:
    """Return the losses of the runs, a row for each run and task.

    Returns:
        The table's columns, `model` (a size's name, or `bilingual`), `temperature` (0 for one language),
        `share` (the language's share of the text), and `name` (model and temperature).
    """
    rows = pd.read_csv(file)
    rows = rows[rows["metric"].eq("loss") & rows["testset"].eq(testset) & rows["weight"].gt(0)].copy()
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


def longest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that were trained longest."""
    return rows[rows["step"].eq(rows["step"].max())]


def values_by_language(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each language, most text first, and a column for each model: means over seeds."""
    table = rows.pivot_table(index="task", columns="name", values="value")
    order = rows.drop_duplicates("task").set_index("task")["share"].sort_values(ascending=False).index
    return table.reindex([task for task in order if task in table.index])


def gains(rows: pd.DataFrame, alone: pd.DataFrame) -> pd.DataFrame:
    """Return by how much each model of all languages is better than a language's own, a row each.

    Columns: `name`, `task`, `value` (nats a token, positive is better), `lower` and `upper` (95%, Student's,
    from the spread over seeds pooled over the languages), and `share`.

    Args:
        rows: Runs of one length.
        alone: Runs of a model for each language.
    """
    single, single_error = _mean_and_error(alone)
    parts = []
    for name, some in rows.groupby("name"):
        mean, error = _mean_and_error(some)
        half = half_interval(error + single_error, len(mean))
        gain = (single - mean).dropna()
        parts.append(pd.DataFrame({"value": gain, "lower": gain - half, "upper": gain + half, "name": name}))
    share = rows.drop_duplicates("task").set_index("task")["share"]
    table = pd.concat(parts).rename_axis("task").reset_index()
    return table.assign(share=table["task"].map(share))


def _mean_and_error(rows: pd.DataFrame) -> tuple[pd.Series, float]:
    """Return means over seeds by language, and the squared error of such a mean."""
    table = rows.pivot_table(index="task", columns="seed", values="value")
    return table.mean(axis=1), float(table.var(axis=1).mean()) / table.shape[1]


def interval_of_mean(values: pd.Series) -> list[float]:
    """Return the 95% interval of a mean over languages, languages drawn with replacement."""
    rng, numbers = np.random.default_rng(0), values.dropna().to_numpy(float)
    means = numbers[rng.integers(len(numbers), size=(2000, len(numbers)))].mean(axis=1)
    return [float(end) for end in np.quantile(means, [0.025, 0.975])]

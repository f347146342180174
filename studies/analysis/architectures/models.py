"""Losses of the nine models of Zhang et al. 2022, by width, learning rate and length of the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd
from scipy.stats import spearmanr

from benchmarks.measurement import Figures
from studies.analysis.intervals import half_interval
from studies.analysis.rates import rates_of

ENCDEC = "EncDec"
MODELS = {
    "encdec": ENCDEC,
    "prefix-deep": "PrefixLM Deep", "prefix-wide": "PrefixLM Wide",
    "prefix-toponly-deep": "PrefixLM TopOnly Deep", "prefix-toponly-wide": "PrefixLM TopOnly Wide",
    "causal-deep": "CausalLM Deep", "causal-wide": "CausalLM Wide",
    "causal-tgtonly-deep": "CausalLM TgtOnly Deep", "causal-tgtonly-wide": "CausalLM TgtOnly Wide",
}  # fmt: skip
"""The paper's name of each model of the study file."""

ARCHITECTURES = (ENCDEC, "PrefixLM", "PrefixLM TopOnly", "CausalLM", "CausalLM TgtOnly")

SUPERVISED, ZERO_SHOT = "supervised", "zero-shot"
ORIGINS = {"source-original": ("en-de", "en-fr"), "target-original": ("de-en", "fr-en")}
"""All text was written in English, so origin and direction are one here."""
GROUPS = {
    SUPERVISED: ("en-de", "en-fr", "de-en", "fr-en", "xx-aa", "cc-aa", "xx-bb", "cc-bb"),
    ZERO_SHOT: ("de-fr", "fr-de", "aa-bb", "bb-aa"),
    "English-German": ("en-de", "de-en"), "English-French": ("en-fr", "fr-en"), **ORIGINS,
}  # fmt: skip
"""Groups of tasks whose mean is read; of synthetic languages, the trained directions into aa and bb."""

BRIEF, LONG = "600 steps", "2,400 steps"
NINE, LAYERS, SYNTHETIC = "nine models", "d 32, over layers", "synthetic languages"
"""Settings of models: the first two are of five models."""

USUAL = 0.05
"""The learning rate of all models but those of layers."""

PARTS = {"1/8 short": "shortest eighth", "4/8 medium": "fourth eighth", "8/8 long": "longest eighth"}
"""The paper's short, medium and long, of a test set in eight parts by source length."""

_RUN = r"^(?P<label>[a-z-]+)-[dl](?P<width>\d+)[-_]"


def settings(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the losses of each seed by setting: lengths, origins, layers, and synthetic languages.

    Args:
        tables: {name: run table}.
    """
    tuned = tables["tuned"]
    both = {LONG: by_seed(tuned), BRIEF: by_seed(tuned[tuned["step"].le(600)])}
    untrained = {**both, SYNTHETIC: by_seed(tables["zero-shot"])}
    lengths = {part: by_seed(tables["lengths"], testset=group) for group, part in PARTS.items()}
    trained = {NINE: by_seed(tables["runs"]), **lengths, LAYERS: by_seed(tables["layers"])}
    return {
        **{name: of_task(losses, SUPERVISED) for name, losses in {**untrained, **trained}.items()},
        **{f"{origin}, {LONG}": of_task(both[LONG], origin) for origin in ORIGINS},
        **{f"{ZERO_SHOT}, {name}": of_task(losses, ZERO_SHOT) for name, losses in untrained.items()},
    }


def over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return values as means over seeds.

    Columns: `model`, `width`, `size` (N, parameters), `task` (of `GROUPS`), `value` and, if there, `flops`
    (both means), and the value's 95% interval, `lower` and `upper`: Student's, from the spread over seeds,
    pooled over the models of a width: `variance` of such a mean, with `freedom`.
    """
    cells = rows.groupby(["model", "width", "size", "task"])  # seeds differ a little in FLOPs
    table = cells.mean().drop(columns="seed").assign(variance=cells["value"].var()).reset_index()
    count, cells = rows["seed"].nunique(), table.groupby(["task", "width"])["variance"]
    return with_interval(table.assign(
        variance=cells.transform("mean") / count, freedom=cells.transform("count") * (count - 1)
    ))  # fmt: skip


def with_interval(rows: pd.DataFrame) -> pd.DataFrame:
    """Add `lower` and `upper`, Student's 95% interval by `variance` and `freedom`."""
    half = half_interval(rows["variance"], rows["freedom"])
    return rows.assign(lower=rows["value"] - half, upper=rows["value"] + half)


def change(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return each seed's values of one table minus those of another, as `over_seeds` does."""
    keys = ["model", "width", "size", "task", "seed"]
    values = (rows.set_index(keys)["value"] for rows in (after, before))
    return over_seeds(next(values).sub(next(values)).dropna().reset_index())


def by_seed(rows: pd.DataFrame, *, testset: str = "test", metric: str = "loss") -> pd.DataFrame:
    """Return the last values of every model, width and seed, as means over groups of tasks."""
    rows = name_models(rows[rows["metric"].eq(metric) & rows["testset"].eq(testset)])
    rows = rows.sort_values("step").groupby(["model", "width", "task", "seed"], as_index=False).last()
    keys = ["model", "width", "seed", "size", "flops"]
    means = {
        name: rows[rows["task"].isin(tasks)].groupby(keys)["value"].mean() for name, tasks in GROUPS.items()
    }
    return pd.concat(means, names=["task"]).reset_index()


def name_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the model and the width that a run's name tells."""
    names = rows["run"].str.extract(_RUN)
    return rows.assign(model=names["label"].map(MODELS), width=names["width"].astype(int))


def correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each architecture Pearson's r of loss and scores over shapes, sizes and seeds."""
    keys = ["model", "width", "seed", "task"]
    values = {name: by_seed(rows, metric=name).set_index(keys)["value"] for name in ("loss", "bleu", "chrf")}
    table = pd.DataFrame(values).xs(SUPERVISED, level="task").reset_index("model")
    table["model"] = architecture_of(table["model"])
    return table.groupby("model").corr()["loss"].unstack()[["bleu", "chrf"]].reset_index()


def architecture_of(models: pd.Series) -> pd.Series:
    """Return the architecture of each model, which leaves Deep and Wide out."""
    return models.str.replace(" (Deep|Wide)$", "", regex=True)


def compare_rates(*tables: pd.DataFrame) -> pd.DataFrame:
    """Return the last mean loss over trained tasks of each model and width, in a column for each rate.

    Args:
        tables: Run tables of one length; a run whose name tells no rate has `USUAL`.
    """
    rows = pd.concat(tables)
    rows = rows[rows["metric"].eq("loss") & rows["testset"].eq("test") & rows["weight"].gt(0)]
    rates = rates_of(rows["run"]).fillna(USUAL).rename("rate")
    losses = name_models(rows).pivot_table("value", ["width", "model"], rates)
    return losses.rename(columns=str).reset_index()


def of_task(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the rows of one of `GROUPS`."""
    return rows[rows["task"].eq(task)]


def rankings(losses: Mapping[str, pd.DataFrame]) -> Iterator[Figures]:
    """Yield the order of the models by mean loss over their common widths.

    `correlation` is Spearman's with the first setting of the same models, `seeds` that of one seed and the
    other: how much of an order is chance.

    Args:
        losses: The table of `settings`.
    """
    firsts: dict[frozenset[str], pd.Series] = {}
    for name, rows in losses.items():
        table = rows.pivot_table(index=["seed", "width"], columns="model", values="value").dropna()
        mean, seeds = table.mean(), table.groupby("seed").mean()
        first = firsts.setdefault(frozenset(mean.index), mean)
        yield {
            "setting": name,
            "correlation": float(spearmanr(mean, first).statistic),
            "seeds": float(spearmanr(*seeds.to_numpy()).statistic),
            "order": [*mean.sort_values().index],
        }

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
GERMAN, FRENCH = "English-German", "English-French"
ORIGINS = {"source-original": ("en-de", "en-fr"), "target-original": ("de-en", "fr-en")}
"""All text was written in English, so origin and direction are one here."""
GROUPS = {
    SUPERVISED: ("en-de", "en-fr", "de-en", "fr-en"), ZERO_SHOT: ("de-fr", "fr-de"),
    GERMAN: ("en-de", "de-en"), FRENCH: ("en-fr", "fr-en"),
    "English to German": ("en-de",), "English to French": ("en-fr",), **ORIGINS,
}  # fmt: skip
"""Groups of tasks whose mean is read."""

ALL, LAYERS = "all sentences, rate .05", "d 32, over layers"
"""Settings of models."""

PARTS = {"1/8 short": "shortest eighth", "4/8 medium": "fourth eighth", "8/8 long": "longest eighth"}
"""The paper's short, medium and long, of a test set in eight parts by source length."""

_RUN = r"^(?P<label>[a-z-]+)-[dl](?P<width>\d+)[-_]"


def read_losses(rows: pd.DataFrame, *, testset: str = "test", metric: str = "loss") -> pd.DataFrame:
    """Return the last losses, or other values, as means over seeds and groups of tasks.

    Columns: `model`, `width`, `size` (N, parameters), `flops` (of training), `task` (of `GROUPS`), `value`
    (nats per token, like FLOPs the mean over seeds), and its 95% interval, `lower` and `upper`: Student's,
    from the spread over seeds, pooled over the models of a width: `variance` of such a mean, with `freedom`.
    """
    rows = by_seed(rows, testset=testset, metric=metric)
    cells = rows.groupby(["model", "width", "size", "task"])  # seeds differ a little in FLOPs
    table = cells.agg(
        flops=("flops", "mean"), value=("value", "mean"), variance=("value", "var")
    ).reset_index()
    count, cells = rows["seed"].nunique(), table.groupby(["task", "width"])["variance"]
    table = table.assign(
        variance=cells.transform("mean") / count, freedom=cells.transform("count") * (count - 1)
    )
    half = half_interval(table["variance"], table["freedom"])
    return table.assign(lower=table["value"] - half, upper=table["value"] + half)


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


def compare_lengths(rows: pd.DataFrame, longer: pd.DataFrame) -> pd.DataFrame:
    """Return the loss of some models after both lengths, and how far it is above the encoder-decoder's.

    Args:
        rows: The study's run table.
        longer: A run table of some of its models, trained for longer; only its seeds are compared.
    """
    parts = {}
    for table in (rows[rows["seed"].isin(longer["seed"])], longer):
        losses = by_seed(table).set_index(["task", "width", "model"])["value"].unstack("model")
        parts[f"{table['step'].max()} steps"] = losses
        parts[f"gap, {table['step'].max()} steps"] = losses.sub(losses[ENCDEC], axis=0)
    both = pd.concat({name: losses.stack() for name, losses in parts.items()}, axis=1).dropna().reset_index()
    return both[both["task"].isin((SUPERVISED, ZERO_SHOT))]


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


def compare_rates(rows: pd.DataFrame, usual: float = 0.05) -> pd.DataFrame:
    """Return the mean loss over trained tasks of each model at each rate, and gaps to the encoder-decoder.

    Columns: `model`, one for each rate, `best` (the rate), `gap` (to the encoder-decoder, both at the usual
    rate, nats per token) and `tuned_gap` (each at its best).
    """
    rows = rows[rows["metric"].eq("loss") & rows["testset"].eq("test") & rows["weight"].gt(0)]
    rates = rates_of(rows["run"])
    losses = name_models(rows).pivot_table(index="model", columns=rates.rename("rate"), values="value")
    losses = losses.reindex([*MODELS.values()])
    best = losses.min(axis=1)
    return losses.assign(
        best=losses.idxmin(axis=1), gap=losses[usual] - losses[usual][ENCDEC], tuned_gap=best - best[ENCDEC]
    ).rename(columns=str).reset_index()  # fmt: skip


def settings(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return losses by setting: of all sentences, of one origin or length, and of layers.

    Args:
        tables: {name: run table}.
    """
    every = read_losses(tables["runs"])
    lengths = {part: read_losses(tables["lengths"], testset=group) for group, part in PARTS.items()}
    trained = {ALL: every, **lengths, LAYERS: read_losses(tables["layers"])}
    return {
        **{origin: of_task(every, origin) for origin in ORIGINS},
        **{name: of_task(losses, SUPERVISED) for name, losses in trained.items()},
        ZERO_SHOT: of_task(every, ZERO_SHOT),
    }


def of_task(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the rows of one of `GROUPS`."""
    return rows[rows["task"].eq(task)]


def rankings(losses: Mapping[str, pd.DataFrame], rows: pd.DataFrame) -> Iterator[Figures]:
    """Yield the order of the models by mean loss over widths, and its rank correlation with that of all.

    Args:
        losses: The table of `settings`.
        rows: The study's run table: its seeds tell how much of an order is chance.
    """
    seeds = of_task(by_seed(rows), SUPERVISED)
    first, second = (some.groupby("model")["value"].mean() for _, some in seeds.groupby("seed"))
    yield {"setting": "one seed and the other", "correlation": float(spearmanr(first, second).statistic)}
    means = {
        name: some.pivot(index="width", columns="model", values="value").dropna().mean()
        for name, some in losses.items()
    }
    for name, mean in means.items():
        correlation = float(spearmanr(mean, means[ALL][mean.index]).statistic)
        yield {"setting": name, "correlation": correlation, "order": [*mean.sort_values().index]}

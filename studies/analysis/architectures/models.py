"""Losses of the nine models of Zhang et al. 2022, by width, learning rate and length of the source."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from mnmt_eval.compare.groups import group_sentences
from mnmt_eval.runs.losses import sentence_losses
from mnmt_eval.runs.texts import run_text
from studies.analysis.architectures.laws import fit_architectures, parameters_of

ENCDEC = "EncDec"
MODELS = {
    "encdec": ENCDEC,
    "prefix-deep": "PrefixLM Deep", "prefix-wide": "PrefixLM Wide",
    "prefix-toponly-deep": "PrefixLM TopOnly Deep", "prefix-toponly-wide": "PrefixLM TopOnly Wide",
    "causal-deep": "CausalLM Deep", "causal-wide": "CausalLM Wide",
    "causal-tgtonly-deep": "CausalLM TgtOnly Deep", "causal-tgtonly-wide": "CausalLM TgtOnly Wide",
}  # fmt: skip
"""The paper's name of each model of the study file."""

SUPERVISED, ZERO_SHOT = "supervised", "zero-shot"
"""Means over the tasks that were trained on, and over those that were not."""

_RUN = r"^(?P<label>[a-z-]+)-d(?P<width>\d+)_"


def read_losses(table: Path, *, testset: str = "test", metric: str = "loss") -> pd.DataFrame:
    """Return the last losses of the widths at which every model was trained, and their means over tasks.

    Columns: `model`, `width`, `size` (N, parameters), `flops` (of training), `task`, `weight`, `value`
    (nats per token, as FLOPs the mean over seeds) and `spread` (its standard deviation over seeds).
    """
    rows = name_models(pd.read_csv(table))
    rows = rows[rows["metric"].eq(metric) & rows["testset"].eq(testset)]
    rows = rows.sort_values("step").groupby(["model", "width", "task", "seed"], as_index=False).last()
    rows = rows.groupby("width").filter(lambda some: some["model"].nunique() == len(MODELS))
    rows = pd.concat([rows, mean_over_tasks(rows)], ignore_index=True)
    cells = rows.groupby(["model", "width", "size", "task", "weight"])  # seeds differ a little in FLOPs
    return cells.agg(flops=("flops", "mean"), value=("value", "mean"), spread=("value", "std")).reset_index()


def name_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the model and the width that a run's name tells."""
    names = rows["run"].str.extract(_RUN)
    return rows.assign(model=names["label"].map(MODELS), width=names["width"].astype(int))


def mean_over_tasks(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each run and kind of task, with the mean over such tasks."""
    kind = rows["weight"].gt(0).map({True: SUPERVISED, False: ZERO_SHOT}).rename("task")
    keys = ["model", "width", "seed", "size", "flops", "weight", kind]
    return rows.groupby(keys)["value"].mean().reset_index()


def compare_lengths(rows: pd.DataFrame, longer: pd.DataFrame) -> pd.DataFrame:
    """Return the mean loss over trained tasks of some models after both lengths, a column a length.

    Args:
        rows: The study's run table.
        longer: A run table of some of its models, trained for longer; only its seeds are compared.
    """
    tables = [_supervised(table) for table in (rows[rows["seed"].isin(longer["seed"])], longer)]
    both = pd.concat(tables).pivot(index=["model", "width"], columns="step", values="value").dropna()
    return both.rename(columns=lambda step: f"{step} steps").reset_index().assign(task=SUPERVISED)


def _supervised(rows: pd.DataFrame) -> pd.DataFrame:
    last = rows["step"].eq(rows.groupby("run")["step"].transform("max")) & rows["weight"].gt(0)
    some = name_models(rows[last & rows["metric"].eq("loss") & rows["testset"].eq("test")])
    return some.groupby(["model", "width", "step"])["value"].mean().reset_index()


USUAL = 0.05
"""The rate of all other models."""

_RATE_RUN = r"^(?P<label>[a-z-]+)-d\d+-rate-(?P<rate>\d+)_"


def compare_rates(table: Path) -> pd.DataFrame:
    """Return the mean loss over trained tasks of each model at each rate, and gaps to the encoder-decoder.

    Columns: `model`, `task`, one for each rate, `best` (the rate), `gap` (to the encoder-decoder, both at the
    usual rate, nats per token) and `tuned_gap` (each at its best).
    """
    rows = pd.read_csv(table)
    rows = rows[rows["metric"].eq("loss") & rows["testset"].eq("test") & rows["weight"].gt(0)]
    names = rows["run"].str.extract(_RATE_RUN)
    rows = rows.assign(model=names["label"].map(MODELS), rate=("." + names["rate"]).astype(float))
    losses = rows.pivot_table(index="model", columns="rate", values="value").reindex(list(MODELS.values()))
    best = losses.min(axis=1)
    return losses.assign(
        task=SUPERVISED, best=losses.idxmin(axis=1), gap=losses[USUAL] - losses[USUAL][ENCDEC],
        tuned_gap=best - best[ENCDEC],
    ).rename(columns=str).reset_index()  # fmt: skip


PARTS = {"1/8 short": "shortest eighth", "4/8 medium": "fourth eighth", "8/8 long": "longest eighth"}
"""The paper's short, medium and long, of a test set in eight parts by source length."""


def write_lengths(runs: Path, rows: pd.DataFrame, table: Path) -> None:
    """Write a run table whose test sets are the parts of `test` by length.

    Args:
        runs: Folder of the run records.
        rows: The study's run table.
        table: The table to write.
    """
    losses = rows[rows["metric"].eq("loss") & rows["testset"].eq("test")]
    parts = [part for row in losses.to_dict("records") for part in _parts_of(runs, row)]
    pd.DataFrame(parts).to_csv(table, index=False, float_format="%.5g")


def _parts_of(runs: Path, row: dict[Hashable, Any]) -> Iterator[dict[Hashable, Any]]:
    text = run_text([runs / row["run"]], "test", row["task"])
    statistics, groups = sentence_losses(runs / row["run"], text), group_sentences(text, "eighths")
    for group in PARTS:
        nats, tokens = statistics[np.array(groups) == group].sum(axis=0)
        yield {**row, "testset": group, "value": nats / tokens}


def laws_by_length(table: Path, *, refits: int) -> pd.DataFrame:
    """Return the exponent and limit of every model on each part, of the mean over the trained tasks."""
    base = read_losses(table, testset=next(iter(PARTS)))
    start = float(base.loc[base["model"].eq(ENCDEC), "size"].min())
    parameters = {}
    for group, label in PARTS.items():
        losses = read_losses(table, testset=group)
        rows = losses[losses["task"].eq(SUPERVISED)]
        parameters[label] = parameters_of(fit_architectures(rows, n_0=start, refits=refits))
    return pd.concat(parameters, names=["part"]).droplevel(1).reset_index()


def gaps_by_length(table: Path) -> Iterator[Figures]:
    """Yield each language model's loss less the encoder-decoder's of equal width, by part and width."""
    for group, label in PARTS.items():
        losses = read_losses(table, testset=group)
        some = losses[losses["task"].eq(SUPERVISED)]
        by_model = some.pivot_table(index="width", columns="model", values="value")
        for model in list(MODELS.values())[1:]:
            gaps = by_model[model] - by_model[ENCDEC]
            yield {
                "task": SUPERVISED,
                "part": label,
                "model": model,
                **{f"d{width}": float(gap) for width, gap in gaps.items()},
            }

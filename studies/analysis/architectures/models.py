"""The nine models of Zhang et al. 2022 at several widths, and the losses that they reached."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

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

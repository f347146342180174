"""Run tables simulated from known laws, to plan a study or to test code that reads tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mnmt_laws.errors import ArgumentError
from mnmt_laws.laws.known import KnownLaw
from mnmt_laws.tables.mixture import format_mixture

Weights = Mapping[str, float]
_PREDICTORS = ("size", "encoder_size", "decoder_size", "tokens", "unique_tokens", "flops", "weight")


def simulate(
    laws: Mapping[str, KnownLaw],
    *,
    sizes: Sequence[float],
    lengths: Sequence[float] = (),
    unique_tokens: Sequence[float] = (),
    encoder_shares: Sequence[float] = (),
    weights: Sequence[float] = (),
    mixtures: Sequence[Weights] = (),
    noise: float = 0.0,
    seed: int = 0,
    seeds: int = 1,
) -> pd.DataFrame:
    """Make the run table of models whose losses obey `laws`.

    Args:
        laws: Tasks and their laws. A task that no mixture names is only a test set.
        sizes: N of each model, parameters.
        lengths: D of each model, tokens; without them the table has no column `tokens`.
        unique_tokens: Different tokens of each task that each model can see.
        encoder_shares: Shares of a model's parameters that its encoder has.
        weights: Share of the first of two tasks in each mixture.
        mixtures: Weights of the tasks in each mixture, in place of `weights` or beside them.
        noise: Standard deviation of Gaussian noise on each loss, as a share of it.
        seed: Seed of the noise.
        seeds: Models of each kind, which differ in their noise.

    Returns:
        A row for each size, length, mixture, seed and task. Tasks of weight 0 have rows if their law predicts
        them.
    """
    if weights and len(laws) != 2:
        raise ArgumentError(
            f"`laws` must hold two tasks for `weights`, but holds {len(laws)}; give `mixtures`."
        )
    pairs = [dict(zip(laws, (first, round(1.0 - first, 12)), strict=True)) for first in weights]
    axes = {
        "size": sizes, "tokens": lengths, "unique_tokens": unique_tokens, "encoder": encoder_shares,
        "mixture": [*pairs, *mixtures], "seed": range(seeds) if seeds > 1 else (),
    }  # fmt: skip
    table = pd.DataFrame(_rows(laws, {name: values for name, values in axes.items() if len(values)}))
    if "encoder" in table:
        table["encoder_size"] = table["encoder"] * table["size"]
        table["decoder_size"] = table["size"] - table["encoder_size"]
    if "tokens" in table:
        table["flops"] = 6.0 * table["size"] * table["tokens"]
    filled = [_fill(laws[str(task)], str(task), rows) for task, rows in table.groupby("task", sort=False)]
    table = pd.concat(filled).sort_index().drop(columns=["weights", "encoder"], errors="ignore")
    table["value"] *= 1.0 + noise * np.random.default_rng(seed).standard_normal(len(table))
    return table


def _rows(laws: Mapping[str, KnownLaw], axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each model and task, without its loss."""
    for values in itertools.product(*axes.values()):
        model = dict(zip(axes, values, strict=True))
        weights = model.pop("mixture")
        mixture = format_mixture(weights)
        details = "".join(f"-{name}{value:g}" for name, value in model.items() if name != "size")
        model |= {"run": f"{model['size']:g}-{mixture}{details}", "mixture": mixture}
        for task, law in laws.items():
            if weights.get(task, 0.0) > 0 or getattr(law.definition, "zero_shot", False):
                yield model | {"task": task, "weight": weights.get(task, 0.0), "weights": weights}


def _fill(law: KnownLaw, task: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return one task's rows with their losses."""
    names = [name for name in _sources(list(rows["weights"])) if name != task]
    if not rows["weight"].any():
        names = names[1:]  # the reference, whose coefficients are 1
    partners = sorted(names)
    x = {name: rows[name].to_numpy(float) for name in _PREDICTORS if name in rows}
    x["partners"] = np.array([[weights.get(name, 0.0) for name in partners] for weights in rows["weights"]])
    return rows.assign(metric="loss", value=law.losses(x, partners), irreducible=law.limits(x, partners))


def _sources(mixtures: Sequence[Weights]) -> list[str]:
    """Return the sources of mixtures, that of the largest mean weight first."""
    means = pd.DataFrame(list(mixtures)).fillna(0.0).mean()
    return [str(name) for name in means[means > 0].sort_values(ascending=False, kind="stable").index]

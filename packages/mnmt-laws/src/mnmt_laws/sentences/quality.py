"""Translation quality in sentences."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mnmt_laws.figures.style import format_size
from mnmt_laws.sentences.words import join

_MOST_TASKS = 4  # named in a sentence
_BARELY = 5.0  # BLEU below which hardly a sentence is translated


def quality_sentence(pairs: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Return the best value of each metric that models of the largest size with scores reach on each task.

    Args:
        pairs: From `pair_metrics`.
        names: The names of some of its columns, of which one has scores.
    """
    scored = pairs.dropna(subset=[*names], how="all")
    size = float(scored["size"].max())
    best = scored[scored["size"] == size].groupby("task")[[*names]].max()
    tasks = best.index[:_MOST_TASKS]
    parts = [
        f"{label} {join([f'{value:.3g} on {task}' for task, value in values.items()])}"
        for column, label in names.items()
        if len(values := best.loc[tasks, column].dropna())
    ]
    more = f" ({len(best) - len(tasks)} more tasks are in the figure)" if len(best) > len(tasks) else ""
    sentence = f"The best models of {format_size(size)} parameters reach {join(parts)}{more}."
    if "bleu" in best and best["bleu"].max() < _BARELY:
        sentence += " They have learned little yet: longer training may ask for another mixture."
    return sentence

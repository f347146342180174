"""The table of the experts: the share of each in the choices of each language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.measurement import Figures


def write_experts(uses: Path, table: Path, names: dict[str, str]) -> None:
    """Make experts.csv of what `mnmt-eval experts --json` printed.

    Args:
        uses: The output.
        table: The table to write: a row for each model, layer, language and expert, and how much the expert
            tells of the language, from 0 to 1, with its 95% interval, and the least and the greatest load
            in fair shares.
        names: {run: name of the model}.
    """
    runs = json.loads(uses.read_text(encoding="utf-8"))["runs"]
    rows = [row for use in runs if use["run"] in names for row in _rows_of(use, names[use["run"]])]
    pd.DataFrame(rows).to_csv(table, index=False, float_format="%.4g")


def _rows_of(use: Figures, model: str) -> Iterator[Figures]:
    for layer in use["layers"]:
        known = next(iter(layer["specialisation"].values()))
        of_layer = {
            "model": model, "layer": layer["name"], "told": known["share"], "told_lower": known["lower"],
            "told_upper": known["upper"], "least_load": min(layer["loads"]), "most_load": max(layer["loads"]),
        }  # fmt: skip
        for task, shares in zip(use["tasks"], layer["shares"], strict=True):
            for expert, share in enumerate(shares):
                yield {**of_layer, "task": task, "expert": expert, "share": share}

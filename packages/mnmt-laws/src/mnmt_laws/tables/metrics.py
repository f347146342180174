"""Metrics by their names: which way they go, how they become losses, and their greatest value."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from mnmt_laws.tables.row_location import RowLocator, reject

Kind = Literal["score", "error", "loss", "perplexity", "bits"]

_PATTERNS: tuple[tuple[Kind, float | None, str], ...] = (
    ("score", 100, r"(?:sp|sacre)?bleu(?:[ _-]?\d+)?|gleu|chr[ _-]?f(?:\d|\+|pp)*"),
    ("score", 100, r"meteor|rouge[ _-]?(?:[12lsw]|lsum)?"),
    ("score", 100, r"accuracy|acc|exact[ _-]?match|f[ _-]?1|f[ _-]?score|precision|recall"),
    ("score", None, r"bleurt(?:[ _-]?\d+)?|bert[ _-]?score|x?comet(?:[ _-]?(?:kiwi|qe|da|\d))*|kiwi|yisi"),
    ("error", None, r"[hc]?ter|[wc]er|metricx(?:[ _-]?\d+)?|error(?:[ _-]?rate)?|edit[ _-]?distance"),
    ("loss", None, r"(?:log|ln)[ _-]?(?:ppl|perplexity)"),
    ("perplexity", None, r"ppl|perp(?:lexity|lexities)?"),
    ("bits", None, r"bits(?:[ _/-]*(?:per)?[ _-]*(?:byte|char(?:acter)?|token|word))?|bp[bcwt]"),
    ("loss", None, r"loss|nll|x?ent|entropy|ce|neg(?:ative)?[ _-]log[ _-]likelihood"),
)
_NAMES = [(kind, most, re.compile(f"(?<![a-z])(?:{text})(?![a-z])")) for kind, most, text in _PATTERNS]
_WHOLE = {"language": 100.0, "em": 100.0}
"""Scores whose names mean something else within longer ones."""

_COUNTED = {
    "byte": "byte",
    "bpb": "byte",
    "char": "character",
    "bpc": "character",
    "word": "word",
    "bpw": "word",
}
_MOST_NATS = 13.0
"""ln V of a vocabulary of 440,000: a model that knows nothing loses no more nats a token."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """The kind of a metric."""

    kind: Kind

    text: str
    """The part of its name that tells it, in lower case."""

    ceiling: float | None = None
    """Greatest value in points, if known."""

    counted: str = "token"
    """What a loss is per."""

    @property
    def rising(self) -> bool:
        """Whether it rises with size to a ceiling, as chrF does; others fall to a floor, as losses do."""
        return self.kind == "score"

    @property
    def is_loss(self) -> bool:
        """Whether its values are losses in nats once a table has been read."""
        return self.kind in ("loss", "perplexity", "bits")

    @property
    def unit(self) -> str:
        """Unit of the values of a table that has been read."""
        return f"nats per {self.counted}" if self.is_loss else "points"


LOSS = Metric(kind="loss", text="loss")


def read_metric(name: str) -> Metric | None:
    """Return the metric in a name such as `bleu`, `eval/loss` or `test_chrF++`; None where it is unknown."""
    plain = name.strip().casefold()
    if plain in _WHOLE:
        return Metric(kind="score", text=plain, ceiling=_WHOLE[plain])
    for kind, ceiling, pattern in _NAMES:
        if match := pattern.search(plain):
            counted = next((unit for word, unit in _COUNTED.items() if word in plain), "token")
            return Metric(kind=kind, text=match[0], ceiling=ceiling, counted=counted)
    return None


def metric_of_column(name: str, *, unknown: str = "loss") -> str:
    """Return the metric in a column's name, such as `bleu` in `bleu_dev`.

    Args:
        name: The name.
        unknown: What to return of a name that tells none; empty text for the name itself.
    """
    metric = read_metric(name)
    if metric is None:
        return unknown or name
    whole = metric.kind in ("perplexity", "bits")  # for what they count: `byte_perplexity`
    return name.replace("*", "").strip().casefold() if whole else metric.text


def ceiling_of(metric: str, values: pd.Series) -> float:
    """Return the upper bound of a metric, in the unit of `values`; infinite where it is unknown.

    If all values of a bounded metric are at most 1, they count as shares.
    """
    known = read_metric(metric)
    if known is None or known.ceiling is None:
        return math.inf
    return 1.0 if values.le(1).all() else known.ceiling


def losses_in_nats(table: pd.DataFrame, locator: RowLocator) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a table with perplexities and bits as losses in nats, and a line for each such metric.

    A perplexity's loss is its logarithm; a bit is ln 2 nats.

    Raises:
        TableError: If a perplexity is not above 1.
    """
    values, lines = table["value"].to_numpy(float, copy=True), []
    for name in table["metric"].unique():
        metric, rows = read_metric(name), table["metric"].eq(name).to_numpy()
        if metric is None or metric.kind not in ("perplexity", "bits"):
            continue
        if metric.kind == "perplexity":
            reject(rows & (values <= 1), table, locator, "a perplexity must be above 1; if it is a loss, "
                   "name it so", table["value"])  # fmt: skip
            values[rows] = np.log(values[rows])
            lines.append(f"`{name}` holds perplexities: their logarithms are taken, {metric.unit}.")
        else:
            values[rows] *= math.log(2)
            lines.append(f"`{name}` holds bits: they are taken times ln 2, {metric.unit}.")
    return table.assign(value=values), tuple(lines)


def doubtful_losses(rows: pd.DataFrame, locator: RowLocator) -> tuple[str, ...]:
    """Return a line if losses are greater than those of a model that knows nothing.

    Args:
        rows: The last measurement of each run, of a loss in nats per token.
        locator: How to name the rows.
    """
    great = rows["value"].gt(_MOST_NATS).to_numpy()
    if not great.any():
        return ()
    first = int(great.argmax())
    return (
        f"{locator.name(rows, first)}: a loss of {rows['value'].iloc[first]:.4g} nats per token is worse "
        f"than a guess among 400,000 tokens; if it is a perplexity, call its metric `ppl`; if a sum over a "
        f"sentence, divide it by the tokens.",
    )

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
    ("loss", None, r"(?:log|ln)[ _-]?(?:ppl|perp(?:lexity|lexities)?)"),
    ("perplexity", None, r"ppl|perp(?:lexity|lexities)?"),
    ("bits", None, r"(?<!\d)bits(?:[ _/-]*(?:per)?[ _-]*(?:byte|char(?:acter)?|token|word))?|bp[bcwt]"),
    ("loss", None, r"loss(?:es)?|nats|nll|x?ent|entropy|ce|neg(?:ative)?[ _-]log[ _-]likelihood"),
)
_NAMES = [(kind, most, re.compile(f"(?<![a-z])(?:{text})(?![a-z])")) for kind, most, text in _PATTERNS]
_FALLS = re.compile(r"(?<![a-z])(?:loss(?:es)?|error)(?![a-z])")
"""What no score is called: `recall_loss`."""

_CHANGED = re.compile(r"(?<![\w.-])(?:1|100)\s*[-−]|minus")
"""What turns a metric over: `1-acc`."""

_LOGARITHM = re.compile(r"(?<![a-z])(?:log|ln)(?![a-z])")
"""What makes a perplexity another's logarithm: `log2_ppl`."""

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
_SPLIT = re.compile(r"(?:train|valid|val|dev|test|eval|value|[\W_])*")
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
    if _CHANGED.search(plain):
        return None
    for kind, ceiling, pattern in _NAMES:
        if kind == "score" and _FALLS.search(plain):
            continue
        if match := pattern.search(plain):
            if kind == "perplexity" and _LOGARITHM.search(plain):
                return None
            counted = next((unit for word, unit in _COUNTED.items() if word in plain), "token")
            return Metric(kind=kind, text=match[0], ceiling=ceiling, counted=counted)
    return None


def metric_of_column(name: str) -> str:
    """Return the metric in a column's name, such as `bleu` in `bleu_dev`; the name where that tells none.

    The column `value`, and starred ones of which nothing is known but the split, as `valid_*`, hold `loss`.
    """
    plain = name.replace("*", "").strip(" _-/.")
    if plain == "value" or ("*" in name and _SPLIT.fullmatch(plain.casefold())):
        return LOSS.text
    metric = read_metric(name)
    if metric is None:
        return plain or name
    whole = metric.kind in ("perplexity", "bits") or metric.counted != LOSS.counted  # `byte_perplexity`
    return plain.casefold() if whole else metric.text


def name_in_nats(name: str) -> str:
    """Return what a perplexity or bits are called once they are losses in nats; other names unchanged.

    `valid_ppl` becomes `valid_log_ppl`, and `bpb` `nats_per_byte`.
    """
    metric = read_metric(name)
    if metric is None or metric.kind not in ("perplexity", "bits"):
        return name
    nats = f"log_{metric.text}" if metric.kind == "perplexity" else f"nats_per_{metric.counted}"
    text = f"(?<![a-z]){re.escape(metric.text)}(?![a-z])"
    return re.sub(text, nats, name.strip().casefold(), count=1)


def name_by_direction(table: pd.DataFrame, *, rising: bool | None) -> pd.DataFrame:
    """Return a table in which `loss` is `score` if it rises, and nothing else was measured."""
    return table.assign(metric="score") if rising and table["metric"].eq(LOSS.text).all() else table


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

    A perplexity's loss is its logarithm; a bit is ln 2 nats. Values and known irreducible ones are converted,
    and called by `name_in_nats`.

    Raises:
        TableError: If a perplexity is not above 1.
    """
    columns, lines = ["value", "irreducible"], []
    numbers, names = table[columns].to_numpy(float, copy=True), table["metric"].to_numpy(object, copy=True)
    for name in table["metric"].unique():
        metric, rows = read_metric(name), table["metric"].eq(name).to_numpy()
        if metric is None or metric.kind not in ("perplexity", "bits"):
            continue
        if metric.kind == "perplexity":
            rule = "a perplexity must be above 1; if it is a loss, name it so"
            reject(rows & (numbers[:, 0] <= 1), table, locator, rule, table["value"])
            rule = "`irreducible` must be a perplexity of at least 1, as the value is"
            reject(rows & (numbers[:, 1] < 1), table, locator, rule, table["irreducible"])
            numbers[rows] = np.log(numbers[rows])
            lines.append(f"`{name}` holds perplexities: their logarithms are taken, {metric.unit}.")
        else:
            numbers[rows] *= math.log(2)
            lines.append(f"`{name}` holds bits: they are taken times ln 2, {metric.unit}.")
        names[rows] = name_in_nats(name)
    return table.assign(value=numbers[:, 0], irreducible=numbers[:, 1], metric=names), tuple(lines)


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
        f"than a guess among 400,000 tokens; if it is a perplexity, call its column `ppl`; if a sum over a "
        f"sentence, divide it by the tokens.",
    )

"""Bilingual models with vocabularies of their own, in bits a character, which compare over vocabularies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.measurement import Figures
from studies.analysis.many_languages.models import BILINGUAL, OWN
from studies.analysis.many_languages.questions import contrasts

CARRIED = ", by the other text"
"""End of the names of models that are of another text."""

DENSE, EXPERTS = "dense, T = 1", f"moe16, T = 1{CARRIED}"
PAIRS = (
    *((name, BILINGUAL) for name in (OWN, DENSE, EXPERTS)),
    *((name, OWN) for name in (DENSE, EXPERTS)),
    (f"{DENSE}{CARRIED}", DENSE),
)
"""The last pair checks such an estimate by a model that was trained on this text."""


def carry(models: pd.DataFrame, alone: pd.DataFrame, later: pd.DataFrame) -> pd.DataFrame:
    """Return models of another text, as many nats a token from the bilingual ones as they are there.

    Args:
        models: Runs of one length of the other text.
        alone: Bilingual runs of the other text.
        later: Bilingual runs of this text.
    """
    change = later.groupby("task")["value"].mean() - alone.groupby("task")["value"].mean()
    value = models["value"] + models["task"].map(change)
    return models.assign(value=value, name=models["name"] + CARRIED)


def in_bits(rows: pd.DataFrame, counts: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with losses in bits a character of the test references.

    Args:
        rows: Runs of the shared vocabulary, and of own ones, named `OWN`.
        counts: Tokens and characters of the test references by `vocabulary` and `task`.
    """
    table = counts.set_index(["vocabulary", "task"])
    factors = table["tokens"] / table["characters"] / np.log(2)
    vocabulary = rows["name"].eq(OWN).map({True: "own", False: "shared"})
    factor = factors[pd.MultiIndex.from_arrays([vocabulary, rows["task"]])]
    return rows.assign(value=rows["value"] * factor.to_numpy())


def vocabularies(bits: pd.DataFrame) -> Iterator[Figures]:
    """Yield contrasts in bits a character with bilingual models, and the `bits` of each model."""
    means = bits.groupby("name")["value"].mean()
    for figures in contrasts(bits, PAIRS):
        del figures["steps"]
        yield figures | {"bits": [float(means[figures[name]]) for name in ("model", "other")]}

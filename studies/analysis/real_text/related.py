"""What German costs beside a near language, and beside a far one, without any law."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measurement import Figures
from studies.analysis.real_text.pairs import FOLDER, TESTSETS, Pair, read_pairs

TABLES = {
    "en-de-zh": "beside Chinese",
    "en-de-fr": "beside French",
    "en-de-fr-4000": "beside French, 4,000 ids",
}
"""Tables with German and another target. The ids of the first two are 4,000 and 2,000."""

TASK = "en-de"


def costs_of_sharing(folder: Path = FOLDER) -> Iterator[Figures]:
    """Yield what each weight costs German at the longest training, against models of German alone.

    `cost` is in nats a token. `relative` is the cost over the loss alone: all tables have the same German
    test sentences, so it does not depend on how a vocabulary cuts them.
    """
    for pair in read_pairs(folder, names=TABLES):
        for testset in TESTSETS:
            yield from _costs(pair, testset)


def _costs(pair: Pair, testset: str) -> Iterator[Figures]:
    rows = pair.observations(testset=testset, step=pair.steps[-1], fit_all=True).frame
    rows = rows[rows["task"].eq(TASK) & rows["weight"].gt(0)]
    alone = rows[rows["weight"].eq(1)].set_index("size")["value"]
    shared = rows[rows["weight"].lt(1)].assign(alone=rows["size"].map(alone))
    for row in shared.sort_values(["size", "weight"]).to_dict("records"):
        yield {
            "table": TABLES[pair.name], "testset": testset, "size": int(row["size"]), "weight": row["weight"],
            "cost": row["value"] - row["alone"], "relative": row["value"] / row["alone"] - 1,
        }  # fmt: skip

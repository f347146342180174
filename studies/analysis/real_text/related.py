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

    `cost` is in nats a token, the mean over seeds, against the model alone of the same seed. `relative` is
    the cost over the loss alone: all tables have the same German test sentences, so it does not depend on
    how a vocabulary cuts them.
    """
    for pair in read_pairs(folder, names=TABLES):
        for testset in TESTSETS:
            yield from _costs(pair, testset)


def _costs(pair: Pair, testset: str) -> Iterator[Figures]:
    rows = pair.observations(testset=testset, step=pair.steps[-1], fit_all=True).frame
    losses = rows[rows["task"].eq(TASK)].pivot_table(index=["size", "seed"], columns="weight", values="value")
    weights = losses.columns.to_numpy(float)
    for size, of_size in losses.groupby("size"):
        for weight in weights[(weights > 0) & (weights < 1)].tolist():
            costs = (of_size[weight] - of_size[1.0]).dropna()
            relative = (of_size[weight] / of_size[1.0] - 1).dropna()
            if len(costs):
                yield {
                    "table": TABLES[pair.name], "testset": testset, "size": size, "weight": weight,
                    "cost": costs.mean(), "relative": relative.mean(), "by seed": relative.tolist(),
                }  # fmt: skip

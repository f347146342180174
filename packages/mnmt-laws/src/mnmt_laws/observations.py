"""One metric on one test set, ready to fit: what each run reached at its last step."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from mnmt_laws.errors import TableError
from mnmt_laws.table import RunTable
from mnmt_laws.validate import CELL, require_unique

RISING_METRICS = frozenset({"bleu", "chrf", "chrf++", "bleurt", "comet"})
"""Metrics that rise with size to a ceiling; any other falls to a floor, as losses do."""

_ORDER = ["task", "weight", "size", "seed", "value", "run"]


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Measured values of one metric on one test set, in an order that does not depend on the table's."""

    frame: pd.DataFrame
    """One row a (run, task): the run table's columns at the run's last step."""

    metric: str
    testset: str
    source: str

    @property
    def rising(self) -> bool:
        """Whether the metric rises with size (chrF) rather than falls (loss)."""
        return self.metric in RISING_METRICS

    @property
    def unit(self) -> str:
        """Unit of the values."""
        return "nats per token" if self.metric == "loss" else "points"

    @property
    def fit(self) -> pd.DataFrame:
        """Rows the laws are fitted to: trained on the task and not held out."""
        return self._rows(self.frame["role"].eq("fit") & self.frame["weight"].gt(0))

    @property
    def held_out(self) -> pd.DataFrame:
        """Rows kept from the fits, to be predicted."""
        return self._rows(self.frame["role"].eq("held-out") & self.frame["weight"].gt(0))

    @property
    def zero_shot(self) -> pd.DataFrame:
        """Rows of tasks that were not in the training mixture; no law speaks of them."""
        return self._rows(self.frame["weight"].eq(0))

    @property
    def tasks(self) -> list[str]:
        """Tasks with rows to fit, sorted."""
        return sorted(self.fit["task"].unique())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out."""
        count = len(self.zero_shot)
        if not count:
            return ()
        return (
            f"{count} zero-shot rows (weight 0) are left out of the fits: the laws hold for weights above 0.",
        )

    def _rows(self, mask: pd.Series) -> pd.DataFrame:
        return self.frame[mask].reset_index(drop=True)


def select(
    table: RunTable, *, metric: str = "loss", testset: str | None = None, architecture: str | None = None
) -> Observations:
    """The last step of every run, for one metric, test set and architecture.

    Args:
        table: A run table.
        metric: A value of its `metric` column.
        testset: A value of its `testset` column; by default `test`, or the only one there is.
        architecture: A value of its `architecture` column; may be omitted where there is only one.

    Raises:
        TableError: If nothing matches, a choice must be made, or a measurement stands there twice.
    """
    frame = _only(table.frame, "metric", metric, table.source)
    testset = testset or _default_testset(frame)
    frame = _only(frame, "testset", testset, table.source)
    frame = _only(frame, "architecture", architecture, table.source)
    frame = _last_steps(frame)
    require_unique(frame, CELL, table.source)
    ordered = frame.sort_values(_ORDER, kind="stable").reset_index(drop=True)
    return Observations(frame=ordered, metric=metric, testset=testset or "", source=table.source)


def _default_testset(frame: pd.DataFrame) -> str | None:
    return "test" if frame["testset"].eq("test").any() else None


def _only(frame: pd.DataFrame, column: str, wanted: str | None, source: str) -> pd.DataFrame:
    """Rows whose `column` is `wanted`, or all rows if it is None and they agree."""
    present = sorted(frame[column].unique())
    if wanted is None:
        if len(present) > 1:
            raise TableError(
                f"{source}: several values of `{column}` ({', '.join(present)}); choose with --{column}."
            )
        return frame
    if wanted not in present:
        choices = ", ".join(present) or "none"
        raise TableError(f"{source}: no row has {column} {wanted!r}; the table has {choices}.")
    return frame[frame[column] == wanted]


def _last_steps(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows at each run's last step; rows without a step are their run's only ones."""
    keys = ["run", *CELL]
    last = frame.groupby(keys, dropna=False)["step"].transform("max")
    return frame[frame["step"].isna() | (frame["step"] == last)]

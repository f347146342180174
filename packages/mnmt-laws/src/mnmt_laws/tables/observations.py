"""Observations: the value that each run reached, by one metric on one test set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from mnmt_laws.errors import TableError, did_you_mean
from mnmt_laws.tables.learning_curves import last_measurements, read_at
from mnmt_laws.tables.lengths import Lengths, measure_lengths
from mnmt_laws.tables.metrics import LOSS, Metric, ceiling_of, doubtful_losses, name_in_nats, read_metric
from mnmt_laws.tables.mixture import mixture_weights
from mnmt_laws.tables.repeats import CELL, require_unique
from mnmt_laws.tables.row_location import RowLocator
from mnmt_laws.tables.study_file import Goal
from mnmt_laws.tables.table import RunTable
from mnmt_laws.tables.trends import trend_remarks
from mnmt_laws.tables.units import check_growth, unit_remarks

_ORDER = ["task", "weight", "size", "tokens", "step", "seed", "value", "run"]
_CURVES = ["task", "weight", "size", "mixture", "seed", "run", "step"]


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Measured values of one metric on one test set, in an order that does not depend on the table's."""

    frame: pd.DataFrame
    """One row for each run and task: the run table's columns at its last step, or at a common length."""

    metric: str
    """Its name in the table that was read: `log_ppl` where that of the file is `ppl`."""

    rising: bool
    """Whether the metric rises with size (chrF) rather than falls (loss)."""

    unit: str
    """Unit of the values."""

    testset: str
    source: str

    warnings: tuple[str, ...] = ()
    """Possible slips in the table, and runs that are left out."""

    scaled: frozenset[str] = frozenset()
    """Columns whose unit is settled by a factor that was given."""

    goal: Goal | None = None
    """What the study is for, where it says so; advice without an aim or a preference of its own takes it."""

    @property
    def locator(self) -> RowLocator:
        """How messages name its rows."""
        return RowLocator(source=self.source)

    @property
    def is_loss(self) -> bool:
        """Whether the values are losses in nats."""
        return (known := read_metric(self.metric)) is not None and known.is_loss

    @property
    def ceiling(self) -> float:
        """Upper bound of the metric; infinite where unknown, 1 for BLEU and chrF in fractions."""
        return ceiling_of(self.metric, self.frame["value"])

    @property
    def fit(self) -> pd.DataFrame:
        """Rows that laws are fitted to: trained on the task and not held out."""
        return self.rows_to_fit()

    def rows_to_fit(self, *, zero_shot: bool = False) -> pd.DataFrame:
        """Return the rows that a law is fitted to: not held out.

        Args:
            zero_shot: Whether the law can predict a task that has no weight in the mixture, and so takes the
                rows of weight 0.
        """
        rows = self.frame["role"].eq("fit")
        return self._rows(rows if zero_shot else rows & self.frame["weight"].gt(0))

    @property
    def held_out(self) -> pd.DataFrame:
        """Rows that are predicted, and left out of the fits."""
        return self._rows(self.frame["role"].eq("held-out") & self.frame["weight"].gt(0))

    @property
    def zero_shot(self) -> pd.DataFrame:
        """Rows of tasks that were not in the training mixture, held out or not."""
        return self._rows(self.frame["weight"].eq(0))

    def irreducible_of(self, task: str) -> float:
        """Return the known irreducible loss of a task; infinite where none is known."""
        known = self.frame.loc[self.frame["task"] == task, "irreducible"].median()
        return float(known) if self.is_loss and known == known else math.inf

    def mixtures_of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the weights of all sources, a column each, for some rows.

        A source is a task to which some mixture of these rows gives weight; evaluation sets without training
        are no sources.

        Raises:
            TableError: If there are more than two tasks and a mixture is neither given nor follows.
        """
        return mixture_weights(rows, sorted(self.frame["task"].unique()), self.source)

    @property
    def tasks(self) -> list[str]:
        """Tasks with rows to fit that were trained on, sorted."""
        return sorted(self.fit["task"].unique())

    @cached_property
    def lengths(self) -> Lengths:
        """The training lengths of the runs, and whether they differ."""
        return measure_lengths(self.frame)

    def _rows(self, mask: pd.Series) -> pd.DataFrame:
        return self.frame[mask].reset_index(drop=True)


def select(
    table: RunTable,
    *,
    metric: str | None = None,
    testset: str | None = None,
    architecture: str | None = None,
    at: Mapping[str, float] | None = None,
) -> Observations:
    """Return the last measurement of every run, for one metric, test set and architecture.

    Args:
        table: A run table.
        metric: A value of its `metric` column, in any case; by default the only one, or `loss`.
        testset: A value of its `testset` column; by default the only one, or `test`.
        architecture: A value of its `architecture` column; may be omitted where there is only one.
        at: A common length, `{"tokens": 1e9}` or `{"step": 2000}`, at which to read every run instead.

    Raises:
        TableError: If nothing matches, a choice must be made, a measurement occurs twice, or no run reaches
            the common length.
        ValueError: If `at` is no length.
    """
    rows = _choose(table, metric, testset, architecture)
    frame, remarks = last_measurements(rows, table.source) if at is None else read_at(rows, at, table.source)
    require_unique(frame, CELL, table.locator)
    ordered = frame.sort_values(_ORDER, kind="stable").reset_index(drop=True)
    first = ordered.iloc[0]
    name = first["metric"]
    kind = _kind_of(name, table)
    check_growth(rows, table.locator)
    doubts = trend_remarks(ordered, name, table.source, rising=kind.rising)
    doubts = (*unit_remarks(ordered, table.locator, table.scaled), *doubts)
    if kind.unit == LOSS.unit:
        doubts = (*doubtful_losses(ordered, table.locator), *doubts)
    return Observations(
        frame=ordered,
        metric=name,
        rising=kind.rising,
        unit="share" if kind.rising and ceiling_of(name, ordered["value"]) == 1 else kind.unit,
        testset=first["testset"],
        source=table.source,
        warnings=(*table.warnings, *remarks, *doubts),
        scaled=table.scaled,
        goal=table.goal,
    )


def _kind_of(name: str, table: RunTable) -> Metric:
    """Return the kind of a metric, by its name or else by what the table's reader was told."""
    known, rising = read_metric(name), table.rising
    if known is None and rising is None:
        raise TableError(
            f"{table.source}: nothing tells which way `{name}` goes; say --higher-is-better or "
            f"--lower-is-better, in Python read_table(…, rising=True) or False."
        )
    if known is None:
        return Metric(kind="score" if rising else "error", text=name)
    if rising not in (None, known.rising):
        raise TableError(
            f"{table.source}: {name} is better where it is {'lower' if rising else 'higher'}; leave "
            f"--{'higher' if rising else 'lower'}-is-better (`rising`) out."
        )
    return known


def learning_curves(
    table: RunTable, *, metric: str | None = None, testset: str | None = None, architecture: str | None = None
) -> pd.DataFrame:
    """Return every step of every run, for one metric, test set and architecture.

    Args:
        table: A run table.
        metric: As in `select`.
        testset: As in `select`.
        architecture: As in `select`.

    Returns:
        The run table's columns, and `position`, the index of the row in the table; sorted by task, weight,
        size, seed and run, and by step within a run; rows without a step come last.

    Raises:
        TableError: If nothing matches, or a choice must be made.
    """
    frame = _choose(table, metric, testset, architecture)
    frame = frame.assign(position=frame.index)
    return frame.sort_values(_CURVES, kind="stable").reset_index(drop=True)


def _choose(
    table: RunTable, metric: str | None, testset: str | None, architecture: str | None
) -> pd.DataFrame:
    frame = rows_of_metric(table, metric)
    frame = _only(frame, "testset", testset or _default(frame, "testset", "test"), table.source)
    return _only(frame, "architecture", architecture, table.source)


def rows_of_metric(table: RunTable, metric: str | None) -> pd.DataFrame:
    """Return the rows of one metric: by default the only one, the only loss, or `loss`."""
    name = metric or _usual_metric(table.frame)
    if isinstance(name, str) and name_in_nats(name) in set(table.frame["metric"]):
        name = name_in_nats(name)
    return _only(table.frame, "metric", name, table.source)


def _usual_metric(frame: pd.DataFrame) -> str | None:
    losses = [name for name in frame["metric"].unique() if (known := read_metric(name)) and known.is_loss]
    return losses[0] if len(losses) == 1 else _default(frame, "metric", "loss")


def _default(frame: pd.DataFrame, column: str, usual: str) -> str | None:
    return usual if frame[column].eq(usual).any() else None


def _only(frame: pd.DataFrame, column: str, requested: str | None, source: str) -> pd.DataFrame:
    """Return the rows whose `column` is `requested`, or all rows if it is None and they agree."""
    present = sorted(frame[column].unique())
    if requested is None:
        if len(present) > 1:
            choices = ", ".join(choice or "none" for choice in present)
            raise TableError(
                f"{source}: several values of `{column}` ({choices}); choose one as `{column}` (--{column})."
            )
        return frame
    if not isinstance(requested, str):
        raise TypeError(f"`{column}` must be text, but is {requested!r}.")
    alike = [choice for choice in present if choice.casefold() == requested.casefold()]
    if requested not in present and len(alike) != 1:
        choices = ", ".join(filter(None, present)) or "none"
        raise TableError(
            f"{source}: no row has {column} {requested!r}{did_you_mean(requested, present)}; the table has "
            f"{choices}; choose one of them."
        )
    return frame[frame[column] == (requested if requested in present else alike[0])]

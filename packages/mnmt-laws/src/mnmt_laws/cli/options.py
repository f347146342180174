"""Options that several commands share, and the observations and fits that they describe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from mnmt_laws.cli.console import warn
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit, PriorChoice
from mnmt_laws.fitting.uncertainty import (
    MOST_REFITS,
    ClusterBootstrap,
    Perturbation,
    ResidualBootstrap,
    Uncertainty,
)
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.solver.objective import ObjectiveName
from mnmt_laws.tables.column_map import STARRED, ColumnMap
from mnmt_laws.tables.learning_curves import check_length
from mnmt_laws.tables.numbers import parse_count
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import RunSource, observe, open_source, read_table_at
from mnmt_laws.tables.table import example_table


def whole_number(_: type, tokens: Sequence[Token]) -> int:
    """Return an option's value as an integer; a fraction is refused rather than cut.

    Raises:
        ArgumentError: If it is not an integer.
    """
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9_]+", text):
        raise ArgumentError(f"{text!r} must be a whole number, such as 200.")  # cyclopts names the option
    return int(text)


Json = Annotated[bool, Parameter("--json", negative="")]
Out = Parameter(("--out", "-o"))


def count(_: type, tokens: Sequence[Token]) -> float:
    """Return an option's value as a number; `20M` is 2e7.

    Raises:
        ArgumentError: If it is not a number.
    """
    return parse_count(tokens[0].value)


Positive = Annotated[float, Parameter(validator=Number(gt=0), converter=count)]
Columns = Annotated[tuple[str, ...], Parameter(negative="")]
SecondTable = Annotated[Path | None, Parameter(("--runs", "--mixtures"))]
Refits = Annotated[int, Parameter(validator=Number(gte=0, lte=MOST_REFITS), converter=whole_number)]
DEFAULT_REFITS = 200


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """The values of the table that are analysed."""

    metric: str | None = None
    """The metric to analyse. By default the only one in the table, or `loss`."""

    testset: str | None = None
    """The test set to analyse. By default the only one in the table, or `test`."""

    architecture: str | None = None
    """The architecture to analyse. By default the only one in the table."""

    column: Columns = ()
    """The table's name of a column, as `size=params`; may be repeated. `tokens=tokens*1e9` reads billions,
    `size=20M` gives all rows one size. One `*` gathers columns: `mixture=train_*` has a column of weights for
    each source, `value=valid_*` one of values for each task."""

    runs: SecondTable = None
    """A second table with what the source lacks, such as the mixtures of its losses, or the sizes of the runs
    in a panel that Weights & Biases exports. Rows belong together by the columns that both have."""

    at: str | None = None
    """Read every run at this length, as `step=2000` or `tokens=1e9`, within its learning curve."""

    rising: Annotated[bool | None, Parameter("--higher-is-better", negative="--lower-is-better")] = None
    """Whether higher values are better, for a metric whose name does not tell."""

    example: Annotated[bool, Parameter(negative="")] = False
    """Analyse the example table that comes with mnmt-laws."""

    @property
    def columns(self) -> dict[str, str]:
        """The table's column by the run table's."""
        pairs = [item.partition("=") for item in self.column]
        wrong = [
            item for item, (name, _, other) in zip(self.column, pairs, strict=True) if not (name and other)
        ]
        if wrong:
            raise TableError(f"--column {wrong[0]}: must read NAME=COLUMN, such as size=params.")
        names = [name.strip() for name, _, _ in pairs]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            gather = ", with one `*` for several columns of a file" if twice[0] in STARRED else ""
            raise TableError(f"--column {twice[0]}: is given twice; give it once{gather}.")
        try:
            return dict(ColumnMap(columns={name.strip(): other.strip() for name, _, other in pairs}).columns)
        except ValueError as error:
            raise TableError(f"--column: {error}") from error

    @property
    def length(self) -> dict[str, float] | None:
        """The common length at which runs are read, if any."""
        if self.at is None:
            return None
        name, _, number = self.at.partition("=")
        try:
            return dict([check_length({name.strip(): parse_count(number)})])
        except ValueError as error:
            raise TableError(f"--at {self.at}: must read step=NUMBER or tokens=NUMBER.") from error


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """The objective of fits, and the measure of their uncertainty."""

    objective: ObjectiveName = "log-ols"
    """The objective of the fit: squares of log residuals (log-ols) or of residuals (ols)."""

    uncertainty: Literal["residual", "cluster", "perturbation"] = "residual"
    """How refits vary: resampled residuals, randomly weighted runs, or values with 1% noise."""

    refits: Refits = DEFAULT_REFITS
    """The number of refits. With 0 the uncertainty is unknown."""

    prior: PriorChoice = "auto"
    """Weak priors of all parameters, with centres that the tasks share: where runs are few (auto), always, or
    never."""

    @property
    def method(self) -> Uncertainty:
        """The method of uncertainty that these options name."""
        match self.uncertainty:
            case "residual":
                return ResidualBootstrap(refits=self.refits)
            case "cluster":
                return ClusterBootstrap(refits=self.refits)
            case "perturbation":
                return Perturbation(refits=self.refits)


DEFAULT_TABLE, DEFAULT_FIT = TableConfig(), FitConfig()


def open_table(source: Path | None, config: TableConfig) -> RunSource:
    """Open the table or folder of a command, or the example, at a common length if one is given."""
    if (source is None) != config.example:
        count = "both were" if config.example else "neither was"
        raise TableError(f"give a run table, a folder of run records, or --example; {count} given.")
    if config.example and config.column:
        raise TableError("--column goes with a table of your own; the columns of --example have their names.")
    if config.runs is not None and (source is None or source.is_dir()):
        raise TableError(
            "--mixtures and --runs go with a table of your own; the example and run records know their runs."
        )
    opened = (
        RunSource(table=replace(example_table(), rising=config.rising))
        if source is None
        else open_source(source, columns=config.columns, runs=config.runs, rising=config.rising)
    )
    if config.length is None:
        return opened
    return replace(opened, table=read_table_at(opened.table, config.length))


def observe_table(source: Path | None, config: TableConfig) -> Observations:
    """Open a table and print its warnings."""
    opened = open_table(source, config)
    warn((*opened.warnings, *opened.table.warnings))
    return observe(
        opened.table, metric=config.metric, testset=config.testset, architecture=config.architecture
    )


def fit_observations(observations: Observations, law: LawName | Law, config: FitConfig) -> LawFit:
    """Fit a law as the options say."""
    return fit(
        observations,
        law=law,
        objective=config.objective,
        uncertainty=config.method,
        prior=config.prior,
    )

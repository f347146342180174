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
from mnmt_laws.figures.style import FORMATS
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ClusterBootstrap, Perturbation, ResidualBootstrap, Uncertainty
from mnmt_laws.laws import LawName
from mnmt_laws.solver.objective import ObjectiveName
from mnmt_laws.tables.column_map import ColumnMap
from mnmt_laws.tables.learning_curves import check_length
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import Source, observe, open_source, read_table_at
from mnmt_laws.tables.table import example_table


def _check_figure(_: object, path: Path | None) -> None:
    """Refuse a figure that could not be written, before anything is computed."""
    if path is not None and path.suffix.lower() not in FORMATS:
        raise ArgumentError(f"It must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")


Figure = Annotated[Path | None, Parameter("--figure", validator=_check_figure)]
Json = Annotated[bool, Parameter("--json", negative="")]
Out = Parameter(("--out", "-o"))
Size = Annotated[float | None, Parameter(validator=Number(gt=0))]
BaseStudy = Annotated[Path | None, Parameter("--study")]
Positive = Annotated[float, Parameter(validator=Number(gt=0))]


def whole_number(_: type, tokens: Sequence[Token]) -> int:
    """Return an option's value as an integer; a fraction is refused rather than cut.

    Raises:
        ValueError: If it is none.
    """
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9_]+", text):
        raise ArgumentError(f"{text!r} must be a whole number, such as 200.")  # cyclopts names the option
    return int(text)


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

    column: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """What the table calls a column, as `size=params`; may be repeated. One `*` gathers columns:
    `mixture=train_*` has a column of weights for each source, `value=valid_*` one of values for each task."""

    at: str | None = None
    """Read every run at this length, as `step=2000` or `tokens=1e9`, within its learning curve."""

    example: Annotated[bool, Parameter(negative="")] = False
    """Analyse the example table that comes with mnmt-laws."""

    @property
    def columns(self) -> dict[str, str]:
        """The table's column by the run table's."""
        pairs = [item.partition("=") for item in self.column]
        wrong = [
            item for item, (name, _, column) in zip(self.column, pairs, strict=True) if not (name and column)
        ]
        if wrong:
            raise TableError(f"--column {wrong[0]}: must read NAME=COLUMN, such as size=params.")
        mapping = {name.strip(): column.strip() for name, _, column in pairs}
        try:
            return dict(ColumnMap(columns=mapping).columns)
        except ValueError as error:
            raise TableError(f"--column: {error}") from error

    @property
    def length(self) -> dict[str, float] | None:
        """The common length at which runs are read, if any."""
        if self.at is None:
            return None
        name, _, number = self.at.partition("=")
        try:
            return dict([check_length({name.strip(): float(number)})])
        except ValueError as error:
            raise TableError(f"--at {self.at}: must read step=NUMBER or tokens=NUMBER.") from error


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """How laws are fitted, and how their uncertainty is measured."""

    objective: ObjectiveName = "log-ols"
    """What the fit minimises: squares of log residuals (log-ols) or of residuals (ols), absolute log
    residuals (lad), or Huber's function of log residuals (huber)."""

    delta: Positive | None = None
    """The log residual at which huber turns from squares to absolute values. By default 0.001."""

    uncertainty: Literal["residual", "cluster", "perturbation"] = "residual"
    """How refits vary: resampled residuals, randomly weighted runs, or values with noise (see `--noise`)."""

    refits: Annotated[int, Parameter(validator=Number(gte=0), converter=whole_number)] = 200
    """The number of refits. With 0 the uncertainty is unknown."""

    noise: Positive | None = None
    """The standard deviation of the noise of `--uncertainty perturbation`, as a share of each value; 0.01 by
    default."""

    seed: Annotated[int, Parameter(converter=whole_number)] = 0
    """The seed of the refits."""

    @property
    def method(self) -> Uncertainty:
        """The method of uncertainty that these options name."""
        if self.uncertainty == "perturbation":
            share = Perturbation.share if self.noise is None else self.noise
            return Perturbation(share=share, refits=self.refits, seed=self.seed)
        if self.noise is not None:
            raise TableError(f"--noise goes with --uncertainty perturbation, but that is {self.uncertainty}.")
        bootstrap = ClusterBootstrap if self.uncertainty == "cluster" else ResidualBootstrap
        return bootstrap(refits=self.refits, seed=self.seed)


DEFAULT_TABLE, DEFAULT_FIT = TableConfig(), FitConfig()


def open_table(source: Path | None, config: TableConfig) -> Source:
    """Open the table or folder of a command, or the example, at a common length if one is given."""
    if (source is None) != config.example:
        count = "both were" if config.example else "neither was"
        raise TableError(f"give a run table, a folder of run records, or --example; {count} given.")
    if config.example and config.column:
        raise TableError("--column goes with a table of your own; the columns of --example have their names.")
    opened = Source(table=example_table()) if source is None else open_source(source, columns=config.columns)
    if config.length is None:
        return opened
    return replace(opened, table=read_table_at(opened.table, config.length))


def observe_table(source: Path | None, config: TableConfig) -> Observations:
    """Open a table and print its warnings."""
    opened = open_table(source, config)
    warn(opened.warnings)
    return observe(
        opened.table, metric=config.metric, testset=config.testset, architecture=config.architecture
    )


def fit_observations(observations: Observations, law: LawName, config: FitConfig) -> LawFit:
    """Fit a law as the options say."""
    if config.delta is not None and config.objective != "huber":
        raise TableError(f"--delta goes with --objective huber, but the objective is {config.objective}.")
    return fit(
        observations,
        law=law,
        objective=config.objective,
        delta=config.delta,
        uncertainty=config.method,
    )

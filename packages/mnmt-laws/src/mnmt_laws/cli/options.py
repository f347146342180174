"""Options that several commands share, and the observations and fits that they describe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from mnmt_laws.cli.console import warn
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ClusterBootstrap, Perturbation, ResidualBootstrap, Uncertainty
from mnmt_laws.laws import LawName
from mnmt_laws.solver.objective import ObjectiveName
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import RunSource, observe, open_source
from mnmt_laws.tables.table import example_table


def whole_number(_: type, tokens: Sequence[Token]) -> int:
    """Return an option's value as an integer; a fraction is refused rather than cut.

    Raises:
        ValueError: If it is none.
    """
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9_]+", text):
        raise ArgumentError(f"{text!r} must be a whole number, such as 200.")  # cyclopts names the option
    return int(text)


Json = Annotated[bool, Parameter("--json", negative="")]
Out = Parameter(("--out", "-o"))
Positive = Annotated[float, Parameter(validator=Number(gt=0))]
Refits = Annotated[int, Parameter(validator=Number(gte=0), converter=whole_number)]
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

    example: Annotated[bool, Parameter(negative="")] = False
    """Analyse the example table that comes with mnmt-laws."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """How laws are fitted, and how their uncertainty is measured."""

    objective: ObjectiveName = "log-ols"
    """What the fit minimises: squares of log residuals (log-ols) or of residuals (ols), or Huber's function
    of log residuals (huber)."""

    uncertainty: Literal["residual", "cluster", "perturbation"] = "residual"
    """How refits vary: resampled residuals, randomly weighted runs, or values with 1% noise."""

    refits: Refits = DEFAULT_REFITS
    """The number of refits. With 0 the uncertainty is unknown."""

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
    """Open the table or folder of a command, or the example."""
    if (source is None) != config.example:
        count = "both were" if config.example else "neither was"
        raise TableError(f"give a run table, a folder of run records, or --example; {count} given.")
    return RunSource(table=example_table()) if source is None else open_source(source)


def observe_table(source: Path | None, config: TableConfig) -> Observations:
    """Open a table and print its warnings."""
    opened = open_table(source, config)
    warn(opened.warnings)
    return observe(
        opened.table, metric=config.metric, testset=config.testset, architecture=config.architecture
    )


def fit_observations(observations: Observations, law: LawName, config: FitConfig) -> LawFit:
    """Fit a law as the options say."""
    return fit(observations, law=law, objective=config.objective, uncertainty=config.method)

"""Options that several commands share, and how they become observations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from mnmt_laws.cli.console import warn
from mnmt_laws.errors import TableError
from mnmt_laws.fitting.convergence import Curve, correct_convergence
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.uncertainty import ClusterBootstrap, Perturbation, ResidualBootstrap, Uncertainty
from mnmt_laws.laws import LawName
from mnmt_laws.solver.objective import ObjectiveName
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import Source, observe, open_source
from mnmt_laws.tables.table import example_table

Json = Annotated[bool, Parameter("--json", negative="")]
Size = Annotated[float, Parameter(validator=Number(gt=0))]
Figure = Annotated[Path | None, Parameter("--figure")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """What of which table is analysed."""

    metric: str = "loss"
    """A value of the `metric` column."""

    testset: str | None = None
    """A value of the `testset` column; by default `test`, or the only one there is."""

    architecture: str | None = None
    """A value of the `architecture` column; may be left out where there is only one."""

    horizon: Annotated[float | None, Parameter(validator=Number(gt=0))] = None
    """Steps at which to read runs that have not converged, from their learning curves."""

    example: Annotated[bool, Parameter(negative="")] = False
    """Take the example table that comes with mnmt-laws."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How laws are fitted, and how uncertainty is measured."""

    objective: ObjectiveName = "log-ols"
    """Least squares of log-losses or losses (ols), least absolute deviations (lad), or Huber's function."""

    delta: Annotated[float | None, Parameter(validator=Number(gt=0))] = None
    """Log residual where `huber` turns from squares to absolute values; 0.001 by default."""

    uncertainty: Literal["residual", "cluster", "perturbation"] = "residual"
    """Refits to resampled residuals, to runs weighted at random, or to values with noise of `--noise`."""

    refits: Annotated[int, Parameter(validator=Number(gte=0))] = 200
    """Number of refits; 0 leaves the uncertainty unknown."""

    noise: Annotated[float, Parameter(validator=Number(gt=0))] = 0.01
    """Standard deviation of the noise of `--uncertainty perturbation`, as a share of each value."""

    seed: int = 0
    """Seed of the refits."""

    @property
    def method(self) -> Uncertainty:
        """The method these options name."""
        if self.uncertainty == "perturbation":
            return Perturbation(share=self.noise, refits=self.refits, seed=self.seed)
        chosen = ClusterBootstrap if self.uncertainty == "cluster" else ResidualBootstrap
        return chosen(refits=self.refits, seed=self.seed)


DEFAULT_READING, DEFAULT_FITTING = Reading(), Fitting()


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What a command analyses."""

    source: Source
    observations: Observations
    curves: tuple[Curve, ...] = ()


def load(source: Path | None, reading: Reading) -> Loaded:
    """Open the table, correct it for convergence if asked to, and choose what is analysed.

    Warnings go to stderr.
    """
    opened = open_chosen(source, reading)
    warn(opened.warnings)
    metric, testset, architecture = reading.metric, reading.testset, reading.architecture
    table = opened.table
    curves: tuple[Curve, ...] = ()
    if reading.horizon is not None:
        correction = correct_convergence(
            table, horizon=reading.horizon, metric=metric, testset=testset, architecture=architecture
        )
        warn(correction.warnings)
        table, curves = correction.table, correction.curves
    observations = observe(table, metric=metric, testset=testset, architecture=architecture)
    return Loaded(source=opened, observations=observations, curves=curves)


def open_chosen(source: Path | None, reading: Reading) -> Source:
    """The table or folder named, or the example."""
    if (source is None) != reading.example:
        given = "both" if reading.example else "neither"
        raise TableError(f"give a run table or a folder of run records, or --example; {given} was given.")
    return Source(table=example_table()) if source is None else open_source(source)


def fit_loaded(loaded: Loaded, law: LawName, fitting: Fitting, *, refits: bool = True) -> LawFit:
    """Fit a law as the options say."""
    method = fitting.method if refits else ResidualBootstrap(refits=0)
    return fit(
        loaded.observations, law=law, objective=fitting.objective, delta=_delta(fitting), uncertainty=method
    )


def _delta(fitting: Fitting) -> float | None:
    if fitting.delta is not None and fitting.objective != "huber":
        raise TableError(f"--delta goes with --objective huber, but the objective is {fitting.objective}.")
    return fitting.delta


def parse_numbers(text: str, tasks: list[str], option: str) -> dict[str, float]:
    """`en-de:2,en-zh:1` as numbers by task.

    Raises:
        TableError: If it cannot be read or names another task.
    """
    try:
        items = (item.rsplit(":", 1) for item in text.split(","))
        numbers = {task.strip(): float(value) for task, value in items}
    except ValueError:
        numbers = {}
    unknown = [task for task in numbers if task not in tasks]
    if not numbers or unknown:
        example = ",".join(f"{task}:1" for task in tasks)
        raise TableError(f"{option}: must read TASK:NUMBER between commas, as {example}, but is {text!r}.")
    return numbers

"""A forecast: the losses of models yet to be trained, by an average over laws and rulers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError, TableError
from mnmt_laws.fitting.fit import fit
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.refits import NO_REFITS, refit_like
from mnmt_laws.fitting.uncertainty import ResidualBootstrap, bounds_of
from mnmt_laws.forecasts.forms import Form, floors_of, form_of, forms_of, forms_table, shares_of
from mnmt_laws.forecasts.own_error import UNTESTED, log_errors
from mnmt_laws.forecasts.target import Target
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.observations import Observations

_LEAST_SHARE = 0.02  # of the average; a form of less is left out
_FEWEST = 10  # draws of a form
_FEWEST_MODELS = 200  # of which an interval is made; fewer draws are taken several times


@dataclass(frozen=True, kw_only=True, eq=False)
class Member:
    """One form's part of the draws."""

    form: Form

    share: float
    """Its share of the average."""

    draws: xr.Dataset
    """Parameters over `draw`."""

    error_draws: tuple[tuple[Array, Array], ...]
    """(draws, tasks) levels and slopes of each of the form's own errors."""

    falls: Array
    """(draws, tasks) errors beyond the data where no back-test tells, as shares of the predicted change."""

    @property
    def count(self) -> int:
        """The number of its draws."""
        return int(self.draws.sizes["draw"])


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """Draws of every task's metric at any mixture: of the law's form, its parameters and its own error."""

    target: Target

    members: tuple[Member, ...]
    """The forms of the average, the greatest share first."""

    forms: tuple[Form, ...]
    """All forms that were tried, in the same order."""

    observations: Observations

    @property
    def tasks(self) -> list[str]:
        """The tasks."""
        return self.best.tasks

    @property
    def sources(self) -> list[str]:
        """The sources of the mixtures."""
        return max((member.form.fit.sources for member in self.members), key=len)

    @property
    def best(self) -> LawFit:
        """The fit of the form with the greatest share."""
        return self.members[0].form.fit

    @property
    def at(self) -> dict[str, float]:
        """The target's numbers from which the best form predicts."""
        return self.target.given_to(self.best)

    @property
    def sign(self) -> int:
        """1 where less is better, and -1 where more is."""
        return -1 if self.observations.rising else 1

    @property
    def knows_length(self) -> bool:
        """Whether every form predicts from the length of training."""
        return all(member.form.fit.law.knows_length for member in self.members)

    @property
    def tests_mixtures(self) -> bool:
        """Whether a back-test of some form leaves out mixtures; with one source there are none to choose."""
        return len(self.sources) == 1 or any("mixture" in form.tests for form in self.forms)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each form: `law`, `share`, and its errors on what was left out; see `forms_table`."""
        return forms_table(self.forms)

    def losses(
        self, points: Array, *, size: float | Array | None = None, tokens: float | Array | None = None
    ) -> Array:
        """Return draws of every task's metric.

        Args:
            points: (n, sources) mixtures, in the order of `sources`.
            size: N, by default the target's; a number or (n,).
            tokens: D, by default the target's; a number or (n,).

        Returns:
            (draws, tasks, n); the draws of each member after those of the one before.
        """
        at = {"size": self.target.size if size is None else size,
              "tokens": self.target.tokens if tokens is None else tokens}  # fmt: skip
        known = {name: np.asarray(value, float) for name, value in at.items() if value is not None}
        return np.concatenate([self._losses(member, points, known) for member in self.members])

    def predict(
        self, points: Array, *, level: float = 0.95, **at: float | Array
    ) -> tuple[Array, tuple[Array, Array]]:
        """Return the mean over draws of every task's metric, and the interval of a new model's.

        Args:
            points: (n, sources) mixtures.
            level: Share of new models that the interval should hold.
            **at: `size` and `tokens`, as in `losses`.

        Returns:
            (tasks, n), and two arrays of this shape.
        """
        losses = self.losses(points, **at)
        return losses.mean(axis=0), bounds_of(self._with_noise(losses, apart=False), level)

    def models(self, points: Array, *, apart: bool = True, **at: float | Array) -> Array:
        """Return draws of models yet to be trained, with their noise.

        Args:
            points: (n, sources) mixtures.
            apart: Whether each mixture has noise of its own; else intervals change smoothly over mixtures.
            **at: `size` and `tokens`, as in `losses`.

        Returns:
            (draws, tasks, n); draws are repeated where they are few.
        """
        return self._with_noise(self.losses(points, **at), apart=apart)

    def _with_noise(self, losses: Array, *, apart: bool) -> Array:
        """Return models (draws, tasks, n) about draws of losses, at least as many as intervals need."""
        scatter = np.concatenate(
            [np.tile(noise_of(member.form.fit), (member.count, 1)) for member in self.members]
        )
        times = -(-_FEWEST_MODELS // len(losses))
        scatter, losses = np.tile(scatter, (times, 1)), np.tile(losses, (times, 1, 1))
        shape = losses.shape if apart else (*losses.shape[:2], 1)
        noise = scatter[..., None] * np.random.default_rng(0).standard_normal(shape)
        floors = np.array(list(floors_of(self.best).values()))[:, None]
        return np.asarray(floors + (losses - floors) * np.exp(noise))

    def noise(self, losses: Array) -> Array:
        """Return (tasks, n) standard deviations of one run, at (tasks, n) losses.

        They are about the best form that leaves observations to tell them. Noise is in proportion to the
        loss, or where the irreducible loss is known to what lies above it.
        """
        floors = np.array(list(floors_of(self.best).values()))[:, None]
        noises = [noise_of(member.form.fit) for member in self.members]
        known = next((noise for noise in noises if noise.all()), noises[0])
        return np.asarray(np.abs(losses - floors) * known[:, None])

    def _losses(self, member: Member, points: Array, at: dict[str, Array]) -> Array:
        fitted = member.form.fit
        columns = [self.sources.index(name) for name in fitted.sources]
        numbers = {
            name: value[None] if value.ndim else value
            for name, value in at.items()
            if name in fitted.law.predictors
        }
        shares = points[None][..., columns]
        predicted = fitted.evaluator.predict_points(member.draws, points=shares, **numbers)
        for axis, edge in member.form.untested.items():
            if axis in numbers:
                inside = {**numbers, axis: np.minimum(numbers[axis], edge)}
                near = fitted.evaluator.predict_points(member.draws, points=shares, **inside)
                predicted = _doubted(predicted, near, member.falls[..., None])
        floors = np.array(list(floors_of(fitted).values()))[:, None]
        above = predicted - floors
        above = np.where(floors > 0, np.maximum(above, 0.0), above)  # L∞ may be estimated below the floor
        return np.asarray(floors + above * np.exp(self._own_errors(member, points, at)))

    def _own_errors(self, member: Member, points: Array, at: dict[str, Array]) -> Array:
        """Return (draws, tasks, n) errors of log-losses by the law's own error."""
        total = np.zeros((member.count, len(self.tasks), len(points)))
        columns = [self.sources.index(task) if task in self.sources else None for task in self.tasks]
        weights = np.stack(
            [np.ones(len(points)) if column is None else points[:, column] for column in columns], axis=1
        )
        for error, (levels, slopes) in zip(member.form.model_errors, member.error_draws, strict=True):
            if error.axis in at:
                shape = levels[..., None] + slopes[..., None] * error.at(weights).T
                total += shape * error.distance(at[error.axis])
        return total


def _doubted(predicted: Array, near: Array, falls: Array) -> Array:
    """Return predictions beyond the data that err by a share of their change from those at its edge.

    A gain that comes in part is a part of the change; one that is greater than predicted goes on in
    proportion, so that losses stay above 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((near > 0) & (predicted > 0), near / predicted, 1.0)
    return np.asarray(np.where(falls > 0, predicted + falls * (near - predicted), predicted * ratio**falls))


def noise_of(fitted: LawFit) -> Array:
    """Return (tasks,) the standard deviation of a run's log(L - floor) about a law; 0 where it is unknown."""
    floors, numbers = floors_of(fitted), []
    for task in fitted.tasks:
        rows = fitted.rows[fitted.rows["task"] == task]
        table = pd.DataFrame({"observed": rows["value"], "predicted": fitted.predict(rows)}).dropna()
        freedom = len(table) - fitted.num_parameters(task)
        square = float(np.sum(log_errors(table, floors[task]) ** 2))
        numbers.append(np.sqrt(square / freedom) if freedom > 0 else 0.0)
    return np.array(numbers)


def forecast(
    observations: Observations,
    *,
    law: LawName | Law | Literal["auto"] = "auto",
    size: float | None = None,
    tokens: float | None = None,
    length: bool = False,
    objective: str = "log-ols",
    refits: int = 200,
    seed: int = 0,
) -> Forecast:
    """Average over the laws and rulers that a table admits, by their back-tests.

    Args:
        observations: The table.
        law: The name of one law, or `auto` for the average.
        size: N of the model that the forecast is for.
        tokens: D, its training length.
        length: Whether every form must predict from size and length, and level off, for models of any.
        objective: As in `fit`.
        refits: Draws altogether; each form has its share of them.
        seed: Seed of the refits and of the draws of own errors.

    Raises:
        TableError: If no form can be fitted.
    """
    target = Target(size=size, tokens=tokens)
    laws = _laws(law)
    forms = forms_of(observations, target, laws, length=length, objective=objective)
    if not forms:
        for definition in laws or ():  # a law that cannot be fitted says why
            fit(observations, law=definition, objective=objective, uncertainty=NO_REFITS)
        raise TableError(_no_form(observations, law, length=length))
    return _draw(observations, target, forms, refits=refits, seed=seed)


def _laws(law: LawName | Law | Literal["auto"]) -> list[Law] | None:
    if law == "auto":
        return None
    if isinstance(law, str) and law not in LAWS:
        raise ArgumentError(f"`law` must be auto or one of {', '.join(LAWS)}, but is {law!r}.")
    return [LAWS[law] if isinstance(law, str) else law]


def _no_form(observations: Observations, law: LawName | Law | str, *, length: bool) -> str:
    """Return why nothing can be forecast, and what would help."""
    if law != "auto":
        name = law if isinstance(law, str) else law.name
        return f"{observations.source}: the {name} law predicts no mixtures of this table; leave out --law."
    if length:
        return (
            f"{observations.source}: a budget needs runs of several sizes and training lengths; give a size."
        )
    rows = observations.frame
    if rows["weight"].eq(1).all() and rows["mixture"].eq("").all():
        cause = "every weight is 1; if a column holds the weights, name it by --column weight=COLUMN."
    elif rows["size"].nunique() == 2:
        cause = "two sizes show no exponent; add runs of a third."
    else:
        cause = "add runs of other mixtures."
    return f"{observations.source}: no law that predicts mixtures can be fitted; {cause}"


def _draw(
    observations: Observations, target: Target, forms: Sequence[Form], *, refits: int, seed: int
) -> Forecast:
    shares = shares_of(forms)
    order = np.argsort(-shares, kind="stable")
    forms, shares = [forms[i] for i in order], shares[order]
    large = [number for number, share in enumerate(shares) if share >= _LEAST_SHARE]
    total = shares[large].sum()
    members = tuple(
        member_of(forms[number], share=float(shares[number] / total), refits=refits, seed=seed + number)
        for number in large
    )
    return Forecast(target=target, members=members, forms=tuple(forms), observations=observations)


def member_of(form: Form, *, share: float, refits: int, seed: int) -> Member:
    """Return a form with its share of the draws."""
    count = max(1, round(share * refits)) if refits else 0
    method = ResidualBootstrap(refits=max(count, _FEWEST), seed=seed)
    draws = refit_like(form.fit, uncertainty=method).draws if count else form.fit.draws
    return _member(form, draws, share=share, count=count, seed=seed)


def _member(form: Form, draws: xr.Dataset, *, share: float, count: int, seed: int) -> Member:
    """Return a form with `count` draws of its parameters; with none the estimate is the only draw."""
    known, certain = np.flatnonzero(_finite(draws)), count == 0
    count = max(count, 1) if len(known) else 1
    draws = draws.isel(draw=known[np.arange(count) % len(known)]) if len(known) else _estimate(form)
    rng, tasks = np.random.default_rng([seed, 1]), len(form.fit.tasks)
    error_draws = tuple(error.draw(count, rng) for error in form.model_errors)
    normal = rng.standard_normal((count, 1)) + rng.standard_normal((count, tasks))
    falls = np.zeros_like(normal) if certain else UNTESTED * normal / np.sqrt(2.0)
    return Member(form=form, share=share, draws=draws, error_draws=error_draws, falls=falls)


def _estimate(form: Form) -> xr.Dataset:
    return form.fit.parameters.expand_dims(draw=1)


def _finite(draws: xr.Dataset) -> Array:
    """Return (draws,) whether a refit has parameters for every task."""
    tables = [values.transpose("draw", "task", ...).to_numpy() for values in draws.data_vars.values()]
    flags = [np.isfinite(table).any(axis=tuple(range(2, table.ndim))).all(axis=1) for table in tables]
    return np.asarray(np.all(flags, axis=0))


def forecast_of(fitted: LawFit, *, size: float | None = None, tokens: float | None = None) -> Forecast:
    """Return the forecast of one law that has been fitted already, with its own refits."""
    target = Target(size=size, tokens=tokens)
    form = form_of(fitted, target)
    member = _member(form, fitted.draws, share=1.0, count=fitted.draws.sizes["draw"], seed=0)
    return Forecast(target=target, members=(member,), forms=(form,), observations=fitted.observations)

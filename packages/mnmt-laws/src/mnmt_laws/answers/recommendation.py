"""The mixture to train: at a size and length or within a budget, by what a choice costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mnmt_laws.answers.arguments import (
    check_bound,
    check_each,
    check_least_weight,
    check_number,
    check_preference,
    check_shares,
    check_targets,
)
from mnmt_laws.answers.decision.asked import Asked, forecast_for
from mnmt_laws.answers.decision.choice import Question, choose, spread_of
from mnmt_laws.answers.decision.limits import Limits
from mnmt_laws.answers.decision.stakes import Rival
from mnmt_laws.answers.decision.wants import Aim, Want, intended
from mnmt_laws.answers.extrapolation import extrapolation
from mnmt_laws.answers.mixtures.budget import FLOPS_PER_TOKEN_PARAMETER
from mnmt_laws.arrays import Array
from mnmt_laws.errors import ArgumentError
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.forecasts.forecast import Forecast
from mnmt_laws.laws import LawName
from mnmt_laws.laws.law import Law
from mnmt_laws.tables.mixture import format_mixture
from mnmt_laws.tables.observations import Observations
from mnmt_laws.tables.source import TableSource, observe

Interval = tuple[float, float]

_BELOW = 0.5  # times the least weight fitted: the smallest weight of advice where none is given
_LEAST = 1e-3  # of any weight
_SHOWN = 5e-4  # of the metric's unit, by which targets are missed


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A mixture, what it is expected to reach, and what is at stake."""

    size: float | None
    """N, parameters; None where no form knows size."""

    tokens: float | None = None
    """D, tokens of all tasks; None where the table has one length."""

    budget: float | None = None
    """FLOPs of the run, where they were given."""

    want: Want

    limits: Limits = field(repr=False)
    """The mixtures that might be chosen."""

    weights: dict[str, float]
    """The mixture, a weight for every source."""

    rule: str = ""
    """The free rule that was taken (`equal weights`, …), where no mixture is expected to beat it by more than
    noise; else empty, and the mixture is that of least mean cost."""

    ranges: dict[str, Interval]
    """The weights of each source, the others kept in proportion, that are expected to cost at most `amount`
    more."""

    amount: float
    """In the metric's unit; of the aim `relative`, a share of the loss."""

    amount_given: bool = False
    """Whether the user gave the amount; else it is the scatter of one run."""

    regret: float
    """Expected regret: mean over the draws of the cost above each draw's best mixture."""

    rivals: tuple[Rival, ...]
    """Mixtures that one could take instead, and what they are expected to cost more."""

    predicted: dict[str, float]
    """The metric of each task, the mean over the draws."""

    intervals: dict[str, Interval]
    """95% interval of the metric of a new model."""

    size_range: Interval = (math.nan, math.nan)
    """With a budget, the sizes that cost at most `amount` more; NaN where the size was given."""

    warnings: tuple[str, ...] = ()
    """The ways in which the answer leaves the observed range."""

    forecast: Forecast = field(repr=False)
    """The average over forms that it rests on."""


def recommend(
    source: TableSource | Observations | LawFit | Forecast,
    *,
    size: float | None = None,
    tokens: float | None = None,
    budget: float | None = None,
    law: LawName | Law | Literal["auto"] = "auto",
    aim: Aim | None = None,
    preference: Mapping[str, float] | None = None,
    targets: Mapping[str, float] | None = None,
    least_weight: float | None = None,
    unique_tokens: Mapping[str, float] | None = None,
    repeats: float = math.inf,
    current: Mapping[str, float] | None = None,
    divergence: float = math.inf,
    amount: float | None = None,
    flops_per_token_parameter: float = FLOPS_PER_TOKEN_PARAMETER,
    refits: int = 200,
) -> Recommendation:
    """Return the mixture of least mean cost over the draws of a forecast, and what is at stake.

    Args:
        source: A run table or anything that `observe` takes, a fit, or a forecast.
        size: N, parameters; by default twice the largest fitted, or a larger one held out.
        tokens: D, tokens of all tasks; by default the longest fitted, where lengths differ.
        budget: C, the FLOPs of the run, in place of size or tokens, or of both.
        law: One law, or `auto` for the average over the laws and rulers that the table admits.
        aim: What is wanted; see `Aim`. Targets make it `targets`. Where neither they nor `preference` are
            given, it is that of the study's `[goal]`, or `mean`.
        preference: λ of each task; only proportions matter. Where no aim is given, it is that of the study's
            `[goal]`, or equal.
        targets: The metric that tasks should reach.
        least_weight: Smallest weight of a source; by default half the least that was fitted.
        unique_tokens: U of each source, the tokens that its corpus has; by default the table's column. They
            are the corpus' proportions.
        repeats: r, how often a corpus may be repeated: w_i ≤ r U_i / D.
        current: A mixture to compare with, and to stay near to.
        divergence: The Kullback-Leibler divergence from `current` that is allowed, in nats.
        amount: The extra cost that the ranges allow; by default the scatter of one run.
        flops_per_token_parameter: The cost of a run, 6 in C = 6 N D.
        refits: The number of draws.

    Raises:
        TableError: If the table cannot be read, or no law that predicts mixtures can be fitted.
        ArgumentError: If an argument is missing, superfluous or out of range.
    """
    if not isinstance(source, (LawFit, Forecast)):
        source = observe(source)
    observations = source if isinstance(source, Observations) else source.observations
    aim, preference = intended(observations, aim=aim, preference=preference, targets=targets)
    asked = Asked(size=size, tokens=tokens, budget=budget, rate=flops_per_token_parameter)
    if asked.is_open and aim != "mean":
        raise ArgumentError("`budget` chooses the size for the mean loss; for another aim give a size too.")
    want = _want(source.tasks, observations, aim, preference, targets)
    divergence, repeats = check_bound("divergence", divergence), check_bound("repeats", repeats)
    amount = None if amount is None else check_number("amount", amount)
    forecasted, ends = forecast_for(source, asked, law=law, preference=preference, refits=refits)
    sources = forecasted.sources
    corpus = _corpus(forecasted, unique_tokens)
    now = check_shares("current", current, sources) if current else {}
    caps = _caps(forecasted, corpus, repeats, tokens)
    least = check_least_weight(sources, least_weight) or _least(forecasted, caps)
    limits = Limits(least=least, most=caps, near=now, divergence=divergence)
    limits.check(sources)
    scale = amount or one_run(forecasted, want)
    proportions = check_shares("unique_tokens", corpus, sources) if corpus else {}
    choice = choose(forecasted, want, limits, amount=scale, current=now, proportions=proportions)
    point = np.array([choice.weights[name] for name in sources])
    predicted, intervals = _reached(forecasted, point)
    return Recommendation(
        size=forecasted.target.size, tokens=forecasted.target.tokens, budget=budget, want=want, limits=limits,
        size_range=asked.size_range(forecasted, want, point, scale), weights=choice.weights, rule=choice.rule,
        ranges=choice.ranges, amount=scale, amount_given=amount is not None, regret=choice.regret,
        rivals=choice.rivals, predicted=predicted, intervals=intervals, forecast=forecasted,
        warnings=(
            *_unreached(Question(forecast=forecasted, want=want, limits=limits), point),
            *_unchecked(forecasted), *extrapolation(forecasted.best, choice.weights, **forecasted.at), *ends,
        ),
    )  # fmt: skip


def _want(
    tasks: list[str],
    observations: Observations,
    aim: Aim,
    preference: Mapping[str, float] | None,
    targets: Mapping[str, float] | None,
) -> Want:
    return Want(
        aim=aim,
        importance=check_preference(tasks, preference),
        sign=-1 if observations.rising else 1,
        targets=check_targets(tasks, targets, observations.metric) if targets else {},
    )


def _unchecked(forecasted: Forecast) -> tuple[str, ...]:
    """Return a line if no back-test tells how far laws err between mixtures."""
    if forecasted.tests_mixtures:
        return ()
    names = ", ".join(member.form.name for member in forecasted.members)
    return (
        "no back-test leaves out a mixture, which takes at least two mixtures between the outermost: the "
        f"advice rests on the form of the laws alone ({names}).",
    )


def _unreached(question: Question, point: Array) -> tuple[str, ...]:
    """Return a line if no allowed mixture is expected to reach all targets, with the one that is nearest."""
    want, forecasted = question.want, question.forecast
    points = np.concatenate([point[None], spread_of(question)])
    mean = forecasted.losses(points).mean(axis=0)
    missed = want.missed(forecasted.sign * mean[None], forecasted.tasks)[0] if want.targets else np.zeros(1)
    best = int(missed.argmin())
    if missed[best] < _SHOWN:
        return ()
    mixture = format_mixture(dict(zip(forecasted.sources, points[best].round(3).tolist(), strict=True)))
    metrics = dict(zip(forecasted.tasks, mean[:, best].tolist(), strict=True))
    reached = ", ".join(f"{task} {metrics[task]:.3f} for {target:g}" for task, target in want.targets.items())
    return (f"no mixture is expected to reach the targets; {mixture} is nearest: {reached}.",)


def _reached(forecasted: Forecast, point: Array) -> tuple[dict[str, float], dict[str, Interval]]:
    """Return the metric of each task at a mixture, and its 95% interval for a new model."""
    mean, (low, high) = forecasted.predict(point[None])
    ends = zip(low[:, 0].tolist(), high[:, 0].tolist(), strict=True)
    tasks = forecasted.tasks
    return dict(zip(tasks, mean[:, 0].tolist(), strict=True)), dict(zip(tasks, ends, strict=True))


def one_run(forecasted: Forecast, want: Want) -> float:
    """Return the standard deviation of one run's cost, by its scatter about the best form."""
    count = len(forecasted.sources)
    mean, _ = forecasted.predict(np.full((1, count), 1.0 / count))
    return want.scatter(forecasted.noise(mean)[:, 0], np.abs(mean[:, 0]), forecasted.tasks)


def _corpus(forecasted: Forecast, unique_tokens: Mapping[str, float] | None) -> Mapping[str, float]:
    """Return the unique tokens of each source, by default the table's; empty where one has none."""
    if unique_tokens:
        check_each("unique_tokens", unique_tokens, forecasted.sources)
        return unique_tokens
    unique = forecasted.observations.frame.groupby("task")["unique_tokens"].median()
    known = {name: float(unique.get(name, math.nan)) for name in forecasted.sources}
    return known if np.isfinite(list(known.values())).all() else {}


def _caps(
    forecasted: Forecast, unique: Mapping[str, float], repeats: float, tokens: float | None
) -> dict[str, float]:
    """Return the greatest weight of each source, r U / D; empty without a limit of repetition."""
    if math.isinf(repeats):
        return {}
    length = tokens or forecasted.target.tokens or float(forecasted.observations.frame["tokens"].max())
    if not unique or not length > 0:
        raise ArgumentError(
            "`repeats` needs the unique tokens of every source (`unique_tokens`), and the length of training."
        )
    return {name: min(repeats * unique[name] / length, 1.0) for name in forecasted.sources}


def _least(forecasted: Forecast, caps: Mapping[str, float]) -> dict[str, float]:
    """Return half of the least weight above 0 that each source had; a smaller cap takes its place."""
    weights = forecasted.observations.mixtures_of(forecasted.best.rows)
    least = {
        name: max(_LEAST, _BELOW * float(weights[name][weights[name] > 0].min()))
        if name in weights
        else _LEAST
        for name in forecasted.sources
    }
    return {name: min(weight, caps.get(name, 1.0)) for name, weight in least.items()}

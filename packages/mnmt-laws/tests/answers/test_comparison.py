"""Which parameter the mixture moves: verdicts on tables where it is known, and the numbers behind them."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import KnownLaw, Observations, ResidualBootstrap, TableError, fit, observe, simulate
from mnmt_laws import compare as compare_any
from mnmt_laws.answers.comparison import RIVALS, LawComparison, verdict
from mnmt_laws.answers.comparison.evidence import shared_errors
from mnmt_laws.forecasts.rivals import find_rivals, keep_comparable, label_of
from mnmt_laws.laws import LawName

NONE = ResidualBootstrap(refits=0)
TABLE_ONLY: dict[str, Any] = {"left_out": False, "tables": 0}
SIZES, WEIGHTS = np.geomspace(1e6, 1e9, 7), np.array([0.1, 0.3, 0.6, 1.0])
PIVOT = 3e7
COUNTS: dict[LawName, int] = {"joint": 6, "limit-varies": 6, "exponent-varies": 6, "per-weighting": 12}


def compare(source: Observations, **options: Any) -> LawComparison:
    """Compare the four laws of one value for each weight."""
    return compare_any(source, **{"laws": list(RIVALS), "tables": 20, **options})


def table(moves: LawName, *, noise: float = 0.003, tasks: tuple[str, ...] = ("en-de",)) -> Observations:
    """Losses of tasks whose mixture moves β, L∞, α or all of them."""
    rng = np.random.default_rng(0)
    size, weight = (axis.ravel() for axis in np.meshgrid(SIZES, WEIGHTS))
    alpha, beta, limit = 0.35 + 0 * weight, 1 + 0 * weight, 0.8 + 0 * weight
    if moves in ("joint", "per-weighting"):
        beta = weight**-0.3
    if moves in ("limit-varies", "per-weighting"):
        limit = 0.8 + 0.6 * (1 - weight)
    if moves == "per-weighting":
        alpha = 0.35 + 0.2 * weight
    reducible = beta * (size / PIVOT) ** -alpha
    if moves == "exponent-varies":
        reducible = PIVOT**0.35 * size ** -(0.35 + 0.02 * np.log(weight))
    parts = [
        pd.DataFrame({"size": size, "weight": weight, "value": (reducible + limit) * noisy}).assign(task=task)
        for task in tasks
        for noisy in [np.exp(noise * rng.standard_normal(len(size)))]
    ]
    return observe(pd.concat(parts).assign(metric="loss"))


@pytest.fixture(scope="module")
def joint() -> LawComparison:
    return compare(table("joint"))


@pytest.mark.parametrize("moves", RIVALS)
def test_the_verdict_names_what_moves(moves: LawName, joint: LawComparison) -> None:
    result = joint if moves == "joint" else compare(table(moves))
    assert result.best == moves
    if moves == "per-weighting":
        assert "No single parameter carries the mixture: “all vary” is preferred" in result.verdict
    else:
        assert f"The mixture acts through one parameter, “{RIVALS[moves]}”: it has" in result.verdict


def test_laws_that_fit_alike_are_not_told_apart() -> None:
    rows = table("joint")
    level = rows.frame.groupby("size")["value"].transform("mean")  # the weight moves nothing
    level *= 1 + 0.01 * np.cos(np.searchsorted(SIZES, rows.frame["size"]))  # so that no law is perfect
    result = compare(dataclasses.replace(rows, frame=rows.frame.assign(value=level)))
    assert result.best == ""
    assert not result.decided
    assert result.preference.startswith("Undecided: “")
    assert "differ by less than 2" in result.reasons[0]


@pytest.mark.parametrize("objective", ["log-ols", "ols"])
def test_information_criteria_are_those_of_their_formulas(objective: str, joint: LawComparison) -> None:
    result = joint if objective == "log-ols" else compare(table("joint"), objective=objective, **TABLE_ONLY)
    for row in result.table.to_dict("records"):
        residuals = result.fits[row["law"]].residuals()
        n, k = len(residuals), COUNTS[row["law"]] + 1  # the scale of the noise is a parameter, too
        deviance = n * np.log(np.mean(residuals**2))  # -2 log-likelihood at the best scale, less constants
        assert row["num_params"] == k - 1
        assert row["aic"] == pytest.approx(deviance + 2 * k, rel=1e-10)
        assert row["bic"] == pytest.approx(deviance + k * np.log(n), rel=1e-10)


@pytest.mark.slow
def test_all_laws_are_held_against_the_same_rows() -> None:
    frame = table("joint").frame
    frame = frame[frame["size"].isin(SIZES[:5])]
    short = frame[~((frame["weight"] == 0.3) & (frame["size"] > SIZES[1]))]  # two sizes at this weight
    result = compare(short)
    without = compare(short[short["weight"] != 0.3])
    pd.testing.assert_frame_equal(result.table, without.table)


def test_a_table_that_cannot_be_compared_is_refused() -> None:
    frame = table("joint").frame
    with pytest.raises(TableError, match="needs a task with two weights of three sizes each; add runs"):
        compare(observe(frame[frame["weight"] == 1.0]))


def test_the_family_follows_from_the_table() -> None:
    names = {law.name for law in find_rivals(table("joint"))}
    assert {*RIVALS, "lines", "exponent-weight", "capacity", "linear-capacity", "power-capacity"} == names
    mixtures = [
        {"a": 0.5, "b": 0.3, "c": 0.2},
        {"a": 0.5, "b": 0.2, "c": 0.3},
        {"a": 0.2, "b": 0.2, "c": 0.6},
    ]
    mixtures += [
        {"a": 0.1, "b": 0.7, "c": 0.2},
        {"a": 0.3, "b": 0.6, "c": 0.1},
        {"a": 0.7, "b": 0.1, "c": 0.2},
    ]
    laws = dict.fromkeys("abc", KnownLaw.capacity(alpha=0.4, beta=300, l_inf=0.5))
    many = observe(simulate(laws, sizes=SIZES, mixtures=mixtures, noise=0.01))
    names = {law.name for law in find_rivals(many)}
    assert {"simplex-capacity", "mixture-limit"} <= names
    assert not names & {*RIVALS, "capacity", "power", "length"}


def test_runs_of_several_lengths_are_compared_by_laws_of_length() -> None:
    one = table("joint").frame
    added = {1e7: 0.4, 1e8: 0.2, 1e9: 0.1}
    parts = [one.assign(tokens=tokens, value=one["value"] + more) for tokens, more in added.items()]
    lengths = observe(pd.concat(parts).drop(columns="row"))
    names = {law.name for law in find_rivals(lengths)}
    assert {"length", "chinchilla-own", "he"} <= names
    assert not names & {*RIVALS, "capacity", "chinchilla"}


def with_runs(observations: Observations) -> Observations:
    """The same, where rows of one size and weight are of one run."""
    frame = observations.frame
    return dataclasses.replace(
        observations, frame=frame.assign(run=frame["size"].map(str) + frame["weight"].map(str))
    )


@pytest.mark.slow
def test_tasks_that_share_their_errors_count_once() -> None:
    single = table("joint", noise=0.01)
    both = pd.concat([single.frame.assign(task=task) for task in ("en-de", "en-zh")], ignore_index=True)
    double = with_runs(dataclasses.replace(single, frame=both))
    results = [compare(source, **TABLE_ONLY) for source in (double, single)]
    assert results[0].errors.correlation == pytest.approx(1.0)
    assert results[0].errors.design_effect == pytest.approx(2.0)
    pooled = [result.table.groupby("law")["bic"].sum() / result.errors.design_effect for result in results]
    np.testing.assert_allclose(*(bic - bic.min() for bic in pooled), rtol=1e-6)


def test_errors_that_tasks_do_not_share_count_in_full() -> None:
    apart = with_runs(table("joint", noise=0.01, tasks=("en-de", "en-zh")))
    assert shared_errors(fit(apart, uncertainty=NONE)).design_effect < 1.6


def test_a_verdict_that_hangs_on_the_limit_is_none() -> None:
    rng = np.random.default_rng(3)
    sizes, weights = np.geomspace(1e6, 2e7, 5), (0.2, 0.4, 0.7, 1.0)
    rows = [{"size": n, "weight": p, "task": "en-de", "metric": "loss",
             "value": (p**-0.4 * (n / 4e6) ** -0.25 + 0.5) * np.exp(0.004 * rng.standard_normal())}
            for n, p in itertools.product(sizes, weights)]  # fmt: skip
    free = compare(observe(pd.DataFrame(rows)), left_out=False)
    wrong = pd.DataFrame(rows).assign(irreducible=0.05)
    bounded = compare(observe(wrong), left_out=False)
    assert bounded.best != "joint" or free.best == "joint"
    assert all(
        isinstance(reason, str) and reason.endswith(".") for reason in (*free.reasons, *bounded.reasons)
    )


def test_the_verdict_begins_with_what_predicted_best(joint: LawComparison) -> None:
    first = joint.forms.iloc[0]
    assert joint.verdict.startswith(f"By what was left out, predictions rest on {first['law']} ")
    assert joint.forms["share"].sum() == pytest.approx(1.0)
    assert set(joint.forms["law"]) == set(RIVALS)


def test_unknown_laws_are_named() -> None:
    with pytest.raises(ValueError, match=r"`laws` must name laws among .*, but names 'kaplan'"):
        compare_any(table("joint"), laws=["kaplan"])  # type: ignore[list-item]
    assert keep_comparable(table("joint"), find_rivals(table("joint"), ["joint"])).tasks == ["en-de"]


@pytest.mark.parametrize(
    ("gap", "wins", "leads", "reason"),
    [
        (5.0, 76, 0, "Low power: if “{rival}” were true, only 76% of such tables would say so."),
        (42.0, 76, 0, ""),
        (
            42.0,
            40,
            30,
            "If “{rival}” were true, “{winner}” would still lead by as much in 30% of such tables.",
        ),
        (5.0, 90, 0, ""),
    ],
)
def test_power_counts_against_a_narrow_lead_only(
    monkeypatch: pytest.MonkeyPatch, gap: float, wins: int, leads: int, reason: str
) -> None:
    """Of 100 tables simulated from the rival it wins in some, and the winner leads by its gap in others."""
    simulated = np.concatenate([np.full(wins, 20.0), np.full(leads, -gap), np.zeros(100 - wins - leads)])
    monkeypatch.setattr(verdict, "simulate_contest", lambda *_, **__: simulated)
    monkeypatch.setattr(verdict, "_bounds", lambda *_: [])
    monkeypatch.setattr(verdict, "_limits", lambda *_: [])
    source = table("joint")
    laws: tuple[LawName, ...] = ("joint", "limit-varies")
    fits = {law: fit(source, law=law, uncertainty=NONE) for law in laws}
    ranking = pd.Series({"joint": 0.0, "limit-varies": gap})
    decided = verdict.decide(fits, ranking, shared_errors(fits["joint"]), tables=100)
    expected = reason.format(rival=label_of("limit-varies"), winner=label_of("joint"))
    assert decided.reasons == ((expected,) if reason else ())
    assert decided.best == ("" if reason else "joint")

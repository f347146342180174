"""Choices judged against a truth in closed form, and the small models that were fixed beforehand."""

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
EXPONENT, NOISE = 0.3, 0.01


@pytest.fixture(autouse=True)
def at_root(analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def loss_of(weight, sign, tilt):
    return weight ** -(EXPONENT + sign * tilt) * np.exp(sign * NOISE)


def power_laws(tilt=0.0):
    """Return losses of two tasks, L = p^-EXPONENT; seeds are ± NOISE off in log loss, ± tilt in exponent."""
    rows = [
        {"task": task, "weight": weight, "seed": sign, "value": loss_of(weight, sign, tilt)}
        for task in ("aa-xx", "bb-xx")
        for weight in (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
        for sign in (-1, 1)
    ]
    return pd.DataFrame(rows)


def truth_of_power_laws(**options):
    judgement = importlib.import_module("studies.analysis.decisions.judgement")
    return judgement.Truth(power_laws(), np.random.default_rng(0), **options)


@pytest.mark.parametrize("importance", [(1, 1), (4, 1), (1, 3)])
def test_best_weight_of_a_mean_is_that_of_calculus(importance):
    wants = importlib.import_module("studies.analysis.decisions.wants")
    costs = truth_of_power_laws().costs(wants.Wish(name="", importance=importance))[0]
    factors = np.array(importance) ** (1 / (1 + EXPONENT))  # where the derivatives are equal
    assert abs(wants.WEIGHTS[costs.argmin()] - factors[0] / factors.sum()) < 0.011


def test_runs_are_judged_by_other_seeds(monkeypatch):
    tables, wants, judgement, trials = (
        importlib.import_module(f"studies.analysis.decisions.{name}")
        for name in ("tables", "wants", "judgement", "trials")
    )
    monkeypatch.setattr(judgement, "DRAWS", 2)
    rows, wish = power_laws(tilt := 0.2), wants.Wish(name="4:1", importance=(4, 1))
    table = SimpleNamespace(name="made", judges=rows, wishes=[wish], tasks=sorted(set(rows["task"])))
    table.first_weights = lambda rows: tables.Table.first_weights(table, rows)
    small = {"small": "all", "method": "grid", "seed": 1, "want": wish.name, "weight": 0.3}
    decisions = [*judgement.decisions_of(table, pd.DataFrame([small]), np.random.default_rng(0))]
    assert [row["small"] for row in decisions].count(trials.OWN) == 2 * len(trials.COUNTS)
    for row in decisions:
        judge = -row["seed"] if row["small"] == trials.OWN else 0  # the mean of both, where all seeds judge
        costs = [
            0.8 * loss_of(weight, judge, tilt) + 0.2 * loss_of(1 - weight, judge, tilt)
            for weight in (wish.free, row["weight"], *wants.WEIGHTS)
        ]
        assert row["gains"][0] == pytest.approx(costs[0] - costs[1], abs=3e-3)
        assert row["regret"] == pytest.approx(costs[1] - min(costs[2:]), abs=3e-3)


def test_lead_is_the_mean_over_decisions_of_the_means_over_choices():
    judgement = importlib.import_module("studies.analysis.decisions.judgement")
    gains = {"tool": [(4, 1), (2, 1), (6, 3)], "runs": [(1, 1), (1, 1), (2, 5)]}
    decisions = pd.DataFrame(
        {"table": "made", "want": want, "small": "all", "method": method, "gains": np.array(draws, float)}
        for method, rows in gains.items()
        for want, draws in zip(("1:1", "1:1", "4:1"), rows, strict=True)
    )
    lead = judgement.lead_of(decisions, [(("all", "tool"), ("all", "runs"))]).iloc[0]
    assert lead["lead"] == ((4 + 2) / 2 + 6) / 2 - (1 + 2) / 2
    assert lead["lower"] == lead["upper"] == (1 + 3) / 2 - (1 + 5) / 2  # of the only draw


def test_few_runs_choose_as_many_do():
    wants = importlib.import_module("studies.analysis.decisions.wants")
    rows, wish = power_laws(), wants.Wish(name="", importance=(4, 1))
    few = rows[rows["weight"].isin([0.1, 0.5, 0.9])]  # none was trained alone
    assert wish.best(few) == pytest.approx(wish.best(rows), abs=0.1)


def test_a_run_scatters_as_its_seeds_do():
    wants = importlib.import_module("studies.analysis.decisions.wants")
    truth = truth_of_power_laws()
    assert truth.scatter == pytest.approx(np.full(2, np.sqrt(2) * NOISE))
    expected = NOISE * 0.5**-EXPONENT  # the mean of two independent losses at p = .5
    assert truth.run_scatter(wants.Wish(name="")) == pytest.approx(expected, rel=0.1)


def test_loss_alone_bounds_a_target():
    wants = importlib.import_module("studies.analysis.decisions.wants")
    costs = truth_of_power_laws().costs(wants.Wish(name="", aim="targets", times_alone=1.1))[0]
    assert wants.WEIGHTS[costs.argmin()] == pytest.approx(1.1 ** (-1 / EXPONENT), abs=0.011)


def test_methods_see_only_the_small_models_fixed_beforehand():
    tables = importlib.import_module("studies.analysis.decisions.tables")
    for table in tables.new_tables():
        for seed in (1, 2):
            most, least = (table.small(kind, seed).frame for kind in table.choices)
            assert len(most[most["weight"].gt(0)]) == 60
            assert len(least[least["weight"].gt(0)]) == 20
            assert set(least["run"]) < set(most["run"])
            assert most["size"].max() < table.size / 10

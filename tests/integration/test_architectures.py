"""Trends of gaps and ratios of exponents, against regression by another library and against exact laws."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import linregress
from scipy.stats import t as student

SIZES = np.array([11e3, 20e3, 46e3, 82e3, 184e3])


@pytest.fixture
def study(analysis):
    return lambda name: analysis(f"architectures.{name}")


def rows_of(values, variance, pairs=("Deep",), freedom=5):
    """Return differences over sizes, as `effects` gives them, all of one variance, pair after pair."""
    widths, sizes = np.tile([12, 16, 24, 32, 48], len(pairs)), np.tile(SIZES, len(pairs))
    return pd.DataFrame({
        "width": widths, "size": sizes, "value": values, "variance": variance, "freedom": freedom,
        "pair": np.repeat(pairs, 5),
    })  # fmt: skip


@pytest.mark.parametrize("noise", [1e-9, 1.0])
def test_a_trend_is_a_regression_on_doublings(study, noise):
    value = 0.1 - 0.02 * np.log2(SIZES) + np.array([0.01, -0.02, 0.03, 0.0, -0.01])
    line = study("gaps").trend(rows_of(value, noise**2))
    doublings = np.log2(SIZES) - np.log2(SIZES).mean()
    expected, reach = linregress(doublings, value), student.ppf(0.975, 25)  # five widths of five
    errors = [expected.intercept_stderr, expected.stderr]
    if noise == 1:  # more than the scatter
        errors = [noise / 5**0.5, noise / (doublings @ doublings) ** 0.5]
    assert [line["mean"], line["mean_upper"], line["per_doubling"], line["slope_upper"]] == pytest.approx([
        expected.intercept, expected.intercept + reach * errors[0],
        expected.slope, expected.slope + reach * errors[1],
    ])  # fmt: skip


def test_pairs_of_other_levels_share_one_slope(study):
    values = np.array([0.3, -0.5]).repeat(5) + 0.07 * np.log2(np.tile(SIZES, 2))
    line = study("gaps").trend(rows_of(values, 0.01, pairs=("Deep", "Wide")))
    assert line["per_doubling"] == pytest.approx(0.07)
    assert line["scatter"] == pytest.approx(0, abs=1e-12)


def test_exponents_of_exact_laws_have_their_ratios(study):
    laws = study("laws")
    alphas = {name: 0.3 + 0.04 * number for number, name in enumerate(laws.WEIGHTS)}
    rows = [
        {"model": name, "task": "en-de", "size": size, "value": 30 * size**-alpha + 1.5}
        for name, alpha in alphas.items()
        for size in SIZES
    ]
    fitted = laws.fit_models(pd.DataFrame(rows), refits=2)
    table = laws.exponents({"all": fitted}).set_index("model")
    assert table["relative"].to_dict() == pytest.approx(
        {name: a / 0.3 for name, a in alphas.items()}, rel=1e-2
    )
    assert table["exponent"].to_dict() == pytest.approx(alphas, rel=1e-2)


@pytest.mark.parametrize("predictor", ["size", "flops"])
def test_gaps_to_an_exact_law_are_what_was_added(study, predictor):
    sizes = {"EncDec": SIZES, "CausalLM Deep": 1.1 * SIZES}
    rows = pd.DataFrame({
        "model": np.repeat([*sizes], 5), "task": "supervised", "width": [12, 16, 24, 32, 48] * 2,
        "size": np.concatenate([*sizes.values()]), "variance": 1e-4, "freedom": 2,
    })  # fmt: skip
    rows["flops"] = 3 * rows["size"]
    rows["value"] = 9 * rows[predictor] ** -0.07 + 0.05 * rows["model"].ne("EncDec")
    gaps = study("gaps").gaps_to_encdec(rows, predictor=predictor)
    assert gaps["value"].to_numpy() == pytest.approx(np.full(5, 0.05))
    assert (gaps["upper"] - gaps["value"]).to_numpy() == pytest.approx(student.ppf(0.975, 2) * 0.01 * 2**0.5)


def table(models, widths, values, **columns):
    """Return a run table of the losses of models, widths and two seeds."""
    return pd.DataFrame([
        {
            "run": f"{model}-d{width}_all_seed{seed}", "task": "en-de", "size": width, "flops": 1.0,
            "step": 600, "seed": seed, "testset": "test", "metric": "loss", "value": values[i, j, seed],
            "annealed": 1, "weight": 1.0, **columns,
        }
        for i, model in enumerate(models) for j, width in enumerate(widths) for seed in (0, 1)
    ])  # fmt: skip


def test_small_effects_scale_the_variance_of_all_their_runs_once(study):
    values = np.random.default_rng(3).normal(4, 0.1, size=(2, 2, 2))  # model, width, seed
    models = study("models")
    losses = models.over_seeds(models.by_seed(table(("prefix-deep", "prefix-wide"), (12, 16), values)))
    effects = study("gaps").effects(losses[losses["task"].eq("supervised")])
    (small,) = study("gaps").trends(effects, by="effect").to_dict("records")
    assert small["mean"] == pytest.approx((values[0] - values[1]).mean())
    spread = values.var(axis=2, ddof=1).mean() / 2  # of four means over two seeds, a degree of freedom each
    assert small["mean_upper"] - small["mean"] == pytest.approx(student.ppf(0.975, 4) * spread**0.5)


def test_what_training_adds_is_compared_seed_by_seed(study):
    before = np.random.default_rng(5).normal(4, 0.1, size=(2, 2, 2))
    models = study("models")
    first, second = (
        models.by_seed(table(("encdec", "prefix-deep"), (12, 16), some)) for some in (before, before - 0.3)
    )
    change = models.change(first, second)
    assert change["value"].to_numpy() == pytest.approx(np.full(len(change), -0.3))
    assert change["variance"].to_numpy() == pytest.approx(np.zeros(len(change)), abs=1e-12)


def test_gains_of_transfer_are_at_the_lengths_of_the_least_dev_loss(study):
    models = "encdec", "causal-deep"
    losses = {(1.0, 300): 4.0, (1.0, 600): 4.2, (0.5, 300): 4.3, (0.5, 600): 3.9}
    dev = {**losses, (0.5, 300): 3.0}  # the other length than on the test set
    rows = pd.concat(
        table(models, (16, 32), np.full((2, 2, 2), value), step=step, weight=weight, testset=name)
        for name, some in (("test", losses), ("dev", dev)) for (weight, step), value in some.items()
    )  # fmt: skip
    gains = study("transfer").gains(rows).groupby("task")["value"].agg(["min", "max"])
    expected = {
        "300 steps each": -0.3, "600 steps each": 0.3, "300 steps alone, 600 beside": 0.1,
        "the best length of each": -0.3,
    }  # fmt: skip
    for column in gains:
        assert gains[column].to_dict() == pytest.approx(expected)


def test_untrained_directions_are_compared_with_trained_ones_into_the_same_languages(study):
    values = {"xx-aa": 2.0, "cc-bb": 3.0, "aa-xx": 9.0, "aa-bb": 4.0, "bb-aa": 5.0}
    rows = pd.concat(
        table(("encdec",), (24, 48), np.full((1, 2, 2), value), task=task) for task, value in values.items()
    )
    scores = study("transfer").scores(rows).groupby("task")["value"].mean()
    assert scores["zero-shot minus supervised"] == pytest.approx(4.5 - 2.5)

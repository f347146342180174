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


def test_a_trend_is_a_regression_on_doublings(study):
    value = 0.1 - 0.02 * np.log2(SIZES) + np.array([0.01, -0.02, 0.03, 0.0, -0.01])
    line = study("gaps").trend(SIZES, value, np.zeros(5))
    doublings = np.log2(SIZES) - np.log2(SIZES).mean()
    expected, reach = linregress(doublings, value), student.ppf(0.975, 3)
    half, half_slope = reach * expected.intercept_stderr, reach * expected.stderr
    assert [line["mean"], line["mean_lower"], line["mean_upper"]] == pytest.approx(
        [expected.intercept, expected.intercept - half, expected.intercept + half]
    )
    assert [line["per_doubling"], line["slope_lower"], line["slope_upper"]] == pytest.approx(
        [expected.slope, expected.slope - half_slope, expected.slope + half_slope]
    )


def test_pairs_of_other_levels_share_one_slope(study):
    levels, pairs = np.array([0.3, -0.5]).repeat(5), np.array(["Deep", "Wide"]).repeat(5)
    line = study("gaps").trend(np.tile(SIZES, 2), levels + 0.07 * np.log2(np.tile(SIZES, 2)), pairs)
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
        "size": np.concatenate([*sizes.values()]), "half": 0.01,
    })  # fmt: skip
    rows["flops"] = 3 * rows["size"]
    rows["value"] = 9 * rows[predictor] ** -0.07 + 0.05 * rows["model"].ne("EncDec")
    rows = rows.assign(lower=rows["value"] - rows["half"], upper=rows["value"] + rows["half"])
    gaps = study("gaps").gaps_to_encdec(rows, predictor=predictor)
    assert len(gaps) == 10  # of the model, and of the group it stands for
    assert gaps["value"].to_numpy() == pytest.approx(0.05)
    assert (gaps["upper"] - gaps["value"]).to_numpy() == pytest.approx(0.01 * 2**0.5)


def test_small_effects_scale_the_variance_of_all_their_runs_once(study):
    values = np.random.default_rng(3).normal(4, 0.1, size=(2, 2, 2))  # model, width, seed
    rows = pd.DataFrame([
        {
            "run": f"{model}-d{width}_all_seed{seed}", "task": "en-de", "size": width, "flops": 1.0,
            "step": 600, "seed": seed, "testset": "test", "metric": "loss", "value": values[i, j, seed],
        }
        for i, model in enumerate(("prefix-deep", "prefix-wide")) for j, width in enumerate((12, 16))
        for seed in (0, 1)
    ])  # fmt: skip
    losses = study("models").read_losses(rows)
    effects = study("gaps").effects(losses[losses["task"].eq("supervised")])
    (small,) = study("gaps").effects_when_small(effects).to_dict("records")
    assert small["mean"] == pytest.approx((values[0] - values[1]).mean())
    spread = values.var(axis=2, ddof=1).mean() / 2  # of four means over two seeds, a degree of freedom each
    assert small["upper"] - small["mean"] == pytest.approx(student.ppf(0.975, 4) * spread**0.5)

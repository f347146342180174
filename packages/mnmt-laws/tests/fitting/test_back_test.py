"""Back-tests: the error of a law on what it was refitted without."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import (
    Observations,
    ResidualBootstrap,
    back_test,
    back_tests,
    fit,
    observe,
    simulate,
)
from mnmt_laws.fitting.back_test import beyond

NONE = ResidualBootstrap(refits=0)


def test_the_largest_size_is_predicted_by_a_fit_without_it(study_table, laws) -> None:  # type: ignore[no-untyped-def]
    observations = observe(study_table, metric="loss")
    frame = observations.frame[observations.frame["role"] == "fit"]
    largest = frame["size"] == frame["size"].max()
    without = fit(dataclasses.replace(observations, frame=frame[~largest]), uncertainty=NONE)
    errors = frame.loc[largest, "value"].to_numpy() / without.predict(frame[largest]) - 1
    test = back_test(fit(observations, uncertainty=NONE))
    assert test is not None
    np.testing.assert_allclose(test.rows["error"], errors, atol=1e-7)
    assert test.error == pytest.approx(np.sqrt(np.mean(errors**2)), abs=1e-7)
    assert test.boundary == 83536
    assert test.reach == pytest.approx(148160 / 83536)
    assert test.describe().startswith("Fitted without the largest size (1.8 times the next, 8.35e+04 param")


def test_a_law_that_is_true_is_right_about_what_it_has_not_seen(clean: Observations) -> None:
    fitted = fit(clean, law="capacity", uncertainty=NONE)
    for left_out in ("size", "mixture"):
        test = back_test(fitted, left_out=left_out)  # type: ignore[arg-type]
        assert test is not None
        assert test.error < 1e-6
    assert back_test(fitted, left_out="tokens") is None
    assert [test.left_out for test in back_tests(fitted)] == ["size"]


def test_a_law_that_is_wrong_errs_beyond_noise(laws) -> None:  # type: ignore[no-untyped-def]
    table = simulate(laws, sizes=np.geomspace(1e4, 1e6, 8), weights=(0.2, 0.5, 0.8), noise=0.002)
    bent = table.assign(value=table["value"] * (1 + 0.3 * (np.log10(table["size"]) - 4) ** 3 / 8))
    test = back_test(fit(bent, uncertainty=NONE))
    assert test is not None
    assert test.chance < 0.001
    assert test.excess > 1
    assert test.signs == "all six above the prediction"


def test_too_few_sizes_have_no_back_test(clean: Observations) -> None:
    few = clean.frame["size"].isin(sorted(clean.frame["size"].unique())[:3])
    assert back_test(fit(clean.frame[few], uncertainty=NONE)) is None


def runs(lengths: tuple[float, ...], *, spread: float = 0.015, seeds: int = 2) -> pd.DataFrame:
    """Runs of one task of several lengths, whose tokens lie up to `spread` above or below each."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "task": "a", "size": size, "weight": weight, "tokens": length * (1 + spread * rng.uniform(-1, 1)),
            "seed": seed, "value": (1 + 90 * (size * weight) ** -0.5 + 60 * (length * weight) ** -0.4)
            * (1 + 0.002 * rng.standard_normal()),
        }
        for size in np.geomspace(1e3, 1e5, 5)
        for length in lengths
        for weight in (0.2, 0.5, 1.0)
        for seed in range(seeds)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("spread", [0.0, 0.015, 0.03, 0.1])
def test_lengths_that_differ_by_little_are_one(spread: float) -> None:
    fitted = fit(runs((1e5, 2e5, 4e5, 8e5), spread=spread), law="share-tied", uncertainty=NONE)
    test = back_test(fitted, left_out="tokens")
    assert test is not None
    assert len(test.rows) == 30
    assert test.rows["tokens"].min() > 7e5
    assert test.reach == pytest.approx(2, rel=0.12)
    assert test.boundary == pytest.approx(4e5, rel=0.11)


def test_one_length_has_no_back_test_however_it_varies() -> None:
    fitted = fit(runs((1e5,), spread=0.2), law="share-tied", uncertainty=NONE)
    assert back_test(fitted, left_out="tokens") is None


def test_each_task_reaches_beyond_its_own_longest_training() -> None:
    brief = runs((1e5, 2e5, 4e5, 8e5), spread=0)
    long = brief.assign(task="b", tokens=4 * brief["tokens"])
    both = fit(pd.concat([brief, long]), law="share-tied", uncertainty=NONE)
    test = back_test(both, left_out="tokens")
    assert test is not None
    assert test.reach == pytest.approx(2)


def test_the_greatest_compute_is_predicted_by_a_fit_without_it() -> None:
    table = runs((1e5, 2e5, 4e5, 8e5), spread=0)
    compute = table["size"] * table["tokens"]
    outer = compute > compute.quantile(0.9)  # five sizes by four lengths are 20 computes, more than twelve
    test = back_test(fit(table, law="share-tied", uncertainty=NONE), left_out="compute")
    without = fit(table[~outer], law="share-tied", uncertainty=NONE)
    assert test is not None
    errors = table["value"] / without.predict(table) - 1
    np.testing.assert_allclose(np.sort(test.rows["error"]), np.sort(errors[outer]), atol=1e-7)
    assert test.boundary == compute[~outer].max()
    brief = fit(table[table["tokens"] == 1e5], law="capacity", uncertainty=NONE)
    assert back_test(brief, left_out="compute") is None


def test_many_values_leave_out_the_outer_tenth() -> None:
    values = np.geomspace(1, 100, 200)
    np.testing.assert_array_equal(beyond(values), values > np.quantile(values, 0.9))

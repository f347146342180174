"""Back-tests: the error of a law on what it was refitted without."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mnmt_laws import Observations, ResidualBootstrap, back_test, fit, observe, simulate

NONE = ResidualBootstrap(refits=0)


def test_the_largest_size_is_predicted_by_a_fit_without_it(study_table, laws) -> None:  # type: ignore[no-untyped-def]
    observations = observe(study_table, metric="loss")
    frame = observations.frame[observations.frame["role"] == "fit"]
    largest = frame["size"] == frame["size"].max()
    without = fit(dataclasses.replace(observations, frame=frame[~largest]), uncertainty=NONE)
    errors = frame.loc[largest, "value"].to_numpy() / without.predict(frame[largest]) - 1
    test = back_test(observations)
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
    assert [test.left_out for test in fitted.back_tests] == ["size"]


def test_a_law_that_is_wrong_errs_beyond_noise(laws) -> None:  # type: ignore[no-untyped-def]
    table = simulate(laws, sizes=np.geomspace(1e4, 1e6, 8), weights=(0.2, 0.5, 0.8), noise=0.002)
    bent = table.assign(value=table["value"] * (1 + 0.3 * (np.log10(table["size"]) - 4) ** 3 / 8))
    test = back_test(observe(bent))
    assert test is not None
    assert test.chance < 0.001
    assert test.excess > 1
    assert test.signs == "all six above the prediction"


def test_too_few_sizes_have_no_back_test(clean: Observations) -> None:
    few = clean.frame["size"].isin(sorted(clean.frame["size"].unique())[:3])
    assert back_test(dataclasses.replace(clean, frame=clean.frame[few])) is None

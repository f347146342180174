"""Simulated run tables."""

from __future__ import annotations

import numpy as np
import pytest

from mnmt_laws import KnownLaw, ResidualBootstrap, example_law, fit, simulate
from mnmt_laws.laws import LawName

MIXTURES = [
    {"en-de": first, "en-fr": second, "en-zh": round(1 - first - second, 12)}
    for first, second in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.5, 0.5), (0.5, 0.0), (0.0, 0.4), (0.2, 0.3),
                          (0.6, 0.1), (0.1, 0.8))
]  # fmt: skip


def known(name: LawName, *partners: str) -> KnownLaw:
    return example_law(name, partners=partners, seed=4)


def test_tasks_and_test_sets_that_nobody_trains_on_are_found_again() -> None:
    laws = {
        "en-de": known("transfer-share", "en-fr", "en-zh"),
        "medicine": known("transfer-share", "en-de", "en-zh"),  # en-fr has the largest mean weight
    }
    table = simulate(
        laws, sizes=np.geomspace(1e6, 1e9, 4), lengths=np.geomspace(2e8, 2e10, 3), mixtures=MIXTURES
    )
    assert table.groupby("task")["weight"].max().to_dict() == {"en-de": 1, "medicine": 0}
    fitted = fit(table, law="transfer-share", uncertainty=ResidualBootstrap(refits=0), irreducible="ignore")
    observed, predicted = fitted.fitted_values
    assert len(observed) == len(table)
    np.testing.assert_allclose(predicted, observed, rtol=1e-8)
    for task, law in laws.items():
        gains = fitted.parameters["tau"].sel(task=task).dropna("partner")
        assert dict(zip(gains.partner.values, gains.values, strict=True)) == pytest.approx(
            law.parameters["tau"]
        )


def test_models_of_a_kind_differ_by_their_noise_alone() -> None:
    laws = {"en-de": known("chinchilla")}
    options = {"sizes": [1e6, 1e7], "lengths": [1e9, 1e10], "mixtures": [{"en-de": 1.0}]}
    exact = simulate(laws, **options, seeds=3)
    assert exact.groupby(["size", "tokens"])["value"].nunique().eq(1).all()
    noisy = simulate(laws, **options, seeds=300, noise=0.02)
    cells = noisy.groupby(["size", "tokens"])["value"]
    np.testing.assert_allclose(cells.std() / cells.mean(), 0.02, rtol=0.2)
    assert (noisy["flops"] == 6 * noisy["size"] * noisy["tokens"]).all()


def test_weight_0_is_simulated_only_for_laws_that_know_it() -> None:
    mixtures = [{"en-de": 0.5, "en-fr": 0.5}, {"en-fr": 1.0}]
    counts = {
        name: len(simulate({"en-de": known(name, "en-fr")}, sizes=[1e6], mixtures=mixtures))
        for name in ("simplex-capacity", "transfer-capacity")
    }
    assert counts == {"simplex-capacity": 1, "transfer-capacity": 2}

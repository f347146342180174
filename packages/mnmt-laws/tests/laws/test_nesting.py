"""Laws that hold others as special cases, and what they say where a task has no weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws.arrays import Array
from mnmt_laws.laws import LAWS, LawName
from mnmt_laws.laws.exposure import own_share
from mnmt_laws.laws.fraction import HumpFraction
from mnmt_laws.laws.known import KnownLaw, example_law
from mnmt_laws.laws.multilingual import saturate
from mnmt_laws.laws.transfer import TransferFraction

PARTNERS = ("en-fr", "en-zh")
Parameters = Mapping[str, object]


def models(rng: np.random.Generator, *, partners: int = 2, alone: bool = False) -> dict[str, Array]:
    """Forty models of all kinds."""
    weights = rng.dirichlet(np.ones(partners + 1), 40)
    if alone:
        weights = np.eye(partners + 1)[np.zeros(40, dtype=int)]
    tokens = np.exp(rng.uniform(np.log(1e8), np.log(4e10), 40))
    return {
        "size": np.exp(rng.uniform(np.log(1e6), np.log(1e9), 40)),
        "tokens": tokens,
        "unique_tokens": tokens * rng.uniform(0.1, 1, 40),
        "weight": weights[:, 0],
        "partners": weights[:, 1:],
    }


def law(name: LawName, more: Parameters = {}, *, base: LawName | None = None) -> KnownLaw:  # noqa: B006
    """Return a law with plausible parameters: those of `base` it shares, then `more`."""
    own = example_law(name, partners=PARTNERS, seed=1).parameters
    known = example_law(base, partners=PARTNERS, seed=1).parameters if base else {}
    return KnownLaw(law=name, parameters={**own, **{k: known[k] for k in own.keys() & known.keys()}, **more})  # type: ignore[dict-item]


CASES: list[tuple[LawName, Parameters, LawName]] = [
    ("length-shared", {"q": 1.0}, "length"),
    ("length-coupled", {"e": 0.0}, "length"),
    ("length-full", {"q": 1.0, "e": 0.0}, "length"),
    ("share-coupled", {"e": 0.0}, "share"),
    ("chinchilla-own", {}, "atlas"),
    ("chinchilla-coupled", {"e_size": 0.0}, "chinchilla"),
    ("he", {"gamma": 0.0}, "chinchilla"),
]


@pytest.mark.parametrize(("name", "special", "nested"), CASES)
def test_a_law_with_special_parameters_is_the_law_nested_in_it(
    name: LawName, special: Parameters, nested: LawName
) -> None:
    x = models(np.random.default_rng(0))
    simple = law(nested, {"tau": 0.0} if nested == "atlas" else {})
    general = law(name, special, base=nested)
    np.testing.assert_allclose(general.losses(x, PARTNERS), simple.losses(x, PARTNERS), rtol=1e-12)


def at_three_weights(rng: np.random.Generator) -> tuple[dict[str, Array], tuple[float, ...]]:
    """Forty models at three weights."""
    weights = (0.2, 0.6, 1.0)
    return models(rng) | {"weight": rng.choice(weights, 40)}, weights


def test_free_shares_and_factors_hold_the_laws_of_a_share() -> None:
    x, weights = at_three_weights(np.random.default_rng(1))
    tied, length = law("share-tied"), law("length")
    shares = {p: float(HumpFraction().share({"weight": np.array([p])}, _theta(tied))[0]) for p in weights}
    gain = {p: share / p for p, share in shares.items()}
    common = {name: tied.parameters[name] for name in ("alpha", "e", "beta", "gamma", "l_inf")}
    free = KnownLaw(law="share-free", parameters={**common, "gain": gain})
    np.testing.assert_allclose(free.losses(x), tied.losses(x), rtol=1e-12)
    alpha, delta, beta, gamma = (float(length.parameters[n]) for n in ("alpha", "delta", "beta", "gamma"))  # type: ignore[arg-type]
    shares = {p: float(HumpFraction().share({"weight": np.array([p])}, _theta(length))[0]) for p in weights}
    factors = {
        "beta": {p: beta * share**-alpha for p, share in shares.items()},
        "gamma": {p: gamma * p**-delta for p in weights},
    }
    joint = KnownLaw(
        law="length-joint",
        parameters={"alpha": alpha, "delta": delta, "l_inf": length.parameters["l_inf"], **factors},
    )
    np.testing.assert_allclose(joint.losses(x), length.losses(x), rtol=1e-12)


def test_an_exponent_linear_in_the_weight_makes_lines_without_a_limit() -> None:
    x, weights = at_three_weights(np.random.default_rng(2))
    alpha, slope, power, delta, beta = 0.3, 0.04, 0.2, 0.25, 7.0
    varying = KnownLaw(
        law="exponent-weight",
        parameters={"alpha": alpha, "s": slope, "q": power, "beta": beta, "l_inf": 0.0},
    )
    lines = KnownLaw(
        law="lines",
        parameters={
            "alpha": {p: alpha + slope * np.log(p) for p in weights},
            "beta": {p: beta * p**-power for p in weights},
        },
    )
    np.testing.assert_allclose(varying.losses(x), lines.losses(x), rtol=1e-12)
    long = replace(varying, law="exponent-exposure", parameters={**varying.parameters, "delta": delta})
    size, exposure = np.log(x["size"]), np.log(x["weight"] * x["tokens"])
    logs = np.log(beta) - power * np.log(x["weight"]) - delta * np.log(x["tokens"])
    np.testing.assert_allclose(long.losses(x), np.exp(logs - (alpha + slope * exposure) * size), rtol=1e-12)


def _theta(known: KnownLaw) -> dict[str, Array]:
    return {name: np.array([value]) for name, value in known.parameters.items()}


@pytest.mark.parametrize("name", [name for name in LAWS if LAWS[name].fraction and LAWS[name].knows_length])
def test_endless_training_leaves_the_capacity_law(name: LawName) -> None:
    x = models(np.random.default_rng(0)) | {"tokens": np.full(40, 1e300)}
    long = law(name)
    fraction = type(LAWS[name].fraction).__name__
    capacity: LawName = {
        "HumpFraction": "capacity",
        "PowerFraction": "power-capacity",
        "SimplexFraction": "simplex-capacity",
        "TransferFraction": "transfer-capacity",
    }[fraction]  # type: ignore[assignment]
    np.testing.assert_allclose(
        long.losses(x, PARTNERS), law(capacity, {}, base=name).losses(x, PARTNERS), rtol=1e-9
    )


@pytest.mark.parametrize("name", ["length", "length-shared", "simplex-length", "share"])
def test_a_task_alone_follows_the_law_of_size_and_data(name: LawName) -> None:
    x = models(np.random.default_rng(0), alone=True)
    ours = law(name)
    theirs = KnownLaw(
        law="chinchilla",
        parameters={
            short: ours.parameters[long]
            for short, long in zip(
                ("alpha", "beta", "a", "b", "e"), ("alpha", "delta", "beta", "gamma", "l_inf"), strict=True
            )
        },
    )
    np.testing.assert_allclose(ours.losses(x, PARTNERS), theirs.losses(x), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in LAWS if LAWS[name].zero_shot])
def test_laws_of_zero_weight_predict_finite_losses_there_with_finite_derivatives(name: LawName) -> None:
    x = models(np.random.default_rng(0))
    x["weight"], x["partners"] = np.zeros(40), x["partners"] / x["partners"].sum(axis=1, keepdims=True)
    x["partners"][:5] = np.eye(2)[[0, 1, 0, 1, 0]]
    known = example_law(name, partners=PARTNERS, seed=2)
    assert np.isfinite(known.losses(x, PARTNERS)).all()
    theta = {
        key: np.atleast_1d(list(v.values()) if isinstance(v, dict) else v)
        for key, v in known.parameters.items()
    }
    features = LAWS[name].features(x, theta)
    parts = {key: theta[key] * feature for key, feature in features.items()}
    for slope in LAWS[name].slopes(x, theta, parts).values():
        assert np.isfinite(slope).all()


@given(decay=st.floats(1e-3, 10), epochs=st.floats(0.01, 1000))
def test_repeated_tokens_are_worth_less_and_less(decay: float, epochs: float) -> None:
    worth, slope = saturate(np.array([epochs, 2 * epochs]), np.array([decay]))
    assert worth[0] <= worth[1] <= 1 + 1 / decay + 1e-9
    assert (worth <= np.array([epochs, 2 * epochs]) * (1 + 1e-12)).all()
    assert (slope <= 1e-9).all()


def test_perfect_substitutes_add_their_shares() -> None:
    x = models(np.random.default_rng(0))
    theta = {"tau": np.array([0.3, 0.1]), "tau_0": np.array([0.0]), "rho": np.array([1.0])}
    expected = x["weight"] + x["partners"] @ theta["tau"]
    np.testing.assert_allclose(TransferFraction().share(x, theta), expected, rtol=1e-12)


def test_a_task_that_is_no_source_has_the_references_share() -> None:
    partners = np.array([[0.2, 0.3], [0.5, 0.5], [0.1, 0.9 + 1e-12]])
    np.testing.assert_allclose(own_share({"partners": partners}), [0.5, 0, 0])

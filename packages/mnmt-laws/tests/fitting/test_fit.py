"""What must hold of fits to any table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from _pytest.mark import ParameterSet
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_laws import (
    KnownLaw,
    Observations,
    Perturbation,
    TableError,
    fit,
    fitted_fraction,
    observe,
    simulate,
)
from mnmt_laws.laws import LAWS, LawName

LAW_NAMES: tuple[LawName, ...] = ("per-weighting", "joint", "capacity")
ALL_LAWS: tuple[LawName, ...] = tuple(LAWS)  # type: ignore[arg-type]
FAST_LAWS = (
    "power", "per-weighting", "joint", "capacity", "share", "ye", "chinchilla", "gordon",
)  # fmt: skip
"""A law of each kind, which every change fits; the others are slow."""
OBJECTIVES = ("log-ols", "ols")
ESTIMATE_ONLY = Perturbation(refits=0)


def random_table(seed: int, *, sizes: int = 5, weights: int = 3) -> pd.DataFrame:
    """Losses between 0.5 and 5 that obey no law, with every column that a law takes."""
    rng = np.random.default_rng(seed)
    size, weight = (
        axis.ravel()
        for axis in np.meshgrid(np.geomspace(1e6, 1e9, sizes), np.linspace(0.2, 1, weights).round(3))
    )
    encoder = rng.uniform(0.3, 0.7, len(size))
    tokens = np.exp(rng.uniform(np.log(1e8), np.log(1e10), len(size)))
    frame = pd.DataFrame({"size": size, "weight": weight, "value": rng.uniform(0.5, 5.0, len(size))})
    return frame.assign(
        task="en-de", metric="loss", encoder_size=encoder * size, decoder_size=(1 - encoder) * size,
        tokens=tokens, flops=6 * size * tokens, unique_tokens=rng.uniform(1e8, 5e8, len(size)),
        mixture=[f"en-de:{own},en-zh:{1 - own}" for own in weight],
    )  # fmt: skip


def lawful_table(seed: int, *, noise: float = 0.01) -> pd.DataFrame:
    """The same with losses that every law describes more or less."""
    rng = np.random.default_rng([seed, 1])
    frame = random_table(seed, sizes=6, weights=4)
    share = frame["weight"] + 0.2 * frame["weight"] ** 0.5 * (1 - frame["weight"])
    value = (share * frame["size"] / 3e7) ** -0.35 + (frame["tokens"] / 1e8) ** -0.4 + 0.8
    return frame.assign(value=value * np.exp(noise * rng.standard_normal(len(frame))))


def each_with_one_of(objectives: tuple[str, ...]) -> list[tuple[LawName, str]]:
    """Each law with the next of the objectives, and the joint law with all."""
    turns = list(zip(ALL_LAWS, itertools.cycle(objectives), strict=False))
    return [*turns, *(("joint", objective) for objective in objectives if ("joint", objective) not in turns)]


def fast_or_slow(cases: Sequence[Any]) -> list[ParameterSet]:
    """Cases that are, or begin with, the name of a law; slow but for a law of each kind."""
    names = [case if isinstance(case, str) else case[0] for case in cases]
    return [
        pytest.param(
            *([case] if isinstance(case, str) else case), marks=() if name in FAST_LAWS else pytest.mark.slow
        )
        for case, name in zip(cases, names, strict=True)
    ]


def squares(observations: Observations, law: LawName, objective: str = "log-ols") -> float:
    fitted = fit(observations, law=law, objective=objective, uncertainty=ESTIMATE_ONLY, prior="none")
    return float(np.sum(fitted.residuals() ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("law", fast_or_slow(ALL_LAWS))
@given(seed=st.integers(0, 10**6))
@settings(max_examples=1)
def test_row_order_does_not_matter(law: LawName, seed: int) -> None:
    table = random_table(seed)
    shuffled = table.sample(frac=1, random_state=seed)
    few = Perturbation(refits=2)
    one, two = (fit(observe(rows), law=law, uncertainty=few) for rows in (table, shuffled))
    xr.testing.assert_identical(one.parameters, two.parameters)
    xr.testing.assert_identical(one.draws, two.draws)


# Where α varies and β does not, β is the loss that the laws of all weights share at N = 1: a unit of N moves
# that place, so the law of another unit is another law.
UNIT_FREE: tuple[LawName, ...] = tuple(law for law in ALL_LAWS if law != "exponent-varies")

# Their exponents are those of one parameter, one token and one task, far from the data; bounds hold within.
FAR_LAWS, FAR_EXPONENTS = ("exponent-weight", "exponent-exposure"), ("alpha", "delta", "q")


def is_far(law: str, parameter: str) -> bool:
    return law in FAR_LAWS and parameter in FAR_EXPONENTS


@pytest.mark.parametrize("law", fast_or_slow(UNIT_FREE))
@given(scale=st.sampled_from([1e3, 7.0]), seed=st.integers(0, 100))
@settings(max_examples=1)
def test_units_of_size_and_tokens_move_no_prediction(law: LawName, scale: float, seed: int) -> None:
    table = lawful_table(seed)
    counts = ["size", "encoder_size", "decoder_size", "tokens", "unique_tokens"]
    scales = dict.fromkeys(counts, scale) | {"flops": scale**2}
    one, two = (
        fit(observe(rows), law=law, uncertainty=ESTIMATE_ONLY)
        for rows in (table, table.assign(**{name: table[name] * by for name, by in scales.items()}))
    )
    np.testing.assert_allclose(one.fitted_values, two.fitted_values, rtol=1e-7)
    for parameter in LAWS[law].parameters:
        same = parameter.kind == "exponent" and not is_far(law, parameter.name)
        if same and parameter.name in one.parameters and not one.diagnostics:
            assert_same(one.parameters[parameter.name], two.parameters[parameter.name], rtol=1e-5)


def assert_same(one: xr.DataArray, two: xr.DataArray, *, rtol: float) -> None:
    np.testing.assert_allclose(one.transpose(*two.dims).values, two.values, rtol=rtol, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "objective"), fast_or_slow(each_with_one_of(OBJECTIVES)))
@given(scale=st.sampled_from([1 / np.log(2), 100.0, 1e-4]), seed=st.integers(0, 100))
@settings(max_examples=1)
def test_the_unit_of_loss_scales_factors_and_limits(
    law: LawName, objective: str, scale: float, seed: int
) -> None:
    table = lawful_table(seed)
    one, two = (
        fit(observe(rows), law=law, objective=objective, uncertainty=ESTIMATE_ONLY)
        for rows in (table, table.assign(value=table["value"] * scale))
    )
    np.testing.assert_allclose(one.fitted_values[1] * scale, two.fitted_values[1], rtol=1e-6)
    for parameter in LAWS[law].parameters:
        if parameter.name in one.parameters and not one.diagnostics:
            factor = scale if parameter.linear else 1.0
            assert_same(one.parameters[parameter.name] * factor, two.parameters[parameter.name], rtol=2e-3)


LOOSER: list[tuple[LawName, LawName]] = [
    ("per-weighting", "joint"), ("per-weighting", "limit-varies"), ("per-weighting", "exponent-varies"),
    ("joint", "power"), ("limit-varies", "power"), ("exponent-varies", "power"),
    ("joint", "capacity"), ("joint", "linear-capacity"), ("chinchilla", "power"), ("zhang", "power"),
    ("power", "zhang"), ("capacity", "simplex-capacity"), ("simplex-capacity", "capacity"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_table, lawful_table])
@pytest.mark.parametrize("objective", OBJECTIVES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=1)
def test_a_law_with_more_freedom_never_fits_worse(
    objective: str, make: Callable[[int], pd.DataFrame], seed: int
) -> None:
    rows = observe(make(seed))
    least = {law: squares(rows, law, objective) for law in dict.fromkeys(itertools.chain(*LOOSER))}
    for loose, tight in LOOSER:
        assert least[loose] <= least[tight] * (1 + 1e-9), (loose, tight)


@pytest.mark.parametrize("make", [random_table, lawful_table])
@pytest.mark.parametrize("law", fast_or_slow(ALL_LAWS))
@given(seed=st.integers(0, 10**6))
@settings(max_examples=1)
def test_bounds_are_never_left(law: LawName, make: Callable[[int], pd.DataFrame], seed: int) -> None:
    table = observe(make(seed))
    found = fit(table, law=law, uncertainty=Perturbation(share=0.1, refits=3))
    # Refits that end short of a minimum are unknown (NaN), all of them, and the fit says so.
    known = not any(line.message.endswith("did not end at a minimum.") for line in found.diagnostics)
    for dataset in (found.parameters, found.draws) if known else (found.parameters,):
        for parameter in LAWS[law].parameters:
            if parameter.name not in dataset or is_far(law, parameter.name):
                continue
            values = (
                dataset[parameter.name].dropna(parameter.varies)
                if parameter.varies
                else dataset[parameter.name]
            )
            low, high = parameter.bounds
            assert float(values.min()) >= low - 1e-12
            assert float(values.max()) <= high * (1 + 1e-12)
    limits = [parameter for parameter in LAWS[law].parameters if parameter.kind == "limit"]
    for parameter in limits:
        values = found.parameters[parameter.name].sel(task="en-de")
        by_weight = table.fit.groupby("weight")["value"].min().to_numpy()
        assert (np.atleast_1d(values.values) <= (by_weight if parameter.varies else by_weight.min())).all()


def repeated(table: pd.DataFrame, times: int) -> pd.DataFrame:
    return pd.concat([table.assign(seed=seed) for seed in range(times)])


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=4)
def test_repeated_measurements_count_by_their_number(objective: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = repeated(lawful_table(seed), 3)
    table["value"] *= np.exp(0.02 * rng.standard_normal(len(table)))
    some = table[rng.random(len(table)) < 0.7]
    # Sizes that differ in the last digits are no repetitions: every row is then on its own.
    apart = some.assign(size=some["size"] * (1 + 1e-12 * some["seed"]))
    one, two = (fit(observe(rows), objective=objective, uncertainty=ESTIMATE_ONLY) for rows in (some, apart))
    for name in ("alpha", "beta", "l_inf"):
        assert_same(one.parameters[name], two.parameters[name], rtol=1e-6)


def test_a_rising_metric_obeys_the_same_laws(clean: Observations) -> None:
    frame = clean.frame.assign(metric="chrf", value=60.0 - 10.0 * clean.frame["value"])
    chrf = observe(frame, metric="chrf")
    falling, rising = (
        fit(rows, objective="ols", uncertainty=ESTIMATE_ONLY).parameters for rows in (clean, chrf)
    )
    np.testing.assert_allclose(rising.alpha, falling.alpha, rtol=1e-6)
    np.testing.assert_allclose(rising.l_inf, 60.0 - 10.0 * falling.l_inf, rtol=1e-6)


def test_predict_takes_arrays_and_names_what_it_does_not_know(clean: Observations) -> None:
    joint = fit(clean, uncertainty=ESTIMATE_ONLY)
    assert joint.predict(size=[1e4, 1e5, 1e6], task="en-de", weight=0.5).shape == (3,)
    assert joint.predict(size=1e4, task="en-de", weight=0.5).shape == ()
    with pytest.raises(ValueError, match=r"one of en-de, en-zh, but is 'en-fr'"):
        joint.predict(size=1e4, task="en-fr", weight=0.5)
    with pytest.raises(ValueError, match=r"one of the fitted weights \(0.1, 0.3, 0.5, 0.7, 0.9, 1\)"):
        joint.predict(size=1e4, task="en-de", weight=0.4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": "eq7"}, "`law` must be one of power, per-weighting, joint, .*, but is 'eq7'"),
        ({"objective": "l2"}, "`objective` must be one of log-ols, ols, but is 'l2'"),
    ],
)
def test_unknown_choices_are_named(clean: Observations, change: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(clean, **change)  # type: ignore[arg-type]


def of_sizes(observations: Observations, count: int) -> Observations:
    frame = observations.frame
    return observe(frame[frame["size"].isin(frame["size"].unique()[:count])])


@pytest.mark.parametrize("law", ["joint", "capacity", "power"])
def test_two_sizes_are_reported_as_data(clean: Observations, law: LawName) -> None:
    fitted = fit(of_sizes(clean, 2), law=law, uncertainty=ESTIMATE_ONLY, prior="none")
    reported = [line for line in fitted.diagnostics if line.kind == "unidentified"]
    assert any("2 sizes do not identify the exponents and the limit" in line.message for line in reported)


def test_what_cannot_be_fitted_at_all_is_refused(clean: Observations) -> None:
    with pytest.raises(TableError, match="needs at least 3 sizes at one weight, and no weight has them"):
        fit(of_sizes(clean, 2), law="per-weighting")
    with pytest.raises(
        TableError, match=r"row \d+: en-de has one size only \(9456\); a law needs at least 3"
    ):
        fit(of_sizes(clean, 1), law="joint")


@pytest.mark.parametrize("tokens", [[1e6] * 4, [1e6, 1.01e6, 1.02e6, 1.015e6]])
def test_a_law_of_length_needs_several_lengths(clean: Observations, tokens: list[float]) -> None:
    sizes = clean.frame["size"].unique()
    frame = clean.frame.assign(tokens=clean.frame["size"].map(dict(zip(sizes, itertools.cycle(tokens)))))
    with pytest.raises(TableError, match=r"row \d+: en-de was trained for one length only \(1e\+06 tokens\)"):
        fit(observe(frame), law="share-tied")


def test_weights_with_two_sizes_are_left_out_of_separate_fits_aloud(clean: Observations) -> None:
    frame = clean.frame
    short = frame[~((frame["weight"] == 0.3) & (frame["size"] > 25000))]
    fitted = fit(observe(short), law="per-weighting", uncertainty=ESTIMATE_ONLY)
    assert "en-de at weight 0.3: left out, has fewer than 3 sizes." in fitted.warnings
    assert 0.3 not in fitted.fitted_weights("en-de")


def test_a_limit_at_its_bound_names_task_parameter_and_bound() -> None:
    size = np.geomspace(1e6, 1e9, 5)
    frame = pd.DataFrame({"size": size, "value": 3 * (size / 1e6) ** -0.3 - 0.2}).assign(
        task="en-de", weight=1.0, metric="loss"
    )
    (line,) = fit(observe(frame), law="power", uncertainty=ESTIMATE_ONLY, prior="none").diagnostics
    assert (line.kind, line.task, line.parameter, line.weight) == ("bound", "en-de", "l_inf", None)
    assert str(line) == "en-de: l_inf is at its lower bound 0; the data do not determine it."


def test_a_fraction_that_is_the_weight_leaves_its_shape_unidentified() -> None:
    laws = {name: KnownLaw.capacity(alpha=0.5, beta=200, l_inf=0.3, c1=0.0) for name in ("a", "b")}
    table = observe(simulate(laws, sizes=(1e4, 3e4, 1e5, 3e5), weights=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0)))
    fitted = fit(table, law="capacity", uncertainty=ESTIMATE_ONLY)
    np.testing.assert_allclose(fitted_fraction(fitted, task="a", weight=[0.2, 0.5, 0.8]), [0.2, 0.5, 0.8])
    lines = [line for line in fitted.diagnostics if line.task == "a"]
    loose = ", ".join(line.parameter for line in lines if line.kind == "unidentified")
    at_bounds = [line.parameter for line in lines if line.kind == "bound"]
    assert {"c2", "c3"} <= {*loose.split(", "), *at_bounds}
    assert "alpha" not in loose


def test_a_law_that_does_not_know_weights_says_that_it_pools_them(clean: Observations) -> None:
    lines = fit(clean, law="zhang", uncertainty=ESTIMATE_ONLY).diagnostics
    assert "en-de: the zhang law does not know weights, and pools 6 of them." in map(str, lines)
    assert not any("pools" in line for line in fit(clean, uncertainty=ESTIMATE_ONLY).warnings)


def test_a_law_without_a_limit_does_not_describe_what_rises(clean: Observations) -> None:
    frame = clean.frame.assign(metric="chrf", tokens=1e9 + clean.frame["size"])
    with pytest.raises(
        TableError, match="chrf rises to a ceiling, but the gordon law has none; choose another"
    ):
        fit(observe(frame, metric="chrf"), law="gordon", objective="ols")


def test_a_law_asks_for_the_columns_it_needs(clean: Observations) -> None:
    with pytest.raises(TableError, match=r"this law needs `tokens` above 0 in every row"):
        fit(clean, law="chinchilla")


def test_too_few_weights_leave_the_fraction_unidentified(clean: Observations) -> None:
    few = clean.frame[clean.frame["weight"].isin([0.5, 0.7, 0.3])]
    fitted = fit(observe(few[few["weight"] != 0.3]), law="capacity", uncertainty=ESTIMATE_ONLY, prior="none")
    assert any("c1, c2, c3 and beta are not identified" in warning for warning in fitted.warnings)
    assert any("no run at weight 1" in warning for warning in fitted.warnings)


def test_log_ols_refuses_values_that_have_no_logarithm(clean: Observations) -> None:
    frame = clean.frame.assign(metric="bleu")
    frame.loc[0, "value"] = 0.0
    with pytest.raises(TableError, match=r"row \d+: log-ols needs values above 0; use --objective ols"):
        fit(observe(frame, metric="bleu"))

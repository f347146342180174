"""Sizes, tokens and FLOPs in other units than counts are refused, with the factor that mends them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import TableError, fit, observe, read_table
from mnmt_laws.tables.units import check_units

SIZES = np.repeat([1e6, 4e6, 1.6e7, 6.4e7], 3)
TOKENS = np.tile([1e8, 4e8, 1.6e9], 4)


def runs(**columns: object) -> pd.DataFrame:
    loss = 1.7 + 400 * SIZES**-0.34 + 410 * TOKENS**-0.28
    return pd.DataFrame({"size": SIZES, "tokens": TOKENS, "value": loss} | columns)


def refused(**columns: object) -> str:
    observations = observe(runs(**columns))
    with pytest.raises(TableError) as caught:
        check_units(observations.frame, observations.locator)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("factor", "word"), [(1e9, "billions"), (1e6, "millions")])
def test_tokens_in_other_units_are_refused_with_the_factor(factor: float, word: str) -> None:
    message = refused(tokens=TOKENS / factor)
    assert f"if it is in {word}, say --column tokens=tokens*{factor:.0e}".replace(
        "+0", ""
    ) in message.replace("+0", "")


def test_the_factor_makes_the_table_what_it_is() -> None:
    scaled = runs(tokens=TOKENS / 1e9, size=SIZES / 1e6)
    read = read_table(scaled, columns={"tokens": "tokens*1e9", "size": "size * 1E6"})
    expected = read_table(runs())
    pd.testing.assert_frame_equal(read.frame, expected.frame)
    check_units(read.frame, read.locator)


@given(st.floats(0.5, 4), st.sampled_from([1e3, 1e6, 1e9]))
def test_a_factor_multiplies_a_column(number: float, factor: float) -> None:
    frame = pd.DataFrame({"N": [number], "value": [2.0]})
    assert read_table(frame, columns={"size": f"N*{factor:g}"}).frame["size"].item() == number * factor


@pytest.mark.parametrize("sizes", [[7.0, 13, 30, 70], [0.35, 1.3, 2.7, 6.7], [125.0, 350, 760, 1300]])
def test_sizes_in_other_units_are_refused(sizes: list[float]) -> None:
    message = refused(size=np.repeat(sizes, 3))
    assert "`size` must be a count, but is" in message
    assert (
        "if it is in millions, say --column size=size*1e6, if in billions, --column size=size*1e9" in message
    )


def test_flops_in_other_units_are_refused_where_tokens_follow_from_them() -> None:
    flops = 6 * SIZES * TOKENS / 1e18
    frame = runs(flops=flops).drop(columns="tokens")
    observations = observe(frame)
    with pytest.raises(TableError, match=r"`flops` must be a count,.* in units of 1e18, say --column f"):
        check_units(observations.frame, observations.locator)
    assert "`flops` must be a count, " in refused(flops=flops)


def test_different_tokens_in_other_units_are_refused() -> None:
    message = refused(unique_tokens=TOKENS / 2e6)
    assert "in millions, say --column unique_tokens=unique_tokens*1e6" in message


def test_one_row_in_another_unit_is_remarked() -> None:
    tokens = TOKENS.copy()
    tokens[7] = 400  # of millions
    (line,) = observe(runs(tokens=tokens)).warnings
    assert line.startswith("table row 9: 400 tokens for 1.6e+07 parameters; if one is in another unit")
    fit(runs(tokens=tokens), law="chinchilla")


@pytest.mark.parametrize(("unit", "text"), [(1e6, "2e+13"), (1e-3, "2e+04")])
def test_one_size_in_another_unit_is_remarked(unit: float, text: str) -> None:
    millions = np.repeat([20.0, 60, 180], 4)
    millions[0] *= unit
    frame = runs().assign(size=millions)
    (line,) = (each for each in observe(frame, columns={"size": "size*1e6"}).warnings if "unit" in each)
    assert line.startswith(f"table row 2: `size` is {text}, and no other is within 300 times of it;")


@given(
    st.lists(st.tuples(st.floats(768, 1e12), st.floats(1, 1e14)), max_size=8),
    st.floats(768, 1e12),
    st.floats(0.02, 1e5),
    st.booleans(),
)
def test_counts_are_left_alone(
    others: list[tuple[float, float]], size: float, ratio: float, flops: bool
) -> None:
    """Sizes and lengths vary apart, as in grids and fine-tuning, so long as one run makes sense."""
    sizes, tokens = np.array([(size, size * ratio), *others]).T
    frame = pd.DataFrame({"size": sizes, "value": 2.0, "seed": range(len(sizes))})
    frame["flops" if flops else "tokens"] = 6 * sizes * tokens if flops else tokens
    observations = observe(frame)
    check_units(observations.frame, observations.locator)


def test_fine_tuning_on_few_tokens_is_remarked_alone() -> None:
    tuned = runs(size=8e9, tokens=np.tile([1e4, 1e5, 1e6, 1e7], 3)).assign(seed=range(12))
    observations = observe(tuned)
    check_units(observations.frame, observations.locator)
    assert "row 2: 1e+04 tokens for 8e+09 parameters" in observations.warnings[0]


@pytest.mark.parametrize(
    ("columns", "factors"),
    [
        ({"size": np.repeat([125.0, 350, 760, 1300], 3)}, {"size": "size*1"}),
        ({"tokens": TOKENS / 1e6}, {"tokens": "tokens*1"}),
        ({"tokens": TOKENS / 1e9}, {"tokens": "tokens*1.0"}),
    ],
)
def test_a_factor_settles_the_unit(columns: dict[str, object], factors: dict[str, str]) -> None:
    observations = observe(runs(**columns), columns=factors)
    assert observations.warnings == ()
    fit(observations, law="chinchilla")


def test_fits_refuse_them() -> None:
    with pytest.raises(TableError, match=r"`tokens` must be a count, but is 0\.1"):
        fit(runs(tokens=TOKENS / 1e9), law="chinchilla")


@pytest.mark.parametrize("tokens", [[5e8, 5e8, 5e8], [1.2e9, 1.3e9, 1.3e9], [1e8, np.nan, 3e8]])
def test_tokens_of_a_run_may_be_rounded(tokens: list[float]) -> None:
    curve = pd.DataFrame({"run": "x", "size": 1e7, "step": [100, 200, 300], "tokens": tokens, "value": 2.0})
    assert len(observe(curve).frame) == 1


def test_tokens_do_not_fall_with_the_steps_of_a_run() -> None:
    curve = pd.DataFrame({"run": "x", "size": 1e7, "step": [300, 100, 200], "value": 2.0})
    with pytest.raises(TableError, match=r"row 2: `tokens` must not fall .* but is 1e8; .* training began"):
        observe(curve.assign(tokens=[1e8, 1e8, 2e8]))

"""Transfer at equal exposure is the difference that the losses were made with."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import transfer_at_equal_exposure
from mnmt_laws.errors import ArgumentError

SIZES, HELP = (1e4, 3e4, 1e5), {"aa": -0.2, "bb": 0.1}


def make_table(*, seeds: int = 1, noise: float = 0.0) -> pd.DataFrame:
    """Losses that depend on exposure and size, and a constant for models of two tasks."""
    rng = np.random.default_rng(0)
    mixtures = [{"aa": 1.0}, {"bb": 1.0}, {"aa": 0.5, "bb": 0.5}, {"aa": 0.26, "bb": 0.74}]
    rows = [
        {
            "size": size, "tokens": length, "seed": seed, "task": task, "weight": weight,
            "run": f"{number} {size} {length} {seed}",
            "mixture": ",".join(f"{name}:{share}" for name, share in mixture.items()),
            "value": 2 - 0.1 * np.log(weight * length) + (1e4 / size) ** 0.3
            + HELP[task] * (weight < 1) + noise * rng.normal(),
        }
        for (number, mixture), size, length, seed in itertools.product(
            enumerate(mixtures), SIZES, (1e6, 2e6, 4e6), range(seeds)
        )
        for task, weight in mixture.items()
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(metric="loss", testset="test")


def test_differences_are_those_of_the_losses() -> None:
    found = transfer_at_equal_exposure(make_table())
    half = found.means[found.means["weight"] == 0.5]
    np.testing.assert_allclose(half["difference"], half["task"].map(HELP), atol=1e-9)
    assert list(half["length"]) == [2e6, 4e6, 2e6, 4e6]
    np.testing.assert_allclose(half["length_alone"], half["length"] / 2)
    assert set(found.by_size["size"]) == set(SIZES)
    np.testing.assert_allclose(found.by_size["mixed"] - found.by_size["alone"], found.by_size["difference"])


def test_an_exposure_within_a_tenth_is_equal_and_one_beyond_it_is_not() -> None:
    found = transfer_at_equal_exposure(make_table()).means
    near = found[found["weight"] == 0.26]  # 0.26 · 4e6 is 4% above 1e6
    np.testing.assert_allclose(near["difference"], HELP["aa"] - 0.1 * np.log(1.04), atol=1e-9)
    assert found[found["weight"] == 0.74].empty


def test_the_standard_error_is_that_of_seeds() -> None:
    table = make_table(seeds=3, noise=0.01)
    found = transfer_at_equal_exposure(table)
    assert set(found.means["over"]) == {"seeds"}
    row = found.means[found.means["task"].eq("aa") & found.means["length"].eq(4e6)].iloc[0]
    of_task = table[table["task"] == "aa"]
    groups = [
        of_task[of_task["mixture"].eq(mixture) & of_task["tokens"].eq(length)]
        for mixture, length in ((row["mixture"], 4e6), ("aa:1.0", row["length_alone"]))
    ]
    errors = [group.groupby("size")["value"].var() / 3 for group in groups]
    assert row["std"] == pytest.approx(float(np.sqrt((errors[0] + errors[1]).sum()) / 3))
    assert row["difference"] == pytest.approx(groups[0]["value"].mean() - groups[1]["value"].mean())


def test_one_seed_has_the_scatter_over_sizes() -> None:
    found = transfer_at_equal_exposure(make_table(noise=0.01))
    assert set(found.means["over"]) == {"sizes"}
    for row in found.means.itertuples():
        same = found.by_size["task"].eq(row.task) & found.by_size["length"].eq(row.length)
        part = found.by_size[same & found.by_size["mixture"].eq(row.mixture)]["difference"]
        assert row.std == pytest.approx(part.sem())


def test_tasks_are_named_in_a_sentence_and_nothing_to_compare_is_empty() -> None:
    sentence = transfer_at_equal_exposure(make_table()).describe()
    assert "aa -0.2" in sentence
    assert "bb +0.1" in sentence
    mixed = make_table().query("weight < 1")
    assert transfer_at_equal_exposure(mixed).means.empty
    assert transfer_at_equal_exposure(mixed).describe() == ""


def test_lengths_are_needed() -> None:
    with pytest.raises(ArgumentError, match="tokens"):
        transfer_at_equal_exposure(make_table().query("tokens == 1e6").drop(columns="tokens"))

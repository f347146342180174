"""Architectures with one N0."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import ArgumentError, ResidualBootstrap, TableError, compare_architectures

CURVES = {"decoder": (1.2, 0.35, 0.5), "encoder-decoder": (1.0, 0.3, 0.53)}
N_0 = 1e6


def loss(architecture: str, size: np.ndarray | float) -> np.ndarray | float:
    alpha, exponent, limit = CURVES[architecture]
    return alpha * (N_0 / size) ** exponent + limit


def table_of(noise: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "architecture": name, "task": "en-de", "size": size, "flops": 6e9 * size, "metric": "loss",
            "value": loss(name, size) * (1 + noise * rng.standard_normal()),
        }
        for name, start in (("decoder", 1e6), ("encoder-decoder", 3e6))
        for size in start * np.geomspace(1, 300, 9)
    )  # fmt: skip


def test_one_n_0_makes_alpha_comparable() -> None:
    result = compare_architectures(table_of(), uncertainty=ResidualBootstrap(refits=0))
    assert result.n_0 == N_0
    rows = result.parameters.set_index("architecture")
    for name, (alpha, exponent, limit) in CURVES.items():
        assert rows.loc[name, ["alpha", "exponent", "l_inf"]].tolist() == pytest.approx(
            [alpha, exponent, limit], rel=1e-5
        )


def test_the_curves_cross_where_they_are_equal() -> None:
    result = compare_architectures(table_of(0.002), uncertainty=ResidualBootstrap(refits=40))
    sizes = np.geomspace(3e6, 3e8, 200_001)
    crossing = sizes[np.abs(loss("decoder", sizes) - loss("encoder-decoder", sizes)).argmin()]
    row = result.crossings.iloc[0]
    assert row["lower"] < crossing < row["upper"]
    assert row["lower"] < row["crossing"] < row["upper"]
    first, second = result.ranges.to_dict("records")
    assert (first["better"], second["better"]) == ("encoder-decoder", "decoder")
    assert first["low"] == pytest.approx(3e6)
    assert first["high"] == second["low"] == pytest.approx(row["crossing"])
    assert first["certainty"] > 0.9
    assert "encoder-decoder is better than decoder from 3e+06" in result.describe()[0]


def test_flops_take_the_place_of_size() -> None:
    by_flops = compare_architectures(
        table_of(), predictor="flops", n_0=6e15, uncertainty=ResidualBootstrap(refits=0)
    )
    assert by_flops.parameters["alpha"].tolist() == pytest.approx([1.2, 1.0], rel=1e-5)
    assert by_flops.fits["decoder"].law.predictors == ("flops",)


def test_what_cannot_be_compared_is_refused() -> None:
    table = table_of()
    with pytest.raises(TableError, match="two architectures, but the column `architecture` has decoder"):
        compare_architectures(table[table["architecture"] == "decoder"])
    with pytest.raises(TableError, match="has no `flops`"):
        compare_architectures(table.drop(columns="flops"), predictor="flops")
    with pytest.raises(ArgumentError, match="`n_0` must be above 0"):
        compare_architectures(table, n_0=-1.0)

"""Samples, and repeated measurements in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws.laws import LAWS
from mnmt_laws.solver.design_matrix import DesignMatrix
from mnmt_laws.solver.objective import OBJECTIVES, Objective
from mnmt_laws.solver.sample import Replicates, Sample

MakeSample = Callable[..., Sample]


def cost_of(objective: Objective, design: DesignMatrix, sample: Sample, vector: np.ndarray) -> float:
    """The objective over all rows, condensed or not."""
    residual = objective.residual(sample.values[0], DesignMatrix(design.law, sample).predict(vector))
    return float(objective.cost(residual, sample.importance[0]))


@pytest.mark.parametrize("name", ["log-ols", "ols"])
@given(seed=st.integers(0, 10**6))
def test_condensed_cells_rank_parameters_as_all_rows_do(
    name: str, seed: int, random_sample: MakeSample
) -> None:
    rng, objective = np.random.default_rng(seed), OBJECTIVES[name]
    sample = random_sample(rng, repeats=3)
    condensed = Replicates.of(sample).condense(sample, objective)
    assert len(condensed.weight) == 15
    assert condensed.importance.sum() == pytest.approx(sample.importance.sum())
    design = DesignMatrix(LAWS["joint"], sample)
    vectors = rng.uniform(0.1, 1.0, (2, design.width))
    long, short = ([cost_of(objective, design, rows, v) for v in vectors] for rows in (sample, condensed))
    assert np.diff(long) == pytest.approx(np.diff(short), rel=1e-9)


@pytest.mark.parametrize("rising", [False, True])
def test_limits_keep_to_the_most_extreme_row_of_a_cell_not_to_its_mean(rising: bool) -> None:
    size, weight = np.array([1e6, 1e6, 1e7]), np.ones(3)
    sample = Sample(
        task="en-de", x={"size": size, "weight": weight}, weight=weight, values=np.array([[3.0, 5.0, 4.5]]),
        importance=np.ones((1, 3)), rising=rising, ceiling=100.0,
    )  # fmt: skip
    design = DesignMatrix(LAWS["power"], Replicates.of(sample).condense(sample, OBJECTIVES["ols"]))
    low, high = (bounds[0, -1] for bounds in design.bounds({}))
    assert (low, high) == ((5.0, 100.0) if rising else (0.0, 3.0))


def test_models_are_counted_by_all_their_sizes() -> None:
    size = np.array([1e6, 1e6, 2e6, 2e6])
    parts = {"encoder_size": np.array([4e5, 6e5, 1e6, 1e6]), "decoder_size": np.array([6e5, 4e5, 1e6, 1e6])}
    weight = np.array([0.5, 0.5, 0.5, 1.0])
    sample = Sample(task="en-de", x=parts, weight=weight, values=np.ones((1, 4)), importance=np.ones((1, 4)))
    assert sample.num_sizes() == 3
    assert sample.num_sizes(1.0) == 1
    whole = Sample(
        task="en-de", x={"size": size}, weight=weight, values=np.ones((1, 4)), importance=np.ones((1, 4))
    )
    assert whole.num_sizes() == 2


def test_a_spread_of_rows_keeps_every_weight_and_forgets_their_order() -> None:
    rng, count = np.random.default_rng(0), 5000
    size, weight = rng.uniform(1e6, 1e9, count), np.where(np.arange(count) == 17, 0.9, 0.5)
    spreads = []
    for order in (np.arange(count), rng.permutation(count)):
        sample = Sample(
            task="a", x={"size": size[order], "weight": weight[order]}, weight=weight[order],
            values=size[None, order], importance=np.ones((1, count)),
        )  # fmt: skip
        spreads.append(np.sort(sample.spread(100).values[0]))
        assert sample.spread(100).weights.tolist() == [0.5, 0.9]
    np.testing.assert_array_equal(*spreads)
    shares = np.quantile(spreads[0], [0.25, 0.5, 0.75]) / np.quantile(size, [0.25, 0.5, 0.75])
    np.testing.assert_allclose(shares, 1.0, atol=0.05)


@pytest.mark.parametrize(("irreducible", "floor", "ends"), [
    (np.inf, 0.0, (0.0, 3.0)), (0.7, 0.0, (0.0, 0.7)), (5.0, 0.0, (0.0, 3.0)), (0.7, 0.7, (0.7, 0.7)),
])  # fmt: skip
def test_the_known_irreducible_loss_bounds_the_limit(
    irreducible: float, floor: float, ends: tuple[float, float]
) -> None:
    sample = Sample(
        task="a", x={"size": np.array([1e6, 1e7, 1e8])}, weight=np.ones(3), importance=np.ones((2, 3)),
        values=np.array([[5.0, 4.0, 3.0], [5.0, 4.0, 3.0]]), irreducible=irreducible, floor=floor,
    )  # fmt: skip
    low, high = DesignMatrix(LAWS["zhang"], sample).bounds({})
    assert [(low[row, -1], high[row, -1]) for row in range(2)] == [ends, ends]

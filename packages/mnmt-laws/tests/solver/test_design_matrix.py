"""A law over a sample: bounds and what is not identified."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mnmt_laws.laws import LAWS
from mnmt_laws.solver.design_matrix import DesignMatrix, find_unidentified
from mnmt_laws.solver.sample import Sample

MakeSample = Callable[..., Sample]


def test_rows_without_importance_do_not_bound_the_limit(random_sample: MakeSample) -> None:
    sample = random_sample(np.random.default_rng(0))
    lowest = int(sample.values[0].argmin())
    sample.importance[0, lowest] = 0.0
    high = DesignMatrix(LAWS["power"], sample).bounds({})[1][0, -1]
    assert high == np.delete(sample.values[0], lowest).min()


def test_unidentified_columns_are_those_of_the_null_space() -> None:
    rng = np.random.default_rng(0)
    jacobian = rng.standard_normal((10, 5)) * np.array([1.0, 1e6, 1e-6, 1.0, 1.0])
    assert not find_unidentified(jacobian.T).any()
    jacobian[:, 3] = 1e3 * jacobian[:, 1]  # two that move together
    jacobian[:, 4] = 0.0  # one that moves nothing
    assert find_unidentified(jacobian.T).tolist() == [False, True, False, True, True]

"""What an analysis warns of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import Perturbation, ResidualBootstrap
from mnmt_laws.report.analysis import Analysis

STATED = "standard deviations assume 1.0% noise and are too small"


@pytest.fixture(scope="module")
def wild_table(one_task: pd.DataFrame) -> pd.DataFrame:
    """Losses that lie far from any law."""
    return one_task.assign(value=one_task["value"] * np.random.default_rng(0).normal(1, 0.06, len(one_task)))


def test_scatter_beyond_the_stated_noise_is_reported(
    loss_analysis: Analysis, wild_table: pd.DataFrame, analyse_table: Callable[..., Analysis]
) -> None:
    assert not any(STATED in warning for warning in loss_analysis.warnings)
    analysis = analyse_table(wild_table, uncertainty=Perturbation(refits=0))
    assert any(STATED in warning for warning in analysis.warnings)
    assert 0.03 < analysis.study.joint.scatter < 0.1


def test_only_stated_noise_can_be_too_small(
    wild_table: pd.DataFrame, analyse_table: Callable[..., Analysis]
) -> None:
    analysis = analyse_table(wild_table, uncertainty=ResidualBootstrap(refits=0))
    assert not any("noise" in warning for warning in analysis.warnings)

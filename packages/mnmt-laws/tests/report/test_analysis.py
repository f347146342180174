"""What an analysis warns of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import Perturbation, observe, read_table
from mnmt_laws.report.analysis import Analysis
from mnmt_laws.report.questions.laws import answer_limits
from mnmt_laws.report.questions.runs import answer_quality
from mnmt_laws.report.study import Study
from mnmt_laws.report.trust import late_fall
from mnmt_laws.tables.source import RunSource

STATED = "standard deviations assume 1.0% noise and are too small"


@pytest.fixture(scope="module")
def wild_table(one_task: pd.DataFrame) -> pd.DataFrame:
    """Losses that lie far from any law."""
    return one_task.assign(value=one_task["value"] * np.random.default_rng(0).normal(1, 0.06, len(one_task)))


@pytest.mark.slow
def test_scatter_beyond_the_stated_noise_is_reported(
    loss_analysis: Analysis, wild_table: pd.DataFrame, analyse_table: Callable[..., Analysis]
) -> None:
    assert not any(STATED in warning for warning in loss_analysis.warnings)
    analysis = analyse_table(wild_table, uncertainty=Perturbation(refits=0))
    assert any(STATED in warning for warning in analysis.warnings)
    assert 0.03 < analysis.study.joint.scatter < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eval_loss", "ppl", "bits_per_byte"])
def test_losses_of_any_name_are_found_again(small_table: pd.DataFrame, name: str) -> None:
    table, is_loss, columns = small_table.copy(), small_table["metric"].eq("loss"), ["value", "irreducible"]
    losses = table.loc[is_loss, columns]
    units = {"eval_loss": losses, "ppl": np.exp(losses), "bits_per_byte": losses / np.log(2)}
    table.loc[is_loss, columns], table.loc[is_loss, "metric"] = units[name], name
    known, named = (study_of(rows) for rows in (small_table, table))
    np.testing.assert_equal(late_fall(named), late_fall(known))
    assert answer_quality(named).findings == answer_quality(known).findings
    unit = "byte" if "byte" in name else "token"
    assert f"in nats per {unit}." in answer_limits(named).findings[0]


def study_of(table: pd.DataFrame) -> Study:
    source = RunSource(table=read_table(table))
    return Study(
        source=source,
        observations=observe(source.table),
        objective="log-ols",
        uncertainty=Perturbation(refits=2),
        recommendation=None,
    )

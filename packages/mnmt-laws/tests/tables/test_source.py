from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from mnmt_laws import Observations, collect, observe, read_table
from mnmt_laws.tables.source import open_source


def test_observations_are_the_same_whatever_holds_the_table(
    study_table: pd.DataFrame, tmp_path: Path
) -> None:
    csv = tmp_path / "runs.csv"
    study_table.to_csv(csv, index=False)
    parquet = tmp_path / "runs.parquet"
    study_table.to_parquet(parquet)
    expected = observe(study_table).frame
    for source in (csv, str(csv), parquet, read_table(csv), observe(csv)):
        pd.testing.assert_frame_equal(observe(source).frame, expected)


def test_a_folder_of_run_records_is_a_source(study_records: Path) -> None:
    source = open_source(study_records)
    assert source.table.source == str(study_records)
    assert len(source.records) == 1 + source.table.frame["run"].nunique()
    pd.testing.assert_frame_equal(observe(study_records).frame, observe(collect(study_records).table).frame)


@pytest.mark.parametrize("source", [["runs.csv"], 3, None])
def test_another_type_is_refused(source: object) -> None:
    kind = type(source).__name__
    message = f"`source` must be a path, a frame or a run table, but is {kind}."
    with pytest.raises(TypeError, match=re.escape(message)):
        observe(source)  # type: ignore[arg-type]


def test_observations_take_no_other_choice(clean: Observations) -> None:
    assert observe(clean, metric="Loss") is clean
    with pytest.raises(ValueError, match="`metric` must be left out for observations of loss, but is 'chrf'"):
        observe(clean, metric="chrf")

"""The model that advice is for by default."""

from __future__ import annotations

import pandas as pd

from mnmt_laws import example_table, observe
from mnmt_laws.forecasts.target import usual_target


def test_it_is_no_smaller_than_a_model_that_was_held_out(study_table: pd.DataFrame) -> None:
    assert usual_target(observe(example_table())).size == 83_408  # fitted up to 37,216
    assert usual_target(observe(study_table)).size == 2 * 148_160  # above the 262,000 held out

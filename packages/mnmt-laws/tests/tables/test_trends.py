"""Remarks on metrics that go the wrong way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import observe

SIZES, LENGTHS = np.array([1e6, 1e7, 1e8]), np.array([1e8, 1e9])


def grid(values: dict[str, np.ndarray], metric: str = "loss") -> pd.DataFrame:
    """One row for each task, size and length; `values` are (sizes, lengths) by task."""
    parts = [
        pd.DataFrame(
            {"task": task, "metric": metric, "size": np.repeat(SIZES, 2), "tokens": np.tile(LENGTHS, 3),
             "value": table.ravel()}
        )
        for task, table in values.items()
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def falling(alpha: float = 0.3, beta: float = 0.28) -> np.ndarray:
    return 1.5 + 40 * SIZES[:, None] ** -alpha + 300 * LENGTHS**-beta


def test_losses_that_fall_are_not_remarked() -> None:
    assert observe(grid({"a": falling(), "b": falling(0.4)})).warnings == ()


def test_losses_that_rise_with_size_are_remarked_once_for_all_tasks() -> None:
    (line,) = observe(grid({"a": falling()[::-1], "b": falling()[::-1], "c": falling()})).warnings
    assert line.startswith("table rows 2 and 6: loss of a, b rises with size, from ")
    assert line.endswith("Is it a score (--higher-is-better), or did training diverge?")


def test_losses_that_rise_with_length_are_remarked() -> None:
    (line,) = observe(grid({"a": falling()[:, ::-1]})).warnings
    assert line.startswith("table rows 2 and 3: loss of a rises with tokens, from ")


@pytest.mark.parametrize("metric", ["bleu", "comet22", "chrf"])
def test_scores_that_fall_are_remarked(metric: str) -> None:
    lines = observe(grid({"a": falling()}, metric)).warnings
    assert f"{metric} of a falls with size, from " in lines[0]
    assert observe(grid({"a": falling()[::-1, ::-1]}, metric)).warnings == ()


@given(st.permutations(range(12)))
def test_the_order_of_rows_is_of_no_account(order: list[int]) -> None:
    table = grid({"a": falling(), "b": falling()[::-1]})
    lines = observe(table.iloc[order]).warnings
    assert len(lines) == 1
    assert "loss of b rises with size" in lines[0]


def test_larger_models_that_were_trained_less_are_not_compared() -> None:
    rows = pd.DataFrame({"size": SIZES, "tokens": [1e9, 5e8, 1e8], "value": [2.0, 2.1, 2.5]})
    assert observe(rows).warnings == ()

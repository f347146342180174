"""Runs of unequal length are never compared in silence."""

from __future__ import annotations

import pandas as pd
import pytest

from mnmt_laws import Observations, TableError, observe
from mnmt_laws.laws import LAWS
from mnmt_laws.tables.fit_checks import check_constant, check_lengths, fit_warnings


def observed(sizes: list[float], lengths: list[float | None], column: str = "tokens") -> Observations:
    rows = pd.DataFrame({"size": sizes, column: lengths, "value": [3.0 - 0.1 * n for n in range(len(sizes))]})
    return observe(rows)


@pytest.mark.parametrize(
    ("sizes", "lengths", "within", "between"),
    [
        ([1, 2, 4], [100, 100, 100], False, False),
        ([1, 2, 4], [100, 100.9, 100], False, False),
        ([1, 2, 4], [100, 100, 102], False, True),
        ([1, 1, 2, 2], [100, 200, 100, 200], True, False),
        ([1, 1, 2], [100, 200, 900], True, True),
        ([1, 2, 4], [None, 100, 900], False, False),
    ],
)
def test_lengths_are_compared_within_cells_and_between(
    sizes: list[float], lengths: list[float | None], within: bool, between: bool
) -> None:
    measured = observed(sizes, lengths).lengths
    assert (measured.within, measured.between) == (within, between)


def test_lengths_are_named_by_run() -> None:
    rows = pd.DataFrame({"size": [1, 2], "value": [3, 2], "run": ["x", ""], "step": [100, 200]})
    lengths = observe(rows).lengths
    assert lengths.column == "step"
    assert lengths.by_run.to_dict() == {"x": 100, "row 3": 200}
    assert lengths.describe() == "100 to 200 steps"


def test_a_law_without_length_warns_where_cells_differ() -> None:
    assert check_lengths(observed([1, 2, 4], [100, 100, 100]), LAWS["joint"]) == ()
    assert check_lengths(observed([1, 2, 4], [100, 200, 400]), LAWS["joint"]) == (
        "table: runs were trained for 100 to 400 tokens, but the joint law does not know length and takes "
        "its effect for that of size or mixture; read all at one length (--at tokens=…) or fit a law of "
        "length "
        "(such as --law length).",
    )


def test_a_law_without_length_refuses_one_cell_at_several_lengths() -> None:
    with pytest.raises(TableError) as caught:
        check_lengths(observed([1, 2, 2, 2], [100, 200, 100, 300], "step"), LAWS["joint"])
    assert str(caught.value) == (
        "table rows 4 and 5: the same task, mixture and size after 100 and 300 steps, but the joint law does "
        "not know length; read all at one length (--at step=…) or fit a law of length (such as --law length)."
    )


@pytest.mark.parametrize("law", ["chinchilla", "length", "gordon"])
def test_a_law_of_length_takes_runs_of_every_length(law: str) -> None:
    observations = observed([1, 2, 2, 4], [100, 100, 300, 900])
    assert check_lengths(observations, LAWS[law]) == fit_warnings(observations, LAWS[law]) == ()


def test_a_law_of_flops_takes_runs_of_every_length() -> None:
    rows = pd.DataFrame({"size": [1, 2, 2], "flops": [600, 1200, 3600], "value": [3, 2.5, 2]})
    assert check_lengths(observe(rows), LAWS["zhang-flops"]) == ()


def test_a_constant_metric_is_refused() -> None:
    rows = pd.DataFrame({"size": [1, 2, 4] * 2, "task": [*"aaabbb"], "value": [3, 2, 1, 2, 2, 2]})
    observations = observe(rows)
    check_constant(observations.fit[observations.fit["task"] == "a"], observations)
    with pytest.raises(TableError) as caught:
        check_constant(observations.fit, observations)
    assert str(caught.value) == (
        "table row 5: loss of b is 2 in all 3 rows, so it does not depend on size or mixture; leave the task "
        "out, or choose another --metric."
    )

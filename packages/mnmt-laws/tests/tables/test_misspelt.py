"""Names of tasks that look misspelt."""

from __future__ import annotations

import pandas as pd
import pytest

from mnmt_laws import read_table
from mnmt_laws.errors import TableError

RUNS = [f"en-de:{p},en-fr:{1 - p}" for p in (0.25, 0.5, 0.75)] * 2


def table(**changed: str) -> pd.DataFrame:
    """Return losses of both tasks of six models; those of the third have other fields."""
    rows = [
        {"size": 1e5 * (1 + number), "task": task, "mixture": mixture, "value": 3.0 + number / 10}
        for number, mixture in enumerate(RUNS)
        for task in ("en-de", "en-fr")
    ]
    frame = pd.DataFrame(rows)
    frame.loc[5, list(changed)] = list(changed.values())
    if "mixture" in changed:
        frame.loc[4, "mixture"] = changed["mixture"]
    return frame


@pytest.mark.parametrize(
    ("changed", "rows"),
    [
        ({"mixture": "en-de:0.75,en-fre:0.25"}, "rows 6 and 7"),
        ({"task": "en-fre"}, "row 7"),
        ({"task": "en-fre", "mixture": "en-de:0.75,en-fre:0.25"}, "rows 6 and 7"),
    ],
)
def test_a_name_of_one_model_is_named_with_its_rows_and_what_may_be_meant(
    changed: dict[str, str], rows: str
) -> None:
    warnings = read_table(table(**changed)).warnings
    assert f"table: {rows}: `en-fre` is named by no other model; is `en-fr` meant?" in warnings


@pytest.mark.parametrize(
    "changed",
    [
        {"mixture": "en-de:0.75,en-fr:0.2,en-fre:0.05"},  # the model has both
        {"mixture": "en-de:0.75,it-ru:0.25"},
        {"task": "it-ru", "mixture": "en-de:0.75,it-ru:0.25"},
    ],
)
def test_a_task_that_one_model_alone_has_is_none(changed: dict[str, str]) -> None:
    assert not any("meant" in line for line in read_table(table(**changed)).warnings)


def test_a_weight_that_its_mixture_lacks_is_told_with_the_name_there() -> None:
    frame = table(mixture="en-de:0.75,en-fre:0.25").assign(weight=[0.25, 0.75, 0.5, 0.5, 0.75, 0.25] * 2)
    with pytest.raises(
        TableError, match=r"row 7: .* gives it 0; they must agree \(is `en-fr` meant by `en-fre`"
    ):
        read_table(frame)

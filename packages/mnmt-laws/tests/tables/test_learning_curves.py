"""All runs at a common length: within their curves, never beyond."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import TableError, observe, read_table
from mnmt_laws.tables.source import read_table_at


def curve(run: str, steps: list[float], values: list[float], **columns: object) -> pd.DataFrame:
    frame = pd.DataFrame({"run": run, "step": steps, "value": values, "size": 1.0, "task": "a"})
    return frame.assign(tokens=frame["step"] * 100, **columns)


def test_a_power_law_is_read_exactly() -> None:
    steps = np.array([100.0, 300.0, 1000.0])
    rows = curve("x", steps.tolist(), (5 * steps**-0.3).tolist())
    for at in ({"step": 500.0}, {"tokens": 50_000.0}):
        (row,) = observe(rows, at=at).frame.to_dict("records")
        assert row["value"] == pytest.approx(5 * 500**-0.3, rel=1e-12)
        assert (row["step"], row["tokens"]) == pytest.approx((500, 50_000), rel=1e-12)


def test_a_rising_metric_is_linear_and_may_be_zero() -> None:
    rows = curve("x", [100, 400], [0.0, 30.0], metric="bleu")
    assert observe(rows, at={"step": 200}).frame["value"].tolist() == [pytest.approx(15)]


def test_runs_are_not_read_beyond_their_ends() -> None:
    rows = pd.concat(
        [curve("whole", [10, 40], [4.0, 2.0]), curve("short", [10, 20], [4.0, 3.0], size=2.0),
         curve("late", [50, 60], [4.0, 3.0], size=3.0), curve("", [30], [2.2], size=4.0),
         curve("", [31], [2.5], size=5.0)]
    )  # fmt: skip
    observations = observe(rows, at={"step": 30})
    assert observations.frame["size"].tolist() == [1, 4]
    assert observations.warnings == (
        "3 runs are not measured up to step 30, or only beyond it, and left out: short, late, row 9.",
    )
    with pytest.raises(
        TableError, match="no run is measured at step 100, or before and after it; the lengths measured are"
    ):
        observe(rows, at={"step": 100})


def test_runs_without_a_name_are_curves_and_said_to_be() -> None:
    between = observe(curve("", [10, 40], [4.0, 2.0]), at={"step": 20}).warnings
    assert len(between) == 1
    assert between[0].endswith(
        "rows without `run` at several `step` are read as learning curves, not as a model for each."
    )
    for rows, step in ((curve("", [10, 40], [4.0, 2.0]), 10), (curve("x", [10, 40], [4.0, 2.0]), 20)):
        assert observe(rows, at={"step": step}).warnings == ()


def test_a_branch_takes_the_place_of_its_trunk_at_its_length() -> None:
    rows = pd.concat(
        [
            curve("trunk", [10, 20, 40], [4.0, 3.5, 2.0]).assign(annealed=[0, 0, 1]),
            curve("trunk_h20", [20], [3.0]).assign(annealed=1),
            curve("seed2", [10, 20], [4.0, 3.6], seed=2).assign(annealed=0),
        ]
    )
    assert sorted(observe(rows, at={"step": 20}).frame["value"]) == [3.0, 3.6]
    assert sorted(observe(rows).frame["value"]) == [2.0, 3.0, 3.6]


@pytest.mark.parametrize(
    "at", [{}, {"step": 0}, {"size": 1}, {"step": 1, "tokens": 1}, {"step": float("nan")}]
)
def test_lengths_that_are_none_are_refused(at: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="`at` must give `tokens` or `step` a number above 0"):
        read_table_at(read_table(curve("x", [10], [4.0])), at)


def test_a_table_without_the_column_is_refused() -> None:
    rows = curve("x", [10], [4.0]).drop(columns="tokens")
    with pytest.raises(TableError, match=r"no `tokens` above 0 in any row; leave `at` \(--at\) out"):
        observe(rows, at={"tokens": 5})


CURVES = st.lists(
    st.tuples(st.floats(1, 1e6), st.floats(0.1, 10)),
    min_size=2,
    max_size=12,
    unique_by=lambda pair: round(pair[0], 3),
)


@given(CURVES, st.floats(0, 1), st.randoms())
def test_readings_lie_between_their_neighbours(
    points: list[tuple[float, float]], share: float, shuffle: st.RandomBase
) -> None:
    points.sort()
    steps, values = (list(column) for column in zip(*points, strict=True))
    length = float(np.clip(steps[0] ** (1 - share) * steps[-1] ** share, steps[0], steps[-1]))
    rows = curve("x", steps, values)
    shuffled = rows.iloc[shuffle.sample(range(len(rows)), len(rows))]
    (value,) = observe(shuffled, at={"step": length}).frame["value"]
    after = int(np.searchsorted(steps, length))
    low, high = sorted((values[max(after - 1, 0)], values[min(after, len(values) - 1)]))
    assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    assert observe(rows, at={"step": length}).frame["value"].tolist() == [value]


def test_a_run_that_ends_near_the_length_is_read_as_it_ended() -> None:
    rows = [("a", 101.0, 2.0), ("b", 50.0, 3.0), ("b", 99.0, 1.5), ("c", 90.0, 4.0), ("c", 101.0, 3.0)]
    frame = pd.DataFrame(rows, columns=["run", "tokens", "value"]).assign(task="x", size=[1, 2, 2, 3, 3])
    read = observe(frame, at={"tokens": 100}).frame.set_index("run")
    assert read["value"]["a"] == 2.0
    assert read["value"]["b"] == 1.5
    assert 3.0 < read["value"]["c"] < 4.0
    assert read["tokens"].eq(100).all()

"""One metric on one test set: its curves, ceiling and mixtures."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import RunTable, TableError, observe, read_table
from mnmt_laws.tables.mixture import format_mixture, mixture_weights
from mnmt_laws.tables.observations import learning_curves


def table(**columns: object) -> RunTable:
    return read_table(
        pd.DataFrame({"size": 1, "task": "a", "weight": 1, "metric": "loss", "value": 2.0} | columns)
    )


def test_learning_curves_hold_every_step_in_order() -> None:
    runs = table(
        run=["x", "y", "x", "x"], size=[1, 2, 1, 1], step=[30, 10, 10, 20], value=[2.0, 5.0, 4.0, 3.0]
    )
    curves = learning_curves(runs)
    assert curves[["run", "step", "value"]].to_numpy().tolist() == [
        ["x", 10, 4.0],
        ["x", 20, 3.0],
        ["x", 30, 2.0],
        ["y", 10, 5.0],
    ]
    assert curves.index.tolist() == [0, 1, 2, 3]


def test_the_last_step_of_every_curve_is_what_is_selected(study_table: pd.DataFrame) -> None:
    steps = pd.concat([study_table, study_table.assign(step=50, value=study_table["value"] + 1)])
    runs = read_table(steps)
    curves = learning_curves(runs, metric="chrf")
    assert len(curves) == 2 * len(observe(runs, metric="chrf").frame)
    last = curves.groupby(["run", "task"])["value"].last()
    selected = observe(runs, metric="chrf").frame.set_index(["run", "task"])["value"]
    assert last.to_dict() == selected.to_dict()


def test_learning_curves_need_the_same_choices_as_select(study_table: pd.DataFrame) -> None:
    both = read_table(pd.concat([study_table.assign(testset=name) for name in ("news", "debian")]))
    for choose in (observe, learning_curves):
        with pytest.raises(TableError, match=r"several values of `testset` \(debian, news\); choose one as"):
            choose(both)
        with pytest.raises(
            TableError, match="no row has metric 'ter'; the table has chrf, loss; choose one of them"
        ):
            choose(both, metric="ter")


@pytest.mark.parametrize(
    ("metric", "values", "rising", "ceiling"),
    [
        ("loss", [0.5, 0.9], False, math.inf),
        ("perplexity", [5.0, 9.0], False, math.inf),
        ("bleu", [0.2, 30.5], True, 100),
        ("BLEU", [0.2, 0.3], True, 1),
        ("chrF", [30.0, 40.0], True, 100),
        ("chrF++", [0.3, 1.0], True, 1),
        ("comet", [0.3, 0.9], True, math.inf),
        ("BLEURT", [0.3, 0.9], True, math.inf),
    ],
)
def test_metrics_rise_to_their_ceilings(
    metric: str, values: list[float], rising: bool, ceiling: float
) -> None:
    observations = observe(table(size=[1, 2], metric=metric, value=values), metric=metric)
    assert (observations.rising, observations.ceiling) == (rising, ceiling)


def test_the_other_of_two_tasks_has_the_rest() -> None:
    observations = observe(table(task=["a", "b", "a", "a"], weight=[0.3, 0.7, 1, 0], size=[1, 1, 2, 3]))
    assert observations.fit["task"].tolist() == ["a", "a", "b"]
    pd.testing.assert_frame_equal(
        observations.mixtures_of(observations.fit),
        pd.DataFrame({"a": [0.3, 1.0, 1 - 0.7], "b": [0.7, 0.0, 0.7]}),
        check_exact=True,
    )


def test_a_mixture_names_tasks_that_were_not_measured() -> None:
    observations = observe(table(weight=[0.3], mixture="c:0.5,a:0.3,b:0.2"))
    assert observations.mixtures_of(observations.fit).to_dict("records") == [{"a": 0.3, "b": 0.2, "c": 0.5}]


def test_more_tasks_need_their_mixtures() -> None:
    three = observe(table(task=["a", "b", "c"], weight=[0.5, 0.3, 0.2]))
    with pytest.raises(TableError) as caught:
        three.mixtures_of(three.fit)
    assert str(caught.value) == (
        "table row 2: the weights of the other tasks are not known; add a `mixture` column, which reads "
        "TASK:WEIGHT,TASK:WEIGHT."
    )
    alone = observe(table(task=["a", "b", "c"]))
    assert alone.mixtures_of(alone.fit).to_numpy().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=6), st.integers(1, 4))
def test_mixtures_come_back_as_they_were_written(parts: list[int], copies: int) -> None:
    weights = {f"t{place}": part / sum(parts) for place, part in enumerate(parts)}
    rows = pd.DataFrame(
        {
            "task": list(weights) * copies,
            "weight": list(weights.values()) * copies,
            "mixture": format_mixture(weights),
        }
    ).assign(row=range(2, 2 + copies * len(parts)))
    shuffled = rows.sample(frac=1, random_state=len(parts))
    read = mixture_weights(shuffled, list(weights), "table")
    assert read.index.equals(shuffled.index)
    assert read.to_dict("records") == [weights] * len(rows)

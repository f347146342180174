"""Which experts serve which languages, against the counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.analysis.experts import expert_use, order_alike
from mnmt_model.runs import ExpertLoads

TASKS = ("en-de", "fr-en", "en-fr", "de-en")
TARGETS = np.array([[8, 1, 1], [1, 1, 8], [1, 8, 1], [1, 1, 8]])
"""Experts by target alone, (tasks, experts)."""


def use_of(shares: np.ndarray, tasks: tuple[str, ...] = TASKS):
    """Of two layers: in the first, all tasks are alike."""
    alike = np.tile([5, 3, 2], (len(tasks), 1))
    loads = np.tile(np.stack([alike, shares]), (20, 1, 1, 1))
    experts = ExpertLoads(step=7, tasks=tasks, loads=loads)
    return expert_use(experts, ["encoder 2", "decoder 2"], run="ours", testset="test")


def test_tasks_share_experts_with_those_beside_them() -> None:
    use = use_of(TARGETS)
    assert (use.run, use.testset, use.step) == ("ours", "test", 7)
    assert sorted(use.tasks) == sorted(TASKS)
    assert abs(use.tasks.index("fr-en") - use.tasks.index("de-en")) == 1
    encoder, decoder = use.layers
    for task, row in zip(use.tasks, decoder.shares, strict=True):
        assert row == pytest.approx((TARGETS[TASKS.index(task)] / 10).tolist())
    assert decoder.loads == pytest.approx([0.825, 0.825, 1.35])
    assert encoder.loads == pytest.approx([1.5, 0.9, 0.6])


def test_what_the_target_decides_tells_the_target() -> None:
    encoder, decoder = use_of(TARGETS).layers
    assert list(decoder.specialisation) == ["task", "source", "target"]
    assert [each.share for each in encoder.specialisation.values()] == pytest.approx([0, 0, 0], abs=1e-12)
    task, source, target = decoder.specialisation.values()
    # Tasks of one target are alike, so that they tell no more than it does.
    assert task.nats == pytest.approx(target.nats)
    assert 0 < source.nats < target.nats
    assert task.entropy == pytest.approx(np.log(4))
    assert target.entropy == pytest.approx(1.5 * np.log(2))
    assert task.share == pytest.approx(task.nats / np.log(4))
    assert task.lower == pytest.approx(task.share)  # all blocks are the same


def test_languages_that_do_not_divide_the_tasks_are_left_out() -> None:
    use = use_of(TARGETS[:3], ("xx-aa", "xx-bb", "xx-cc"))
    assert list(use.layers[0].specialisation) == ["task"]


@given(st.permutations(range(12)), st.integers(0, 9))
def test_rows_of_a_cluster_are_beside_each_other(places: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.repeat(10.0 * np.eye(4), 3, axis=0) + rng.random((12, 4))
    order = order_alike(rows[places])
    assert sorted(order) == list(range(12))
    clusters = [places[place] // 3 for place in order]
    assert all(len(set(clusters[start : start + 3])) == 1 for start in range(0, 12, 3))


def test_a_line_of_rows_is_put_in_its_order() -> None:
    rows = np.array([[0.0], [7.0], [1.0], [3.0], [15.0]])
    ordered = rows[order_alike(rows)].flatten().tolist()
    assert ordered in ([0.0, 1.0, 3.0, 7.0, 15.0], [15.0, 7.0, 3.0, 1.0, 0.0])

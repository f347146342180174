"""Mutual information of expert and task: against its definition, and estimates of it against simulations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from mnmt_model.runs.task_specialisation import (
    Specialisation,
    chance_information,
    mutual_information,
    specialisation,
)

Counts = NDArray[np.int64]

counts = arrays(np.int64, (4, 3), elements=st.integers(0, 50)).filter(lambda c: c.sum(axis=1).all())


def enumerated(table: Counts, groups: list[int]) -> float:
    """Σ p(g, e) log p(g, e) / p(g) p(e), with the same p(t) for all tasks."""
    joint = np.zeros((max(groups) + 1, table.shape[1]))
    for task, row in enumerate(table):
        joint[groups[task]] += row / row.sum() / len(table)
    return sum(
        joint[g, e] * np.log(joint[g, e] / joint[g].sum() / joint[:, e].sum())
        for g, e in product(range(len(joint)), range(joint.shape[1]))
        if joint[g, e] > 0
    )


@given(counts, st.permutations([0, 0, 1, 2]))
def test_it_is_the_sum_over_all_outcomes(table: Counts, groups: list[int]) -> None:
    assert mutual_information(table) == pytest.approx(enumerated(table, [0, 1, 2, 3]), abs=1e-12)
    assert mutual_information(table, groups) == pytest.approx(enumerated(table, groups), abs=1e-12)


@given(counts, st.permutations([0, 0, 1, 2]))
def test_groups_tell_no_more_than_tasks_and_tasks_no_more_than_their_entropy(
    table: Counts, groups: list[int]
) -> None:
    nats = float(mutual_information(table))
    assert -1e-12 <= float(mutual_information(table, groups)) <= nats + 1e-12
    assert nats <= np.log(3) + 1e-12


def test_the_extremes() -> None:
    assert mutual_information(np.eye(4, dtype=np.int64)) == pytest.approx(np.log(4))
    uneven = np.array([[90, 9, 1], [180, 18, 2]])
    assert mutual_information(uneven) == pytest.approx(0, abs=1e-12)
    # Two experts a token: of four experts, two tasks with two each tell all, log(E / k).
    assert mutual_information(np.array([[5, 5, 0, 0], [0, 0, 3, 3]])) == pytest.approx(np.log(4 / 2))
    with_empty = np.array([[3, 1], [0, 0], [1, 3]])
    assert mutual_information(with_empty) == pytest.approx(float(mutual_information(with_empty[[0, 2]])))


def test_chance_is_millers_and_what_independent_choices_give() -> None:
    rng, shares = np.random.default_rng(1), np.array([0.5, 0.25, 0.15, 0.1])
    even = rng.multinomial(600, shares, size=(4000, 5))  # (samples, tasks, experts)
    assert chance_information(even[0]) == pytest.approx((4 - 1) * (5 - 1) / (2 * 600 * 5))
    assert mutual_information(even).mean() == pytest.approx(float(chance_information(even[0])), rel=0.05)
    uneven = np.stack([rng.multinomial(n, shares, size=4000) for n in (200, 400, 2000)], axis=1)
    for groups in (None, [0, 0, 1]):
        chance = float(chance_information(uneven[0], groups))
        assert mutual_information(uneven, groups).mean() == pytest.approx(chance, rel=0.05)


SAMPLES = 2000


def estimates(shares: NDArray[np.float64]) -> Specialisation:
    """Estimates from samples, as layers, of 20 blocks of 10 sentences of 25 tokens, which are alike."""
    rng = np.random.default_rng(2)
    blocks = np.zeros((20, SAMPLES, *shares.shape), dtype=np.int64)
    for _ in range(10):
        own = np.stack([rng.dirichlet(8 * of_task, size=(20, SAMPLES)) for of_task in shares], axis=2)
        blocks += rng.multinomial(25, own)
    return specialisation(blocks)


SAME = np.tile([0.4, 0.3, 0.2, 0.1], (3, 1))
DIFFERENT = np.array([[0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.2, 0.1], [0.4, 0.2, 0.3, 0.1]])


@pytest.mark.parametrize("shares", [SAME, DIFFERENT], ids=["alike", "different"])
def test_the_jackknife_has_no_bias_where_tokens_of_a_sentence_are_alike(shares: NDArray[np.float64]) -> None:
    estimate, truth = estimates(shares), float(mutual_information(1000 * shares))
    deviation = 4 * float(estimate.nats.std()) / SAMPLES**0.5
    # A sentence of 25 tokens counts as 25 / (1 + 24 / 9) = 6.8 independent ones.
    bias = estimate.chance.mean() * (1 + 24 / 9)
    assert bias > 2 * deviation
    assert estimate.nats.mean() - truth == pytest.approx(bias, abs=deviation)
    assert estimate.corrected.mean() == pytest.approx(truth, abs=deviation)


def test_a_share_is_of_what_could_be_told() -> None:
    one_each = np.tile(10 * np.eye(4, dtype=np.int64), (20, 2, 1, 1))
    whole = specialisation(one_each)
    assert whole.share.tolist() == pytest.approx([1, 1])
    assert whole.error.tolist() == pytest.approx([0, 0])
    by_source = specialisation(one_each, groups=[0, 0, 1, 1])
    assert (by_source.entropy, by_source.share.tolist()) == (pytest.approx(np.log(2)), pytest.approx([1, 1]))
    alone = specialisation(one_each[:, :, :1])
    assert (alone.entropy, alone.share.tolist()) == (0, [0, 0])
    with pytest.raises(ValueError, match=r"`blocks` must have at least 2 blocks, but has 1\."):
        specialisation(one_each[:1])

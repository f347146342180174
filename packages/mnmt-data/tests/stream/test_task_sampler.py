import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.stream.mixture import Mixture
from mnmt_data.stream.task_sampler import LEAF, SUPER_BLOCK, TaskSampler

WEIGHTS = {"en-de": 0.3, "en-fr": 0.0, "en-it": 0.699, "en-xx": 0.001}
SHARES = np.array(list(WEIGHTS.values()))

borders = st.sampled_from([0, LEAF, 7 * LEAF, SUPER_BLOCK // 2, SUPER_BLOCK, 3 * SUPER_BLOCK, 10**12])
positions = st.builds(lambda border, shift: max(0, border + shift), borders, st.integers(-300, 300))


def draws(weights=WEIGHTS, *, seed=0, labels=("tasks", 0)):
    return TaskSampler(mixture=Mixture(weights), seed=seed, labels=labels)


def counts(tasks):
    return np.bincount(tasks, minlength=len(WEIGHTS))


@given(start=positions, skip=st.integers(0, 5000), count=st.integers(0, 5000), seed=st.integers())
def test_a_position_decides_its_task(start, skip, count, seed):
    stream = draws(seed=seed)
    whole = stream.tasks(start, skip + count)
    assert whole.shape == (skip + count,)
    assert whole.dtype == np.int64
    np.testing.assert_array_equal(draws(seed=seed).tasks(start + skip, count), whole[skip:])


@given(start=positions, count=st.integers(0, 9000), seed=st.integers(0, 3))
def test_counts_before_are_the_tasks_counted(start, count, seed):
    stream = draws(seed=seed)
    before, after = stream.before(start), stream.before(start + count)
    assert before.sum() == start
    np.testing.assert_array_equal(after - before, counts(stream.tasks(start, count)))


def test_a_leaf_is_counted_from_the_beginning_as_well_as_from_the_tree():
    stream = draws()
    tasks = stream.tasks(0, 5 * LEAF + 17)
    for position in range(0, len(tasks) + 1, 97):
        np.testing.assert_array_equal(stream.before(position), counts(tasks[:position]))


@given(st.integers(0, 10**12), st.integers())
def test_a_task_of_weight_zero_is_never_drawn(position, seed):
    stream = draws(seed=seed)
    assert stream.before(position)[1] == 0
    assert not np.any(stream.tasks(position, 100) == 1)


def test_seeds_and_labels_have_choices_of_their_own():
    even = {"a": 0.5, "b": 0.5}
    streams = [draws(even, seed=seed, labels=("tasks", number)) for seed in (0, 1) for number in (0, 1)]
    found = [stream.tasks(0, 10_000) for stream in streams]
    agreement = [np.mean(a == b) for i, a in enumerate(found) for b in found[:i]]
    assert np.allclose(agreement, 0.5, atol=0.03)


def test_the_expected_shares_are_the_weights():
    """Chi-square with 2 degrees of freedom, summed over 300 windows: 600 expected, 35 its deviation."""
    expected = SHARES * 10_000
    drawn = expected > 0
    statistic = [
        ((counts(draws(seed=seed).tasks(0, 10_000)) - expected)[drawn] ** 2 / expected[drawn]).sum()
        for seed in range(300)
    ]
    assert sum(statistic) == pytest.approx(600, abs=4 * 35)


@pytest.mark.parametrize("position", [10**9 + 12_345, 10**12])
def test_a_weight_is_not_rounded(position):
    weights = {"rare": 1 / 3000, "common": 2999 / 3000}
    rare = np.mean([draws(weights, seed=seed).before(position)[0] for seed in range(20)])
    deviation = np.sqrt(position / 3000 / 20)
    assert abs(rare - position / 3000) < 4 * deviation


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 5000, 2 * LEAF + 7, 2**20, SUPER_BLOCK // 2, 3 * SUPER_BLOCK // 4])
@pytest.mark.parametrize("start", [0, 3 * LEAF - 50, SUPER_BLOCK - 2**15])
def test_counts_of_a_window_vary_as_independent_choices_do(start, size):
    """A sample variance over 300 seeds deviates by a share of sqrt(2 / 299) = 8%."""
    streams = [draws({"a": 0.3, "b": 0.7}, seed=seed) for seed in range(300)]
    found = np.array([stream.before(start + size)[0] - stream.before(start)[0] for stream in streams])
    variance = size * 0.3 * 0.7
    assert abs(found.mean() - size * 0.3) < 4 * np.sqrt(variance / 300)
    assert found.var(ddof=1) / variance == pytest.approx(1, abs=4 * np.sqrt(2 / 299))


@pytest.mark.parametrize("place", ["within a leaf", "across leaves"])
def test_parts_of_a_window_do_not_depend_on_each_other(place):
    start = {"within a leaf": LEAF // 2, "across leaves": LEAF}[place]
    streams = [draws({"a": 0.3, "b": 0.7}, seed=seed) for seed in range(1000)]
    pairs = [
        [np.count_nonzero(stream.tasks(begin, 500)) for begin in (start - 500, start)] for stream in streams
    ]
    assert abs(np.corrcoef(np.array(pairs).T)[0, 1]) < 4 / np.sqrt(1000)


@pytest.mark.parametrize("lag", [1, 2, 3, LEAF // 2, LEAF])
def test_neighbours_do_not_depend_on_each_other(lag):
    first = draws({"a": 0.3, "b": 0.7}).tasks(0, 200_000)
    correlation = np.corrcoef(first[:-lag], first[lag:])[0, 1]
    assert abs(correlation) < 4 / np.sqrt(len(first) - lag)


def test_the_stream_of_a_seed_stays_what_it_is():
    """Literal values: numpy's samplers decide them, and another stream would make runs irreproducible."""
    stream = draws(seed=1)
    assert "".join(map(str, stream.tasks(0, 24))) == "202200222222222220220200"
    assert "".join(map(str, stream.tasks(10**12 - 4, 24))) == "222002022220220202222000"
    counts = {
        5000: [1493, 0, 3505, 2],
        10**6: [300169, 0, 698778, 1053],
        SUPER_BLOCK: [161064784, 0, 375270020, 536108],
        10**12: [300000145204, 0, 698999818078, 1000036718],
    }
    assert {position: stream.before(position).tolist() for position in counts} == counts

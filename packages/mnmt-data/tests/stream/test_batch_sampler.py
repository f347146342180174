import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.store.segments import SegmentInfo
from mnmt_data.stream.batch_sampler import MOST_BATCHES, WINDOW_PAIRS, BatchSampler
from mnmt_data.stream.mixture import Mixture, Phase, Schedule

TASKS = ("en-de", "en-fr", "en-it")
ROWS = {"en-de": 90, "en-fr": 23, "en-it": 4000}
INFOS = {
    task: SegmentInfo(pairs=rows, src_tokens=5 * rows, tgt_tokens=5 * rows, longest=20, longest_side=12)
    for task, rows in ROWS.items()
}
BEST = {task: np.random.default_rng(rows).permutation(rows) for task, rows in ROWS.items()}

weights = st.lists(st.integers(0, 10), min_size=3, max_size=3).filter(any)
phases = st.lists(st.tuples(weights, st.integers(1, 300)), min_size=1, max_size=3)


def mixture(*parts):
    return Mixture({task: part / sum(parts) for task, part in zip(TASKS, parts, strict=True)})


def schedule(*phases):
    """Phases from (weights, steps)."""
    starts = np.cumsum([0, *(phase[1] for phase in phases[:-1])]).tolist()
    batches = zip(starts, phases, strict=True)
    return Schedule(tuple(Phase(mixture=mixture(*phase[0]), step=step) for step, phase in batches))


def sampler(*phases, batch_tokens=200, seed=0, orders=None, keep=1.0, infos=INFOS):
    return BatchSampler(
        schedule=schedule(*phases),
        infos=infos,
        batch_tokens=batch_tokens,
        seed=seed,
        orders=orders or {},
        keep=keep,
    )


def windows(batches, end):
    """The windows up to a step, one after the other."""
    step = 0
    while step < end:
        yield (window := batches.window(step))
        step = window.first_step + window.num_batches


def rows_read(batches, task, end):
    return np.concatenate([window.rows.get(task, np.empty(0, dtype=int)) for window in windows(batches, end)])


def assert_epochs(rows, every):
    """Each epoch has every row once, the last perhaps not yet all of them."""
    for start in range(0, len(rows), len(every)):
        epoch = rows[start : start + len(every)].tolist()
        assert len(set(epoch)) == len(epoch)
        assert set(epoch) <= set(every)


@given(phases=phases, batch_tokens=st.integers(10, 5000), seed=st.integers())
def test_windows_follow_each_other_within_phases(phases, batch_tokens, seed):
    batches = sampler(*phases, batch_tokens=batch_tokens, seed=seed)
    starts = [phase.step for phase in batches.schedule.phases]
    total, step = np.zeros(3, dtype=int), 0
    for window in windows(batches, starts[-1] + 300):
        assert window.first_step == step
        assert 1 <= window.num_batches <= MOST_BATCHES
        assert not any(step < start < step + window.num_batches for start in starts)
        assert window.phase is batches.schedule.phases[batches.schedule.index(step)]
        assert len(window.tasks) == window.num_batches * batches.batch_pairs(step)
        assert batches.draws_before(step) == dict(zip(TASKS, total.tolist(), strict=True))
        counts = np.bincount(window.tasks, minlength=3)
        assert {task: len(rows) for task, rows in window.rows.items()} == {
            task: count for task, count in zip(TASKS, counts.tolist(), strict=True) if count
        }
        total += counts
        step += window.num_batches


@given(phases=phases, step=st.integers(0, 1000), seed=st.integers())
def test_every_step_of_a_window_finds_it(phases, step, seed):
    batches = sampler(*phases, seed=seed)
    window = batches.window(step)
    assert window.first_step <= step < window.first_step + window.num_batches
    for other in (window.first_step, window.first_step + window.num_batches - 1):
        found = sampler(*phases, seed=seed).window(other)
        assert (found.first_step, found.num_batches) == (window.first_step, window.num_batches)
        np.testing.assert_array_equal(found.tasks, window.tasks)
        assert found.rows.keys() == window.rows.keys()
        for task, rows in window.rows.items():
            np.testing.assert_array_equal(found.rows[task], rows)
        assert batches.draws_before(other) == batches.draws_before(window.first_step)


def test_a_window_holds_its_pairs_in_few_batches():
    assert sampler(([1, 1, 1], 1), batch_tokens=10 * 1000).window(0).num_batches == -(-WINDOW_PAIRS // 1000)
    assert sampler(([1, 1, 1], 1), batch_tokens=10 * WINDOW_PAIRS).window(0).num_batches == 1
    assert sampler(([1, 1, 1], 1), batch_tokens=10).window(0).num_batches == MOST_BATCHES


@given(phases=phases, seed=st.integers())
def test_every_epoch_of_a_task_is_all_its_rows_also_across_phases(phases, seed):
    batches = sampler(*phases, seed=seed)
    end = batches.schedule.phases[-1].step + 400
    for task, rows in ROWS.items():
        assert_epochs(rows_read(batches, task, end), range(rows))


@given(one=phases, other=phases, seed=st.integers(), orders=st.sampled_from([{}, BEST]))
def test_every_schedule_reads_a_task_in_the_same_order(one, other, seed, orders):
    """So runs with other weights are paired: they differ in how often a task is drawn and in nothing else."""
    read = [sampler(*phases, seed=seed, orders=orders) for phases in (one, other)]
    for task in TASKS:
        first, second = (rows_read(batches, task, batches.schedule.phases[-1].step + 200) for batches in read)
        both = min(len(first), len(second))
        np.testing.assert_array_equal(first[:both], second[:both])


def test_tasks_seeds_and_epochs_have_orders_of_their_own():
    infos = dict.fromkeys(TASKS, INFOS["en-it"])
    found = []
    for seed in (0, 1):
        batches = sampler(([1, 1, 1], 1), seed=seed, infos=infos)
        for task in TASKS:
            rows = rows_read(batches, task, 1800)
            found += [rows[:4000], rows[4000:8000]]
    assert all(len(order) == 4000 for order in found)
    assert all(np.count_nonzero(a == b) < 15 for i, a in enumerate(found) for b in found[:i])


@given(
    keep=st.sampled_from([0.01, 0.1, 0.5, 1.0]), steps=st.integers(1, 300), parts=st.tuples(weights, weights)
)
def test_selection_reads_the_best_rows_in_epochs_through_all_phases(keep, steps, parts):
    batches = sampler((parts[0], steps), (parts[1], steps), orders=BEST, keep=keep)
    for task in TASKS:
        best = BEST[task][: max(1, round(keep * ROWS[task]))].tolist()
        assert_epochs(rows_read(batches, task, 2 * steps), best)


def test_a_task_without_an_order_is_read_whole_whatever_is_kept():
    batches = sampler(([0, 1, 0], 1), orders={"en-de": BEST["en-de"]}, keep=0.1)
    assert set(rows_read(batches, "en-fr", 100).tolist()) == set(range(23))


@given(st.tuples(*[st.integers(1, 50)] * 3), st.integers(1, 10**5))
def test_a_batch_has_as_many_pairs_as_have_its_tokens_on_average(lengths, batch_tokens):
    infos = {
        task: SegmentInfo(
            pairs=10, src_tokens=7 * length, tgt_tokens=3 * length, longest=length, longest_side=length
        )
        for task, length in zip(TASKS, lengths, strict=True)
    }
    batches = sampler(([1, 2, 5], 1), infos=infos, batch_tokens=batch_tokens)
    expected = batch_tokens / ((lengths[0] + 2 * lengths[1] + 5 * lengths[2]) / 8)
    assert batches.batch_pairs(0) == pytest.approx(max(1, expected), abs=0.5000001)


def test_a_far_step_is_a_step():
    batches = sampler(([1, 1, 1], 1))
    window = batches.window(10**10 + 7)
    assert window.first_step <= 10**10 + 7 < window.first_step + window.num_batches
    assert sum(batches.draws_before(10**10 + 7).values()) == window.first_step * batches.batch_pairs(0)
    shares = np.array(list(batches.draws_before(10**10 + 7).values())) / (window.first_step * 20)
    assert np.allclose(shares, 1 / 3, atol=1e-5)


@pytest.mark.parametrize(
    "infos",
    [
        {"en-de": INFOS["en-de"]},
        INFOS | {"en-it": SegmentInfo(pairs=0, src_tokens=0, tgt_tokens=0, longest=0, longest_side=0)},
    ],
)
def test_a_task_without_pairs_is_named(infos):
    with pytest.raises(ValueError, match=r"`infos` must have pairs of every task .*, but has none of en-it"):
        sampler(([1, 0, 1], 1), infos=infos).window(0)


def test_an_order_of_other_rows_is_refused():
    orders = {"en-de": np.arange(90), "en-it": np.arange(3000)}
    with pytest.raises(ValueError, match=r"`orders` must have every row of en-it \(4000\), but has 3000\."):
        sampler(([1, 1, 1], 1), orders=orders)


@given(phases=phases, steps=st.integers(0, 700))
def test_epochs_are_the_draws_over_the_rows(phases, steps):
    batches = sampler(*phases, batch_tokens=2000)
    drawn = dict.fromkeys(TASKS, 0.0)
    for step in range(steps):
        weights = batches.schedule.phases[batches.schedule.index(step)].mixture.weights
        for task in TASKS:
            drawn[task] += batches.batch_pairs(step) * weights[task] / ROWS[task]
    assert batches.epochs(steps) == pytest.approx(drawn)

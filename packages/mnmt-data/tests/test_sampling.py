import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.mixture import Mixture
from mnmt_data.sampling import Sampler

NUM_ROWS = {"en-de": 40, "en-fr": 300}


def sampler(weight=0.5, *, seed=0):
    return Sampler(mixture=Mixture({"en-de": weight, "en-fr": 1 - weight}), num_rows=NUM_ROWS, seed=seed)


@given(start=st.integers(0, 10**12), skip=st.integers(0, 99), count=st.integers(0, 99), seed=st.integers())
def test_a_position_decides_its_task_and_a_draw_its_row(start, skip, count, seed):
    stream = sampler(seed=seed)
    tasks, rows = stream.tasks(start, skip + count), stream.rows("en-de", start, skip + count)
    np.testing.assert_array_equal(stream.tasks(start + skip, count), tasks[skip:])
    np.testing.assert_array_equal(stream.rows("en-de", start + skip, count), rows[skip:])


@given(weights=st.tuples(st.floats(0, 1), st.floats(0, 1)), seed=st.integers())
def test_every_mixture_reads_a_task_in_the_same_order(weights, seed):
    first, second = (sampler(weight, seed=seed).rows("en-fr", 0, 700) for weight in weights)
    np.testing.assert_array_equal(first, second)


def test_tasks_and_seeds_have_orders_of_their_own():
    rows = {"en-de": 300, "en-fr": 300}
    streams = [Sampler(mixture=Mixture({"en-de": 1.0}), num_rows=rows, seed=seed) for seed in (0, 1)]
    orders = [stream.rows(task, 0, 300) for stream in streams for task in rows]
    assert all(np.count_nonzero(a == b) < 15 for i, a in enumerate(orders) for b in orders[:i])


def test_a_larger_weight_keeps_what_was_drawn_of_the_task():
    """Mixtures share the random numbers: raising the first task's weight only adds positions to it."""
    few, many = (sampler(weight).tasks(0, 5000) == 0 for weight in (0.3, 0.6))
    assert many[few].all()
    assert many.sum() > few.sum()

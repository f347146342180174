import json
from collections import Counter
from itertools import groupby, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnmt_data.batches import Batch, BatchStream, eval_batches
from mnmt_data.errors import DataError
from mnmt_data.mixture import Mixture
from mnmt_data.sampling import Sampler
from mnmt_data.shards import Ragged, Shard

TASKS = {"en-de": 90, "en-fr": 23, "en-it": 400}
WEIGHTS = {"en-de": 0.3, "en-fr": 0.1, "en-it": 0.6}
BATCH_TOKENS = 100


def shard(task, num_rows, *, longest=9, shortest=1):
    """Pairs of random lengths that can be told apart: the source starts with its row + 3."""
    random = np.random.default_rng(num_rows)
    src_lengths, tgt_lengths = random.integers(shortest, longest + 1, size=(2, num_rows))
    src = [np.full(length, row + 3) for row, length in enumerate(src_lengths)]
    tgt = [np.full(length, 5) for length in tgt_lengths]
    return Shard(path=Path(f"train.{task}.arrow"), src=Ragged.from_rows(src), tgt=Ragged.from_rows(tgt))


SHARDS = {task: shard(task, num_rows) for task, num_rows in TASKS.items()}


def stream(weights=WEIGHTS, *, shards=SHARDS, batch_tokens=BATCH_TOKENS, seed=0):
    return BatchStream(shards, Mixture(weights), batch_tokens=batch_tokens, seed=seed)


def windows(batches):
    """Each window's start and batches, one after the other."""
    for start, window in groupby(batches, key=lambda _: batches.state()["window_start"]):
        yield start, list(window)


def examples(batches, tasks):
    """(task, row) of each pair of the batches."""
    return [
        (tasks[task], int(row) - 3)
        for batch in batches
        for task, row in zip(batch.tasks, batch.src[:, 0], strict=True)
    ]


def assert_same(first, second):
    for side in ("src", "tgt", "tasks"):
        np.testing.assert_array_equal(getattr(first, side), getattr(second, side))


@settings(deadline=None)
@given(stop=st.integers(0, 150), seed=st.integers(), used=st.integers(0, 3))
def test_a_resumed_stream_is_one_that_never_stopped(stop, seed, used):
    whole = stream(seed=seed)
    for _ in islice(whole, stop):
        pass
    resumed = stream(seed=seed)
    for _ in islice(resumed, used):
        pass
    resumed.restore(json.loads(json.dumps(whole.state())))
    for first, second in islice(zip(whole, resumed, strict=True), 40):
        assert_same(first, second)


def test_looking_at_the_state_changes_nothing():
    looked_at, left_alone = stream(), stream()
    for _ in range(80):
        looked_at.state()
        assert_same(next(looked_at), next(left_alone))


def test_a_state_does_not_change_with_the_stream():
    batches = stream()
    state = batches.state()
    kept = json.dumps(state)
    next(batches)
    assert json.dumps(state) == kept


def test_the_state_does_not_grow():
    batches = stream()
    first = batches.state()
    for _ in islice(batches, 3000):
        pass
    last = batches.state()
    assert last["window_start"] > 10 * sum(TASKS.values())
    assert last.keys() == first.keys()
    assert last["window_counts"].keys() == first["window_counts"].keys()
    assert len(json.dumps(last)) < len(json.dumps(first)) + 40


@settings(deadline=None)
@given(batch_tokens=st.integers(18, 400), seed=st.integers())
def test_batches_keep_to_the_budget(batch_tokens, seed):
    for batch in islice(stream(batch_tokens=batch_tokens, seed=seed), 50):
        assert 0 < batch.src.size + batch.tgt.size <= batch_tokens


@settings(deadline=None)
@given(seed=st.integers(), share=st.floats(0, 1))
def test_a_window_holds_each_drawn_example_once(seed, share):
    weights = {"en-de": share, "en-fr": (1 - share) / 2, "en-it": (1 - share) / 2}
    batches, counts = stream(weights, seed=seed), Counter()
    sampler = Sampler(mixture=Mixture(weights), num_rows=TASKS, seed=seed)
    for start, window in islice(windows(batches), 3):
        found, expected = examples(window, batches.tasks), Counter()
        for task, drawn in Counter(sampler.tasks(start, len(found)).tolist()).items():
            name = batches.tasks[task]
            expected.update((name, row) for row in sampler.rows(name, counts[name], drawn).tolist())
            counts[name] += drawn
        assert Counter(found) == expected


def test_an_epoch_of_a_single_task_is_read_once_before_any_pair_is_read_again():
    batches = stream({"en-it": 1.0}, batch_tokens=18)
    seen = Counter()
    for _, window in islice(windows(batches), 30):
        seen.update(row for _, row in examples(window, batches.tasks))
        epochs, rest = divmod(seen.total(), TASKS["en-it"])
        assert max(seen.values()) == epochs + bool(rest)
        assert len(seen) == TASKS["en-it"] or epochs == 0


@settings(deadline=None)
@given(share=st.floats(0.05, 0.95), seed=st.integers())
def test_tasks_appear_in_proportion(share, seed):
    weights = {"en-de": share, "en-fr": 0.0, "en-it": 1 - share}
    read = islice(windows(stream(weights, seed=seed, batch_tokens=1000)), 2)
    tasks = np.concatenate([batch.tasks for _, window in read for batch in window])
    counts, expected = np.bincount(tasks, minlength=3), np.array(list(weights.values())) * len(tasks)
    assert counts[1] == 0
    assert (((counts - expected) ** 2)[::2] / expected[::2]).sum() < 30


def test_sides_of_a_pair_stay_together_and_are_padded_with_zero():
    batches = stream()
    for batch in islice(batches, 100):
        for task, src, tgt in zip(batch.tasks, batch.src, batch.tgt, strict=True):
            source, row = SHARDS[batches.tasks[task]], src[0] - 3
            assert np.trim_zeros(src).tolist() == source.src[row].tolist()
            assert np.trim_zeros(tgt).tolist() == source.tgt[row].tolist()


def test_num_tokens_leaves_padding_out():
    tgt = np.array([[7, 8, 1], [9, 1, 0], [1, 0, 0]])
    assert Batch(src=tgt, tgt=tgt, tasks=np.zeros(3, dtype=np.int64)).num_tokens == 6


def test_arrays_are_int64():
    batch = next(stream())
    assert {batch.src.dtype, batch.tgt.dtype, batch.tasks.dtype} == {np.dtype(np.int64)}


def test_pairs_of_one_length_make_full_batches_of_consecutive_draws():
    even = {task: shard(task, 1000, longest=4, shortest=4) for task in ("en-de", "en-fr")}
    weights = {"en-de": 0.3, "en-fr": 0.7}
    _, batches = next(windows(stream(weights, shards=even, batch_tokens=8 * 25 + 3)))
    assert [len(batch.tasks) for batch in batches] == [25] * 32
    drawn = Sampler(mixture=Mixture(weights), num_rows={}, seed=0).tasks(0, 25 * 32).reshape(32, 25)
    assert sorted(batch.tasks.tolist() for batch in batches) == sorted(drawn.tolist())


def test_batches_of_a_window_are_not_in_order_of_length():
    _, batches = next(windows(stream(batch_tokens=300)))
    widths = [batch.tgt.shape[1] for batch in batches]
    assert widths != sorted(widths)
    assert widths != sorted(widths, reverse=True)


def test_every_window_has_an_order_of_its_own():
    even = {"en-de": shard("en-de", 32 * 25, longest=4, shortest=4)}
    drawn = Sampler(mixture=Mixture({"en-de": 1.0}), num_rows={"en-de": 32 * 25}, seed=0)
    orders = []
    for start, batches in islice(windows(stream({"en-de": 1.0}, shards=even, batch_tokens=8 * 25)), 2):
        firsts = drawn.rows("en-de", start, 32 * 25)[::25].tolist()
        orders.append([firsts.index(batch.src[0, 0] - 3) for batch in batches])
    assert [sorted(order) for order in orders] == [list(range(32))] * 2
    assert orders[0] != orders[1]


def test_seeds_differ():
    first, second = (examples(islice(stream(seed=seed), 5), list(TASKS)) for seed in (0, 1))
    assert first != second


def test_a_shard_outside_the_mixture_is_left_alone():
    damaged = Shard(path=Path("x"), src=Ragged.from_rows([]), tgt=Ragged.from_rows([]))
    shards = {"en-xx": damaged, **SHARDS}
    assert_same(next(stream(shards=shards)), next(stream()))
    assert_same(next(stream({**WEIGHTS, "en-xx": 0.0}, shards=shards)), next(stream()))


def test_a_task_without_a_shard_is_named():
    with pytest.raises(
        ValueError, match="`shards` must hold every task of positive weight, but lacks en-fr, en-it"
    ):
        stream(shards={"en-de": SHARDS["en-de"]})


def test_a_pair_over_the_budget_is_refused_before_training():
    too_long = shard("en-fr", 10, longest=60, shortest=51)
    message = (
        r"train\.en-fr\.arrow: row 0 has 1\d\d tokens; a pair must have at most `batch_tokens` \(100\)\."
    )
    with pytest.raises(DataError, match=message):
        stream(shards={**SHARDS, "en-fr": too_long})


def test_a_task_without_pairs_is_refused():
    with pytest.raises(DataError, match=r"train\.en-fr\.arrow: the shard holds no sentence pairs"):
        stream(shards={**SHARDS, "en-fr": shard("en-fr", 0)})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, "`seed` of the saved stream is 1, but of this one 0"),
        ({"batch_tokens": 200}, "`batch_tokens` of the saved stream is 200, but of this one 100"),
        (
            {"weights": {**WEIGHTS, "en-fr": 0.6, "en-it": 0.1}},
            "`weights` of the saved stream is .*, but of this one",
        ),
        (
            {"shards": {**SHARDS, "en-de": shard("en-de", 50)}},
            "`num_rows` of the saved stream is .*, but of this one",
        ),
    ],
)
def test_the_state_of_another_stream_is_refused(other, message):
    arguments = {"weights": WEIGHTS} | other
    with pytest.raises(DataError, match=message):
        stream().restore(stream(**arguments).state())


@settings(deadline=None)
@given(num_rows=st.integers(1, 80), batch_tokens=st.integers(18, 200))
def test_evaluation_reads_every_pair_once_in_order_of_length(num_rows, batch_tokens):
    pairs = shard("en-de", num_rows)
    batches = list(eval_batches(pairs, batch_tokens=batch_tokens))
    rows = [row for _, row in examples(batches, ["en-de"])]
    assert sorted(rows) == list(range(num_rows))
    lengths = [(len(pairs.tgt[row]), len(pairs.src[row])) for row in rows]
    assert lengths == sorted(lengths)
    assert all(batch.src.size + batch.tgt.size <= batch_tokens for batch in batches)
    assert sum(batch.num_tokens for batch in batches) == pairs.tgt.lengths.sum()


def test_evaluation_names_a_pair_over_the_budget():
    with pytest.raises(DataError, match=r"train\.en-de\.arrow: row \d+ has \d+ tokens"):
        next(eval_batches(SHARDS["en-de"], batch_tokens=12))

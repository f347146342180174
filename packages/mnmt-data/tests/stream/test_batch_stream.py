import json
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.store.ragged import Ragged
from mnmt_data.store.segments import SegmentInfo, write_segment
from mnmt_data.store.shards import Shard, segment_path
from mnmt_data.stream.batch_stream import BatchStream, eval_batches
from mnmt_data.stream.mixture import Mixture, Phase, Schedule, explicit_scalarization
from mnmt_data.stream.prefetch import Share

TASKS = {"en-de": 90, "en-fr": 23, "en-it": 400}
WEIGHTS = {"en-de": 0.3, "en-fr": 0.1, "en-it": 0.6}
LATER = {"en-de": 0.5, "en-fr": 0.5, "en-it": 0.0}
BATCH_TOKENS = 300


class Memory:
    """Pairs of random lengths that can be told apart: each repeats its row + 3 on both sides."""

    def __init__(self, num_rows, *, shortest=1, longest=9):
        random = np.random.default_rng(num_rows)
        lengths = random.integers(shortest, longest + 1, size=(2, num_rows))
        self.src, self.tgt = (
            Ragged.from_rows([np.full(length, row + 3) for row, length in enumerate(side)])
            for side in lengths
        )
        self.info = SegmentInfo(
            pairs=num_rows,
            src_tokens=int(lengths[0].sum()),
            tgt_tokens=int(lengths[1].sum()),
            longest=int(lengths.sum(axis=0).max(initial=0)),
            longest_side=int(lengths.max(initial=0)),
        )

    def lengths(self, rows):
        return self.src.lengths_of(rows), self.tgt.lengths_of(rows)

    def gather(self, rows):
        return self.src.take(rows), self.tgt.take(rows)

    def shard(self, folder, *, segments=1, block_rows=1):
        """The same pairs on disk."""
        folder.mkdir(parents=True)
        for number, rows in enumerate(np.array_split(np.arange(self.info.pairs), segments)):
            write_segment(segment_path(folder, number), *self.gather(rows), block_rows=block_rows)
        return Shard.open(folder)


SHARDS = {task: Memory(num_rows) for task, num_rows in TASKS.items()}
TWO_PHASES = Schedule((Phase(mixture=Mixture(WEIGHTS)), Phase(mixture=Mixture(LATER), step=45)))
BEST = {task: np.random.default_rng(1).permutation(num_rows) for task, num_rows in TASKS.items()}


def stream(weights=WEIGHTS, *, shards=SHARDS, batch_tokens=BATCH_TOKENS, seed=0, orders=None):
    mixture = weights if isinstance(weights, Schedule) else Mixture(weights)
    return BatchStream(shards, mixture, batch_tokens=batch_tokens, seed=seed, orders=orders)


def pairs_of(batch, tasks=tuple(TASKS)):
    """(task, row) of each pair of a batch, from its tokens."""
    return [(tasks[task], int(row) - 3) for task, row in zip(batch.tasks, batch.src[:, 0], strict=True)]


def numbered_pairs(batch):
    """(id, pair, loss weight) of each pair of a batch."""
    return list(zip(batch.ids.tolist(), pairs_of(batch), batch.loss_weights.tolist(), strict=True))


def tokens(batch):
    """Tokens of both sides without padding."""
    return np.count_nonzero(batch.src) + np.count_nonzero(batch.tgt)


def assert_same(first, second):
    for side in ("src", "tgt", "tasks", "loss_weights"):
        np.testing.assert_array_equal(getattr(first, side), getattr(second, side))


@given(
    weights=st.sampled_from([WEIGHTS, TWO_PHASES]), steps=st.lists(st.integers(0, 400)), seed=st.integers()
)
def test_any_step_can_be_asked_for_in_any_order(weights, steps, seed):
    walked = list(islice(stream(weights, seed=seed), max(steps, default=0) + 1))
    asked = stream(weights, seed=seed)
    for step in steps:
        assert_same(asked.batch(step), walked[step])


@given(
    weights=st.sampled_from([WEIGHTS, TWO_PHASES]),
    stop=st.integers(0, 300),
    used=st.integers(0, 3),
    seed=st.integers(-(2**70), 2**70),
)
def test_a_resumed_stream_is_one_that_never_stopped(weights, stop, used, seed):
    whole, resumed = stream(weights, seed=seed), stream(weights, seed=seed)
    for _ in islice(whole, stop):
        pass
    for _ in islice(resumed, used):
        pass
    resumed.restore(json.loads(json.dumps(whole.state())))
    assert resumed.state() == whole.state()
    for first, second in islice(zip(whole, resumed, strict=True), 40):
        assert_same(first, second)


def test_the_state_is_the_streams_identity_and_its_step():
    batches = stream()
    first = batches.state()
    for _ in islice(batches, 500):
        pass
    assert first["step"] == 0
    assert batches.state() == first | {"step": 500}


@given(step=st.integers(0, 300), ranks=st.integers(1, 4), accumulation=st.integers(1, 3), seed=st.integers())
def test_the_pieces_of_all_ranks_are_the_batch(step, ranks, accumulation, seed):
    whole = stream(TWO_PHASES, seed=seed).batch(step)
    pieces = [
        piece
        for rank in range(ranks)
        for piece in stream(TWO_PHASES, seed=seed).share(
            step, Share(rank=rank, num_ranks=ranks, accumulation=accumulation)
        )
    ]
    assert len(pieces) == ranks * accumulation
    found = [each for piece in pieces for each in numbered_pairs(piece)]
    assert Counter(found) == Counter(numbered_pairs(whole))
    assert len({number for number, _, _ in found}) == len(found)
    sizes = np.array([tokens(piece) for piece in pieces])
    assert sizes.sum() == tokens(whole)
    assert np.abs(sizes - tokens(whole) / len(pieces)).max() <= 18


@given(weights=st.sampled_from([WEIGHTS, TWO_PHASES]), step=st.integers(0, 300), seed=st.integers())
def test_addresses_name_the_pairs_of_a_batch_in_order(weights, step, seed):
    batches = stream(weights, seed=seed)
    batch, locations = batches.batch(step), batches.locations(step)
    assert pairs_of(batch) == locations
    for (task, row), src, tgt in zip(locations, batch.src, batch.tgt, strict=True):
        assert np.trim_zeros(src).tolist() == SHARDS[task].src[row].tolist()
        assert np.trim_zeros(tgt).tolist() == SHARDS[task].tgt[row].tolist()


@given(
    weights=st.sampled_from([WEIGHTS, TWO_PHASES]),
    steps=st.lists(st.sampled_from([0, 1, 29, 44, 45, 46, 90, 173, 174, 200]), min_size=1, max_size=3),
    seed=st.integers(),
)
def test_counts_are_the_addresses_before_a_step(weights, steps, seed):
    batches, found = stream(weights, seed=seed), Counter(dict.fromkeys(TASKS, 0))
    for step, batch in zip(range(max(steps) + 1), batches, strict=False):
        if step in steps:
            assert stream(weights, seed=seed).counts(step) == dict(found)
        found.update(task for task, _ in pairs_of(batch))


def test_loss_weights_are_those_of_the_phase():
    mixture = Mixture({"en-de": 0.9, "en-fr": 0.1, "en-it": 0.0})
    phase = explicit_scalarization(mixture)
    schedule = Schedule((phase, Phase(mixture=mixture, step=10)))
    batches = stream(schedule)
    for step in range(20):
        for batch in (batches.batch(step), batches.share(step, Share(rank=1, num_ranks=2))[0]):
            expected = np.array([1.8, 0.2, np.nan] if step < 10 else [1, 1, 1], dtype=np.float32)
            np.testing.assert_array_equal(batch.loss_weights, expected[batch.tasks])
            assert batch.loss_weights.dtype == np.float32


@pytest.mark.parametrize("batch_tokens", [100, 1000, 5000])
def test_batches_have_their_tokens_on_average(batch_tokens):
    """A batch differs from its window's average by a pair at most, a window from the budget by chance."""
    sizes = [tokens(batch) for batch in islice(stream(batch_tokens=batch_tokens), 1000)]
    assert np.mean(sizes) == pytest.approx(batch_tokens, rel=0.05)
    assert max(sizes) < batch_tokens * 1.15 + 18
    assert min(sizes) > batch_tokens * 0.85 - 18


@pytest.mark.parametrize("segments", [1, 7])
def test_shards_on_disk_read_as_arrays_in_memory(segments, tmp_path):
    on_disk = {task: rows.shard(tmp_path / task, segments=segments) for task, rows in SHARDS.items()}
    for one, other in islice(zip(stream(shards=on_disk), stream(), strict=True), 300):
        assert_same(one, other)


def explicit_schedule():
    return Schedule((explicit_scalarization(Mixture(WEIGHTS)),))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"num_ranks": 0}, "`num_ranks` and `accumulation` must be at least 1"),
        ({"accumulation": 0}, "`num_ranks` and `accumulation` must be at least 1"),
        ({"rank": 2, "num_ranks": 2}, r"`rank` must be in \[0, 2\), but is 2\."),
        ({"rank": -1}, r"`rank` must be in \[0, 1\), but is -1\."),
    ],
)
def test_a_share_names_what_is_out_of_range(field, message):
    with pytest.raises(ValueError, match=message):
        Share(**field)


@given(
    step=st.integers(0, 60),
    ranks=st.integers(1, 5),
    accumulation=st.integers(1, 4),
    batch_tokens=st.sampled_from([20, 60, 200]),
)
def test_every_rank_knows_the_tokens_of_every_piece_of_all(step, ranks, accumulation, batch_tokens):
    batches = stream(TWO_PHASES, seed=1, batch_tokens=batch_tokens)
    read = [
        [(np.count_nonzero(part.src), part.num_tokens) for part in batches.share(step, share)]
        for share in (Share(rank=r, num_ranks=ranks, accumulation=accumulation) for r in range(ranks))
    ]
    for rank in range(ranks):
        window = batches.window(step, Share(rank=rank, num_ranks=ranks, accumulation=accumulation))
        known = window.piece_tokens[step - window.first_step]
        assert known.transpose(1, 0, 2).tolist() == [[list(tokens) for tokens in parts] for parts in read]


def test_of_more_pieces_than_pairs_the_last_are_empty():
    batches = stream()
    whole = batches.batch(0)
    num_ranks = len(whole.src) + 3
    pieces = [batches.share(0, Share(rank=rank, num_ranks=num_ranks))[0] for rank in range(num_ranks)]
    assert [len(piece.src) for piece in pieces] == [1] * len(whole.src) + [0] * 3
    assert sum(piece.num_tokens for piece in pieces) == whole.num_tokens


def test_a_shard_outside_the_mixture_is_left_alone():
    shards = {"en-xx": None, **SHARDS}
    assert_same(next(stream(shards=shards)), next(stream()))
    assert stream({**WEIGHTS, "en-xx": 0.0}).tasks == (*TASKS, "en-xx")
    assert_same(next(stream({**WEIGHTS, "en-xx": 0.0}, shards=shards)), next(stream()))


def test_a_task_without_a_shard_is_named():
    message = r"`shards` must hold every task of positive weight, but lacks en-fr, en-it\."
    with pytest.raises(ValueError, match=message):
        stream(shards={"en-de": SHARDS["en-de"]})


def test_a_task_drawn_in_a_later_phase_needs_its_shard_too():
    schedule = Schedule((Phase(mixture=Mixture(LATER)), Phase(mixture=Mixture(WEIGHTS), step=1000)))
    with pytest.raises(ValueError, match="but lacks en-it"):
        stream(schedule, shards={task: SHARDS[task] for task in ("en-de", "en-fr")})


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (
            Memory(10, shortest=26, longest=30),
            r"train\.en-fr: the longest pair has \d\d tokens; it must have",
        ),
        (Memory(0), r"train\.en-fr: the shard holds no sentence pairs; at least one is needed\."),
    ],
)
def test_pairs_that_make_no_batch_are_refused_before_training(corpus, message, tmp_path):
    shards = SHARDS | {"en-fr": corpus.shard(tmp_path / "train.en-fr")}
    with pytest.raises(DataError, match=message):
        stream(shards=shards, batch_tokens=50)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, r"^`seed` of the saved stream is 1, but of this one 0\.$"),
        ({"batch_tokens": 200}, r"^`batch_tokens` of the saved stream is 200, but of this one 300\.$"),
        ({"weights": LATER}, "^`schedule` of the saved stream is .*, but of this one .*"),
        ({"weights": TWO_PHASES}, "^`schedule` of the saved stream is .*, but of this one .*"),
        ({"weights": explicit_schedule()}, "^`schedule` of the saved stream is .*, but of this one .*"),
        ({"shards": {**SHARDS, "en-de": Memory(50)}}, "^`num_rows` of the saved stream is {'en-de': 50,"),
        (
            {"shards": {**SHARDS, "en-de": Memory(90, longest=8)}},
            "^`num_tokens` of the saved stream is {'en-de': ",
        ),
        (
            {"orders": {"en-it": BEST["en-it"]}},
            r"^`selected` of the saved stream is \{'en-it': '\w+'\}, but of this",
        ),
    ],
)
def test_the_state_of_another_stream_is_refused(other, message):
    state = json.loads(json.dumps(stream(**other).state()))
    with pytest.raises(DataError, match=message):
        stream().restore(state)


def test_one_other_pair_of_prepared_data_is_refused(tmp_path):
    """As `PreparedData.shard` opens shards, with a digest of all."""
    shards = {}
    for digest in ("one", "other"):
        shard = Memory(50).shard(tmp_path / digest / "train.en-de", segments=1)
        shards[digest] = Shard.open(shard.path, digest=digest)
    one, other = (stream(shards={**SHARDS, "en-de": shard}) for shard in shards.values())
    with pytest.raises(DataError, match="read other pairs of en-de"):
        other.restore(one.state())
    one.restore(one.state())


@given(num_rows=st.integers(1, 80), batch_tokens=st.integers(18, 200))
def test_evaluation_reads_every_pair_once_in_order_of_length(num_rows, batch_tokens, tmp_path_factory):
    pairs = Memory(num_rows)
    shard = pairs.shard(tmp_path_factory.mktemp("shards") / "dev.en-de", segments=2)
    batches = list(eval_batches(shard, batch_tokens=batch_tokens))
    rows = [row for batch in batches for _, row in pairs_of(batch)]
    assert sorted(rows) == list(range(num_rows))
    lengths = [(len(pairs.tgt[row]), len(pairs.src[row])) for row in rows]
    assert lengths == sorted(lengths)
    assert all(batch.src.size + batch.tgt.size <= batch_tokens for batch in batches)
    assert sum(batch.num_tokens for batch in batches) == pairs.info.tgt_tokens
    assert all((batch.loss_weights == 1).all() and (batch.tasks == 0).all() for batch in batches)


def test_evaluation_takes_a_pair_that_is_longer_than_a_batch(tmp_path):
    pairs = Memory(20)
    batches = list(eval_batches(pairs.shard(tmp_path / "dev.en-de"), batch_tokens=9))
    assert sum(len(batch.src) for batch in batches) == 20
    assert max(batch.src.size + batch.tgt.size for batch in batches) > 9
    assert all(len(batch.src) == 1 or batch.src.size + batch.tgt.size <= 9 for batch in batches)


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """The same pairs on disk, marked as those of shuffled shards."""
    folder = tmp_path_factory.mktemp("shuffled")
    return {task: pairs.shard(folder / task, segments=3, block_rows=8) for task, pairs in SHARDS.items()}


@given(stop=st.integers(0, 100), num_ranks=st.integers(1, 5), seed=st.integers())
def test_blocks_of_shuffled_shards_are_the_same_for_any_ranks_and_after_a_stop(
    stop, num_ranks, seed, shuffled
):
    whole, resumed = stream(shards=shuffled, seed=seed), stream(shards=shuffled, seed=seed)
    for _ in islice(whole, stop):
        pass
    resumed.restore(json.loads(json.dumps(whole.state())))
    batch = next(whole)
    assert_same(next(resumed), batch)
    parts = [
        part
        for rank in range(num_ranks)
        for part in resumed.share(stop, Share(rank=rank, num_ranks=num_ranks))
    ]
    together = [pair for part in parts if len(part.src) for pair in numbered_pairs(part)]
    assert sorted(together) == sorted(numbered_pairs(batch))


def test_blocks_of_shuffled_shards_are_drawn_from_end_to_end_each_once_an_epoch(shuffled):
    window = stream(shards=shuffled).sampler.window(0)
    rows = window.rows["en-it"]
    assert Counter(rows[:400].tolist()) == Counter(range(400))
    blocks = rows[:400].reshape(-1, 8)
    assert (np.diff(blocks, axis=1) == 1).all()
    assert (blocks[:, 0] != np.arange(0, 400, 8)).any()


def test_selected_rows_of_a_shuffled_shard_are_drawn_one_by_one(shuffled):
    selected, plain = (stream(shards=shards, orders=BEST) for shards in (shuffled, SHARDS))
    assert selected.locations(3) == plain.locations(3)


@pytest.mark.parametrize("order", [1, -1])
def test_a_shuffled_shard_is_another_stream(order, shuffled):
    first, second = [stream(shards=SHARDS), stream(shards=shuffled)][::order]
    with pytest.raises(DataError, match=r"`block_rows` of the saved stream is .+, but of this one"):
        second.restore(first.state())

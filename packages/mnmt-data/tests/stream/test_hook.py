"""A hook on batches: a function of the step, whoever reads it, and exact in what it counts."""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data import BatchHook, BatchStream, DataError, Mixture, Phase, Schedule, Shard, Share, Vocabulary
from mnmt_data.store.direction import Direction
from mnmt_data.store.segments import write_segment
from mnmt_data.store.vocabulary import train_vocabulary

WORDS = ("the", "house", "was", "old", "nobody", "wanted", "to", "open", "that", "window", "never", "closed")
STEPS = 9
WEIGHTS = {0: (0.3, 0.7), 3: (1.0, 0.0), 6: (0.5, 0.5), STEPS: (0.0, 1.0)}
"""{first step: weights}: phases of three steps are read in windows of three batches."""
PHASES = Schedule(
    tuple(
        Phase(step=step, mixture=Mixture(dict(zip(("en-de", "en-fr"), weights, strict=True))))
        for step, weights in WEIGHTS.items()
    )
)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def vocab(request, tmp_path_factory):
    draw, path = np.random.default_rng(1), tmp_path_factory.mktemp("vocab") / "vocab.model"
    lines = [" ".join(draw.choice(WORDS, 8)) for _ in range(300)]
    train_vocabulary(lines, path, kind=request.param, size=80, languages=["de", "fr"], byte_fallback=False)
    return Vocabulary.load(path)


@pytest.fixture(scope="module")
def shards(vocab, tmp_path_factory):
    folder, draw, shards = tmp_path_factory.mktemp("shards"), np.random.default_rng(2), {}
    for task in ("en-de", "en-fr"):
        (folder / task).mkdir()
        lines = [[" ".join(draw.choice(WORDS, draw.integers(2, 9))) for _ in range(120)] for _ in "st"]
        write_segment(folder / task / "00000.arrow", *map(vocab.encode_ragged, lines))
        direction = Direction(swapped=False, target_tag="prepended", tag=vocab.tag(task[-2:]))
        shards[task] = Shard.open(folder / task, direction=direction)
    return shards


def bpe_dropout(pairs):
    """Segment both sides anew, at random."""

    def sampled(row, key):
        return pairs.vocab.recode(row, partial(pairs.vocab.sample, seed=key, rate=0.3))

    return [
        [sampled(*each) for each in zip(side, pairs.keys, strict=True)] for side in (pairs.src, pairs.tgt)
    ]


@pytest.fixture(scope="module")
def make(shards, vocab):
    def stream(function=bpe_dropout, *, name="tests:hook", max_length=60, seed=1):
        hook = function and BatchHook(name=name, function=function, vocab=vocab, max_length=max_length)
        return BatchStream(shards, PHASES, batch_tokens=400, seed=seed, hook=hook)

    return stream


def rows_of(batches, decode=tuple):
    """The pairs of batches as sorted (task, source, target), without padding."""
    rows = [row for batch in batches for row in zip(batch.tasks, batch.src, batch.tgt, strict=True)]
    return sorted((int(task), *(decode(side[side != 0].tolist()) for side in sides)) for task, *sides in rows)


def test_a_sampled_segmentation_has_the_same_text_tags_and_ends(make, shards, vocab):
    stream, changed = make(), 0
    for step in range(STEPS):
        batch = stream.batch(step)
        for (task, row), *sides in zip(stream.locations(step), batch.src, batch.tgt, strict=True):
            for before, padded in zip(shards[task].gather(np.array([row])), sides, strict=True):
                after = padded[padded != 0]
                assert vocab.decode(after) == vocab.decode(before[0])
                assert (after[-1], after[:-1].min() > 1) == (1, True)
                changed += not np.array_equal(after, before[0])
            assert sides[0][0] == vocab.tag(task[-2:])
    assert changed > STEPS


@given(step=st.integers(0, STEPS - 1), ranks=st.integers(1, 4), accumulation=st.integers(1, 2))
def test_the_ranks_have_the_batch_of_the_step(make, step, ranks, accumulation):
    batch = make().batch(step)
    shares = [Share(rank=rank, num_ranks=ranks, accumulation=accumulation) for rank in range(ranks)]
    pieces = [piece for share in shares for piece in make().share(step, share)]
    assert rows_of(pieces) == rows_of([batch])
    counted = (int((batch.src != 0).sum()), int((batch.tgt != 0).sum()))
    assert make().tokens(step) == counted == make().tokens(step, shares[0])


@given(step=st.integers(0, STEPS - 1))
def test_a_stream_continues_from_its_state(make, step):
    one, again = make(), make()
    for _ in range(step):
        next(one)
    again.restore(json.loads(json.dumps(one.state())))
    np.testing.assert_array_equal(next(one).src, next(again).src)


def test_another_seed_draws_another_segmentation(make):
    seen = {}
    for seed in (1, 2):
        stream = make(seed=seed)
        for step in range(STEPS):
            batch = stream.batch(step)
            for (task, row), src in zip(stream.locations(step), batch.src, strict=True):
                seen.setdefault((task, row), set()).add(tuple(src[src != 0].tolist()))
    assert sum(len(variants) > 1 for variants in seen.values()) > len(seen) / 4


def test_batches_have_their_tokens_after_the_hook(make):
    def doubled(pairs):
        return [[np.repeat(row, 2) for row in side] for side in (pairs.src, pairs.tgt)]

    sizes = [[sum(stream.tokens(step)) for step in range(STEPS)] for stream in (make(None), make(doubled))]
    assert np.mean(sizes, axis=1) == pytest.approx([400, 400], rel=0.1)


def test_pairs_that_become_too_long_or_empty_stay(make):
    plain = [make(lambda pairs: (pairs.src, pairs.tgt)).batch(step) for step in range(3)]
    for function in (
        lambda pairs: ([np.repeat(row, 61) for row in pairs.src], pairs.tgt),
        lambda pairs: (pairs.src, [row[:0] for row in pairs.tgt]),
    ):
        assert rows_of(make(function).batch(step) for step in range(3)) == rows_of(plain)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda pairs: (pairs.src[1:], pairs.tgt),
            r"tests:hook: must return \d+ sources and targets, not \d+ and",
        ),
        (
            lambda pairs: ([row * 1000 for row in pairs.src], pairs.tgt),
            "tests:hook: must return ids from 1 to",
        ),
        (lambda pairs: (pairs.src, [row * 0 for row in pairs.tgt]), "tests:hook: must return ids from 1 to"),
        (lambda pairs: (pairs.src, [row / 2 for row in pairs.tgt]), "must return whole numbers, not float64"),
        (lambda pairs: (pairs.src, [row[None] for row in pairs.tgt]), "target must have one dimension"),
        (lambda pairs: ([1 for row in pairs.src], pairs.tgt), "target must have one dimension"),
        (lambda pairs: None, r"tests:hook: TypeError: 'NoneType' object is not iterable\.$"),
        (lambda pairs: pairs.keys["x"], r"^tests:hook: IndexError: only integers.*test_hook.py:\d+\.$"),
    ],
)
def test_a_mistake_in_a_hook_costs_one_line(make, function, message):
    with pytest.raises(DataError, match=message):
        make(function).batch(0)


def test_another_hook_is_another_stream(make, caplog):
    state = make().state()
    for other in (make(None), make(name="tests:other")):
        with pytest.raises(DataError, match="`hook` of the saved stream is tests:hook, but of this one"):
            other.restore(state)
    with pytest.raises(DataError, match="`hook` of the saved stream is None, but of this one tests:hook"):
        make().restore(make(None).state())
    assert not caplog.messages
    make().restore({**state, "hook_code": "another"})
    assert "tests:hook has changed since the stream was saved" in caplog.text


def test_a_line_with_unknown_tokens_is_not_recoded(vocab):
    row = vocab.encode_sources(["the house ☃ was old"], target="de")[0]
    assert 2 in row
    assert vocab.recode(row, lambda text: []).tolist() == row.tolist()
    known = vocab.encode_sources(["the house was old"], target="de")[0]
    assert vocab.recode(known, lambda text: [7]).tolist() == [known[0], 7, 1]

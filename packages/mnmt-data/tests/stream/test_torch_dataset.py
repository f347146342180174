"""A stream as a data set of torch: the same batches, in order, each once, wherever reading was stopped."""

import importlib
import multiprocessing
import os
import pickle
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data import BatchStream, DataError, Mixture, Ragged, Schedule, Shard, Share, write_segment
from mnmt_data.stream import WHOLE, Phase

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402

from mnmt_data.stream.torch_dataset import (  # noqa: E402
    BatchDataset,
    model_inputs,
    share_of_this_process,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),  # torchdata calls it
]
TASKS = ("en-de", "en-fr")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two tasks of pairs of 4 to 13 tokens a side, all different."""
    folder, draw = tmp_path_factory.mktemp("shards"), np.random.default_rng(1)
    for task in TASKS:
        (folder / task).mkdir()
        sides = [
            Ragged.from_rows([draw.integers(3, 500, draw.integers(4, 14)) for _ in range(300)]) for _ in "st"
        ]
        write_segment(folder / task / "00000.arrow", *sides)
    return {task: Shard.open(folder / task) for task in TASKS}


@pytest.fixture(scope="module")
def make(shards):
    def stream(*, seed=1, batch_tokens=160, mixture=None):
        mixture = mixture or Mixture({"en-de": 0.3, "en-fr": 0.7})
        return BatchStream(shards, mixture, batch_tokens=batch_tokens, seed=seed)

    return stream


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def check(items, expected):
    items = list(items)
    assert len(items) == len(expected)
    assert all(map(same, items, expected))


def expected_items(stream, share, items):
    """The items by the stream itself."""
    pieces = (piece for step in range(items) for piece in stream.share(step, share))
    return [model_inputs(piece) for piece in islice(pieces, items)]


def test_an_item_has_the_names_and_the_padding_of_hugging_face(make):
    batch = make().batch(3)
    item = model_inputs(batch)
    assert all(tensor.dtype == torch.int64 for tensor in item.values())
    for row in range(len(batch.ids)):
        length = int((batch.src[row] != 0).sum())
        assert item["attention_mask"][row].tolist() == [1] * length + [0] * (batch.src.shape[1] - length)
        assert item["input_ids"][row, :length].tolist() == batch.src[row, :length].tolist()
        labels = item["labels"][row].tolist()
        length = int((batch.tgt[row] != 0).sum())
        assert labels == batch.tgt[row, :length].tolist() + [-100] * (batch.tgt.shape[1] - length)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("share", [WHOLE, Share(rank=1, num_ranks=2, accumulation=3)])
def test_a_loader_gives_every_item_once_in_order(make, workers, share):
    loader = DataLoader(BatchDataset(make(), share), batch_size=None, num_workers=workers)
    check(islice(loader, 25), expected_items(make(), share, 25))


@given(st.integers(0, 40), st.integers(1, 3), st.integers(0, 5))
def test_a_state_continues_exactly_there(make, items, accumulation, more):
    share = Share(rank=0, num_ranks=2, accumulation=accumulation)
    dataset = BatchDataset(make(), share)
    check(islice(dataset, items), expected_items(make(), share, items))
    state = pickle.loads(pickle.dumps(dataset.state_dict()))
    check(islice(dataset, more), expected_items(make(), share, items + more)[items:])
    other = BatchDataset(make(), share)
    other.load_state_dict(state)
    check(islice(other, 7), expected_items(make(), share, items + 7)[items:])


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_stateful_loader_continues_exactly_there(make, workers):
    pytest.importorskip("torchdata")
    from torchdata.stateful_dataloader import StatefulDataLoader

    share, stopped = Share(rank=1, num_ranks=2, accumulation=2), 7

    def loader():
        return StatefulDataLoader(BatchDataset(make(), share), batch_size=None, num_workers=workers)

    first, expected = loader(), expected_items(make(), share, 30)
    items = iter(first)
    check(islice(items, stopped), expected[:stopped])
    state = pickle.loads(pickle.dumps(first.state_dict()))
    del items, first
    again = loader()
    again.load_state_dict(state)
    check(islice(again, 20), expected[stopped : stopped + 20])


@pytest.mark.slow
def test_processes_that_are_started_anew_read_the_same(make):
    context = multiprocessing.get_context("spawn")
    loader = DataLoader(BatchDataset(make()), batch_size=None, num_workers=1, multiprocessing_context=context)
    check(islice(loader, 3), expected_items(make(), WHOLE, 3))


def pairs_of(batches):
    """The pairs of batches, as sorted tuples of task, source and target without padding."""
    rows = [row for batch in batches for row in zip(batch.tasks, batch.src, batch.tgt, strict=True)]
    return sorted((int(task), *(tuple(side[side != 0].tolist()) for side in sides)) for task, *sides in rows)


SHARES = st.tuples(st.integers(1, 4), st.integers(1, 3))


@given(before=SHARES, now=SHARES, steps=st.integers(0, 9), more=st.integers(1, 3))
def test_other_ranks_read_the_rest_of_the_same_batches(make, before, now, steps, more):
    """Across a change of the mixture at step 5."""
    phases = Schedule(
        (
            Phase(mixture=Mixture({"en-de": 0.3, "en-fr": 0.7})),
            Phase(step=5, mixture=Mixture({"en-de": 1.0, "en-fr": 0.0})),
        )
    )

    def dataset(rank, share):
        share = Share(rank=rank, num_ranks=share[0], accumulation=share[1])
        return BatchDataset(make(mixture=phases, batch_tokens=500), share, convert=lambda batch: batch)

    first = dataset(before[0] - 1, before)
    list(islice(first, steps * before[1]))
    state = pickle.loads(pickle.dumps(first.state_dict()))
    pieces = []
    for rank in range(now[0]):
        again = dataset(rank, now)
        again.load_state_dict(state)
        pieces.append(list(islice(again, more * now[1])))
    for step in range(more):
        batch = make(mixture=phases, batch_tokens=500).batch(steps + step)
        own = slice(step * now[1], (step + 1) * now[1])
        assert pairs_of([piece for of_rank in pieces for piece in of_rank[own]]) == pairs_of([batch])


@pytest.mark.parametrize(("item", "reader"), [(3, [0, 1]), (2, [0, 2])])
def test_other_ranks_do_not_begin_within_a_step(make, item, reader):
    share = Share(num_ranks=2, accumulation=2)
    state = {**BatchDataset(make(), share).state_dict(), "item": item, "reader": reader}
    BatchDataset(make(), share).load_state_dict(state)
    with pytest.raises(DataError, match="2 ranks and `accumulation` 2 may be within a step"):
        BatchDataset(make(), Share(num_ranks=3, accumulation=2)).load_state_dict(state)


def test_a_state_of_other_workers_is_refused(make):
    dataset = BatchDataset(make())
    dataset.load_state_dict({**dataset.state_dict(), "reader": [1, 2]})
    with pytest.raises(DataError, match="the saved position is of 2 workers, but there are 1"):
        next(iter(dataset))


def test_loss_weights_are_not_left_out_in_silence(make):
    phase = Phase(mixture=Mixture({"en-de": 0.5, "en-fr": 0.5}), loss_weights={"en-de": 2.0})
    stream = make(mixture=Schedule((phase,)))
    with pytest.raises(ValueError, match="give a `convert` that passes them on"):
        next(iter(BatchDataset(stream)))
    weights = next(iter(BatchDataset(stream, convert=lambda batch: batch.loss_weights)))
    assert set(weights.tolist()) == {1.0, 2.0}


def test_the_share_is_that_of_torchruns_environment(make, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert BatchDataset(make()).share == WHOLE
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert BatchDataset(make()).share == Share(rank=2, num_ranks=4)
    assert share_of_this_process(accumulation=3) == Share(rank=2, num_ranks=4, accumulation=3)


def test_the_share_is_that_of_the_process_group(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("WORLD_SIZE", "8")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        assert share_of_this_process() == WHOLE
    finally:
        torch.distributed.destroy_process_group()


def test_missing_torch_is_named_with_its_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "mnmt_data.stream.torch_dataset")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r"^BatchDataset needs the extra `torch`: pip install '.*mnmt-data\[torch\]'\.$"
    ):
        importlib.import_module("mnmt_data.stream.torch_dataset")


def test_the_package_does_not_import_torch():
    program = "import sys, mnmt_data, mnmt_data.stream, mnmt_data.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], env=os.environ, check=False).returncode == 0

"""Filler changes numbers of tokens and nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.stream import Batch
from mnmt_model.runs.filler import fill
from mnmt_model.transformer import ModelConfig, Sentences, build_model, initialise
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=60)


def table(lengths: list[int]) -> np.ndarray:
    return np.where(np.arange(max(lengths)) < np.array(lengths)[:, None], 5, 0)


def batch_of(lengths: list[tuple[int, int]]) -> Batch:
    src, tgt = (table([pair[side] for pair in lengths]) for side in (0, 1))
    number = len(lengths)
    weights = np.ones(number, dtype=np.float32)
    return Batch(
        src=src, tgt=tgt, tasks=np.zeros(number, dtype=np.int64), loss_weights=weights, ids=np.arange(number)
    )


@given(LENGTHS)
def test_tokens_become_round_and_pairs_stay(lengths: list[tuple[int, int]]) -> None:
    batch, number = batch_of(lengths), len(lengths)
    filled = fill(batch)
    for before, after in ((batch.src, filled.src), (batch.tgt, filled.tgt)):
        assert np.array_equal(after[:number], before)
        tokens, added = np.count_nonzero(after), np.count_nonzero(after[number:])
        step = max(1, 2 ** int(np.log2(tokens)) // 32)
        assert tokens % step == 0
        assert added <= 2 * step or added < len(after) - number + 2 * step
        assert (after[number:] != 0).any(axis=1).all()
    assert (filled.loss_weights[number:] == 0).all()
    assert (
        len({len(filled.src), len(filled.tgt), len(filled.tasks), len(filled.loss_weights), len(filled.ids)})
        == 1
    )


def test_batches_of_like_sizes_have_few_numbers_of_tokens() -> None:
    rng = np.random.default_rng(0)
    totals = set()
    for _ in range(200):
        lengths = rng.integers(5, 15, size=(100, 2)).tolist()
        totals.add(np.count_nonzero(fill(batch_of(lengths)).src))
    assert len(totals) <= 12


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_losses_and_gradients_are_those_without(architecture: Architecture) -> None:
    layers = {"encoder_layers": 1, "decoder_layers": 1} if architecture == "encdec" else {"decoder_layers": 1}
    config = ModelConfig(architecture=architecture, d_model=16, num_heads=2, d_ff=24, **layers)
    model = build_model(config, 12)
    initialise(model, 1)
    batch = batch_of([(7, 3), (9, 30), (25, 29), (30, 11)])
    results = []
    for each in (batch, fill(batch)):
        src, tgt = (Sentences.from_padded(torch.from_numpy(ids)) for ids in (each.src, each.tgt))
        losses = model(
            src, tgt, pair_weights=torch.from_numpy(each.loss_weights), label_smoothing=0.1, z_loss=1e-3
        )
        gradients = torch.autograd.grad(losses.objective, list(model.parameters()))
        results.append((losses.objective.detach(), losses.pair_nats[:4], *gradients))
    assert len(fill(batch).tasks) > 4
    for without, with_filler in zip(*results, strict=True):
        torch.testing.assert_close(with_filler, without, rtol=1e-4, atol=1e-5)

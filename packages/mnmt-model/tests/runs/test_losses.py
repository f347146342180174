"""Losses over shards, whose pairs may be weighted."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from mnmt_data.store import Shard, open_prepared
from mnmt_data.store.shards import write_loss_weights
from mnmt_model.runs.losses import pair_nats, shard_loss
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.model_config import ModelConfig


def test_a_weighted_shard_has_the_weighted_mean_loss(results: Path, tmp_path: Path) -> None:
    data = open_prepared(results / "data")
    model = build_model(ModelConfig(d_model=16, num_heads=2, head_dim=8, d_ff=32), data.vocab.size).eval()
    initialise(model, 1)
    shard = Shard.open(shutil.copytree(data.shard("dev", "xx-aa").path, tmp_path / "dev.xx-aa"))
    every, weights = np.arange(len(shard)), np.random.default_rng(0).uniform(size=len(shard))
    src, tgt = shard.gather(every)
    with torch.no_grad():
        tables = (torch.from_numpy(side.padded(every)) for side in (src, tgt))
        nats = pair_nats(model, *tables).double().numpy()
    plain = shard_loss(model, shard, batch_tokens=100)
    assert plain == pytest.approx(nats.sum() / tgt.lengths.sum(), rel=1e-6)
    write_loss_weights(shard.path, weights)
    weighted = shard_loss(model, shard, batch_tokens=100)
    assert weighted == pytest.approx(nats @ weights / (tgt.lengths @ weights), rel=1e-6)
    assert weighted != pytest.approx(plain, rel=1e-4)

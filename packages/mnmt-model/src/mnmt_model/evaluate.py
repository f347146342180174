"""Losses on the held-out sets."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from mnmt_data.batches import eval_batches
from mnmt_data.prepared import Prepared
from mnmt_data.shards import Shard
from mnmt_model.loss import total_loss
from mnmt_model.transformer import EncoderDecoder


@torch.inference_mode()
def shard_loss(model: EncoderDecoder, shard: Shard, *, batch_tokens: int) -> float:
    """Mean -log p of the shard's target tokens, `</s>` included, in nats per token."""
    was_training = model.training
    model.eval()
    total, tokens = 0.0, 0
    for batch in eval_batches(shard, batch_tokens=batch_tokens):
        total += float(total_loss(model, torch.from_numpy(batch.src), torch.from_numpy(batch.tgt)))
        tokens += batch.num_tokens
    model.train(was_training)
    return total / tokens


def losses(
    model: EncoderDecoder, data: Prepared, *, batch_tokens: int, dev_only: bool
) -> Iterator[tuple[str, str, float]]:
    """`(task, testset, loss)` of every task, those it was not trained on included."""
    for task in data.tasks:
        for testset in ("dev",) if dev_only else ("dev", *data.testsets(task)):
            shard = data.shard(testset, task)
            yield task, testset, shard_loss(model, shard, batch_tokens=batch_tokens)

"""Losses of a model on the dev and test sets of its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

import torch
from torch import Tensor

from mnmt_data.store import PreparedData, Shard
from mnmt_data.stream import eval_batches
from mnmt_model.distributed.world import World
from mnmt_model.transformer.experts.experts import cast_once
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel


def pair_nats(model: TranslationModel, src: Tensor, tgt: Tensor) -> Tensor:
    """Return -log p(target | source) of each pair, `(batch,)` float32, in nats, `</s>` included.

    Args:
        model: The model, in evaluation mode.
        src: `(batch, src_len)` token ids; 0 is padding.
        tgt: `(batch, tgt_len)` token ids; 0 is padding.
    """
    device = model.embedding.weight.device
    sentences = (Sentences.from_padded(ids).to(device) for ids in (src, tgt))
    nats: Tensor = model(*sentences).pair_nats
    return nats


@torch.no_grad()
def shard_loss(
    model: TranslationModel, shard: Shard, *, batch_tokens: int, world: World | None = None
) -> float:
    """Return the mean -log p of the shard's target tokens, `</s>` included, in nats per token.

    If pairs have weights, it is the weighted mean: the loss over the distribution that they represent.

    Args:
        model: The model.
        shard: The pairs.
        batch_tokens: Source and target tokens of a batch, padding included.
        world: The processes that share the batches; each calls this.
    """
    world = world or World()
    was_training = model.training
    model.eval()
    batches = list(eval_batches(shard, batch_tokens=batch_tokens))
    sums = torch.zeros(2, dtype=torch.float64)
    # Sharded parameters need equally many passes of all processes: one without a batch repeats the first.
    with cast_once(model):
        for first in range(0, len(batches), world.size):
            number = first + world.rank
            batch = batches[number if number < len(batches) else 0]
            nats = pair_nats(model, torch.from_numpy(batch.src), torch.from_numpy(batch.tgt))
            if number < len(batches):
                weights = torch.from_numpy(batch.loss_weights).to(nats.device)
                sums += torch.tensor(
                    [float((nats.double() * weights).sum()), batch.weighted_tokens], dtype=torch.float64
                )
    model.train(was_training)
    total, tokens = world.sum(sums).tolist()
    return float(total / tokens)


def mean_dev_loss(by_task: Mapping[str, float], mixture: Mapping[str, float]) -> float:
    """Return the mean dev loss over the trained tasks."""
    return fmean(loss for task, loss in by_task.items() if mixture.get(task, 0) > 0)


def losses_by_task(
    model: TranslationModel,
    data: PreparedData,
    testset: str,
    *,
    batch_tokens: int,
    world: World | None = None,
) -> Iterator[tuple[str, float]]:
    """Yield `(task, loss)` for every task that has the test set, zero-shot tasks included."""
    for task in data.evaluated:
        if testset == "dev" or testset in data.testsets(task):
            shard = data.shard(testset, task)
            yield task, shard_loss(model, shard, batch_tokens=batch_tokens, world=world)

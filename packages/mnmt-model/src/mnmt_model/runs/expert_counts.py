"""Count the choices of each expert of a trained mixture on a test set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from mnmt_data.store import PreparedData, Ragged, read_record, write_record
from mnmt_data.stream import batch_by_tokens
from mnmt_model.checkpoints import weights_checksum
from mnmt_model.runs.expert_loads import BLOCKS, TaskLoads, loads_path
from mnmt_model.runs.load import OpenedRun
from mnmt_model.transformer.experts.routes import RoutingContext
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

BATCH_TOKENS = 4096


def write_expert_loads(
    run: OpenedRun,
    data: PreparedData,
    *,
    testset: str,
    task: str,
    model: Callable[[], TranslationModel],
    batch_tokens: int = BATCH_TOKENS,
) -> None:
    """Count the choices of each expert on a test set and write them, unless the file is current.

    Args:
        run: A run of a mixture of experts at a checkpoint.
        data: The run's data.
        testset: The test set.
        task: The task.
        model: Returns the run's model in evaluation mode, with the weights of the checkpoint.
        batch_tokens: Source and target tokens of a batch, padding included, or one longer pair.

    Raises:
        DataError: If the data cannot be read.
    """
    path, weights = loads_path(run.folder, testset, task), weights_checksum(run.checkpoint)
    current = read_record(path, TaskLoads)
    if current is not None and (current.weights, current.data) == (weights, data.fingerprint):
        return
    shard = data.shard(testset, task)
    src, tgt = shard.gather(np.arange(len(shard)))
    loads = count_choices(model(), src, tgt, batch_tokens=batch_tokens)
    step = run.progress.step
    write_record(path, TaskLoads(loads=loads, step=step, weights=weights, data=data.fingerprint))


@torch.inference_mode()
def count_choices(
    model: TranslationModel, src: Ragged, tgt: Ragged, *, batch_tokens: int
) -> NDArray[np.int64]:
    """Count the choices of each expert by the tokens of each block of pairs: `(BLOCKS, layers, experts)`.

    The model computes pairs of source and reference, as for a loss. Without capacity and random choices, each
    token has its best experts in any batch. All pairs have the same weight, even if their losses have not.

    Args:
        model: The model, in evaluation mode.
        src: Token ids of the sources.
        tgt: Token ids of the targets.
        batch_tokens: Source and target tokens of a batch, padding included, or one longer pair.
    """
    device, pairs = model.embedding.weight.device, len(src)
    loads = torch.zeros(len(model.mixtures), BLOCKS, model.config.num_experts, dtype=torch.int64)
    for rows in batch_by_tokens(src.lengths, tgt.lengths, batch_tokens=batch_tokens):
        blocks = torch.from_numpy(rows * BLOCKS // pairs).to(device)
        routing = RoutingContext(
            pair_ids=torch.from_numpy(rows).to(device),
            seed_and_step=torch.zeros(2, dtype=torch.int64, device=device),
            labels=blocks,
            num_labels=BLOCKS,
        )
        sides = (Sentences.from_padded(torch.from_numpy(ids.padded(rows))).to(device) for ids in (src, tgt))
        loads += model(*sides, routing=routing).balance.load.cpu()
    return loads.transpose(0, 1).numpy()

"""Pairs that weigh nothing, so that batches have few different numbers of tokens.

Otherwise small models wait in each step for oneDNN to compile products; see `round_rows`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mnmt_data.stream import Batch
from mnmt_model.transformer.products import round_rows

_TOKEN = 1
"""`</s>`, of which every vocabulary has one."""


def fill(batch: Batch) -> Batch:
    """Return the batch with pairs of weight 0 after its own, such that its tokens are a round number.

    Both the source tokens and the target tokens are round, as `round_rows` says; about 1/64 are filler.
    """
    src_tokens, tgt_tokens = _missing(batch.src), _missing(batch.tgt)
    if not src_tokens and not tgt_tokens:
        return batch
    # Each pair of the filler needs a token on either side.
    while (pairs := max(-(-src_tokens // batch.src.shape[1]), -(-tgt_tokens // batch.tgt.shape[1]))) > min(
        src_tokens, tgt_tokens
    ):
        if src_tokens < pairs:
            src_tokens = _missing(batch.src, src_tokens + 1)
        if tgt_tokens < pairs:
            tgt_tokens = _missing(batch.tgt, tgt_tokens + 1)
    return replace(
        batch,
        src=_append(batch.src, src_tokens, pairs),
        tgt=_append(batch.tgt, tgt_tokens, pairs),
        tasks=np.append(batch.tasks, np.zeros(pairs, dtype=batch.tasks.dtype)),
        loss_weights=np.append(batch.loss_weights, np.zeros(pairs, dtype=batch.loss_weights.dtype)),
        ids=np.append(batch.ids, np.zeros(pairs, dtype=batch.ids.dtype)),
    )


def _missing(ids: NDArray[np.int64], least: int = 0) -> int:
    """Return how many more tokens, but not fewer than `least`, make the number of a table's tokens round."""
    tokens = int(np.count_nonzero(ids))
    return round_rows(tokens + least) - tokens


def _append(ids: NDArray[np.int64], tokens: int, rows: int) -> NDArray[np.int64]:
    """Return the table with so many more tokens, spread over so many more rows."""
    lengths = (tokens + np.arange(rows)) // rows
    filler = np.where(np.arange(ids.shape[1]) < lengths[:, None], _TOKEN, 0).astype(ids.dtype)
    return np.concatenate([ids, filler])

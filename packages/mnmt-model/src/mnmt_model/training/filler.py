"""Pairs that weigh nothing, so that batches have few different numbers of tokens.

For each number of rows that it has not met, oneDNN compiles a product anew, which takes longer than a small
product: about a millisecond each, of which a step may have a hundred. It remembers the last 1,024. The
tokens of batches differ, so that without filler small models compile all the time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mnmt_data.stream import Batch

STEPS = 32
"""Different numbers of tokens between a power of two and the next: filler is 1/64 of a batch on average."""

_TOKEN = 1
"""`</s>`, of which every vocabulary has one."""


def fill(batch: Batch) -> Batch:
    """Return the batch with pairs of weight 0 after its own, such that its tokens are a round number.

    A number of tokens is round if it is a multiple of 1 / `STEPS` of the power of two below it; so are the
    source tokens and the target tokens of the result.
    """
    src_tokens, tgt_tokens = _missing(batch.src), _missing(batch.tgt)
    if not src_tokens and not tgt_tokens:
        return batch
    # Each pair of the filler needs a token on either side.
    while (pairs := max(-(-src_tokens // batch.src.shape[1]), -(-tgt_tokens // batch.tgt.shape[1]))) > min(
        src_tokens, tgt_tokens
    ):
        if src_tokens < pairs:
            src_tokens += _step(batch.src)
        if tgt_tokens < pairs:
            tgt_tokens += _step(batch.tgt)
    return replace(
        batch,
        src=_append(batch.src, src_tokens, pairs),
        tgt=_append(batch.tgt, tgt_tokens, pairs),
        tasks=np.append(batch.tasks, np.zeros(pairs, dtype=batch.tasks.dtype)),
        loss_weights=np.append(batch.loss_weights, np.zeros(pairs, dtype=batch.loss_weights.dtype)),
        ids=np.append(batch.ids, np.zeros(pairs, dtype=batch.ids.dtype)),
    )


def _step(ids: NDArray[np.int64]) -> int:
    return max(1, (1 << (int(np.count_nonzero(ids)).bit_length() - 1)) // STEPS)


def _missing(ids: NDArray[np.int64]) -> int:
    """Return the tokens from a table's to the next round number."""
    return -int(np.count_nonzero(ids)) % _step(ids)


def _append(ids: NDArray[np.int64], tokens: int, rows: int) -> NDArray[np.int64]:
    """Return the table with so many more tokens, spread over so many more rows."""
    lengths = (tokens + np.arange(rows)) // rows
    filler = np.where(np.arange(ids.shape[1]) < lengths[:, None], _TOKEN, 0).astype(ids.dtype)
    return np.concatenate([ids, filler])

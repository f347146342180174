"""Batches by tokens: sentence pairs in order of length, cut where padding would pass the budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.pairs import Corpus
from mnmt_data.store.shards import Shard

Lengths = NDArray[np.int64]


def check_pairs(corpus: Corpus, *, batch_tokens: int) -> None:
    """Check that there are pairs and that each fits into a batch.

    Raises:
        DataError: Naming the corpus, and the length of its longest pair.
    """
    check_not_empty(corpus)
    if corpus.info.longest > batch_tokens:
        raise DataError(
            f"{_where(corpus)}the longest pair has {corpus.info.longest} tokens; "
            f"it must have at most `batch_tokens` ({batch_tokens})."
        )


def check_not_empty(corpus: Corpus) -> None:
    """Check that there are pairs.

    Raises:
        DataError: Naming the corpus.
    """
    if corpus.info.pairs == 0:
        raise DataError(f"{_where(corpus)}the shard holds no sentence pairs; at least one is needed.")


def _where(corpus: Corpus) -> str:
    return f"{corpus.path}: " if isinstance(corpus, Shard) else ""


def cut_batches(src_lengths: Lengths, tgt_lengths: Lengths, *, batch_tokens: int) -> list[NDArray[np.int64]]:
    """Cut pairs, sorted by target and then by source length, into batches within the budget.

    A batch of b pairs costs b · (longest source + longest target) tokens, padding included. A pair that costs
    more than the budget is a batch of its own.

    Args:
        src_lengths: (n,) source lengths.
        tgt_lengths: (n,) target lengths.
        batch_tokens: The budget.

    Returns:
        The pairs' numbers, batch by batch, in ascending order of length.
    """
    order = np.lexsort((src_lengths, tgt_lengths))
    src_lengths, tgt_lengths = src_lengths[order], tgt_lengths[order]
    batches, start = [], 0
    while start < len(order):
        end = start + _count_fitting(src_lengths[start:], tgt_lengths[start:], batch_tokens)
        batches.append(order[start:end])
        start = end
    return batches


def _count_fitting(src_lengths: Lengths, tgt_lengths: Lengths, batch_tokens: int) -> int:
    """How many of the first pairs fit into one batch."""
    most = max(1, batch_tokens // max(1, int(src_lengths[0] + tgt_lengths[0])))
    widths = np.maximum.accumulate(src_lengths[:most]) + np.maximum.accumulate(tgt_lengths[:most])
    costs = widths * np.arange(1, len(widths) + 1)
    return max(1, int(np.searchsorted(costs, batch_tokens, side="right")))

"""Batches of sentence pairs of similar lengths, with little padding."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.shards import Shard
from mnmt_data.stream.batch import Corpus
from mnmt_data.stream.sorting import order_by

Rows = NDArray[np.int64]


def split_evenly(src_lengths: Rows, tgt_lengths: Rows, parts: int) -> list[Rows]:
    """Cut pairs into exactly `parts` parts of similar lengths and nearly equal numbers of tokens.

    Pairs are divided into strips by target length, sorted within a strip by source length, and cut where the
    cumulative tokens pass each part's share.

    Args:
        src_lengths: (n,) source lengths.
        tgt_lengths: (n,) target lengths.
        parts: At most n.

    Returns:
        The pairs' numbers, part by part; no part is empty, and every pair is in one.

    Raises:
        ValueError: If there are fewer pairs than parts.
    """
    if parts > len(src_lengths):
        raise ValueError(f"`parts` must be at most the number of pairs ({len(src_lengths)}), but is {parts}.")
    # √(2·parts) strips by target length, each of about √(parts/2) parts by source length: similar in both.
    order = _order_by_strips(src_lengths, tgt_lengths, strips=ceil(sqrt(2 * parts)))
    tokens = (src_lengths + tgt_lengths)[order]
    ends = np.cumsum(tokens)
    shares = ends[-1] * np.arange(1, parts) / parts  # a pair belongs to the part of its middle token
    return np.split(order, _separate_cuts(np.searchsorted(ends - tokens / 2, shares), len(order)))


def _order_by_strips(src_lengths: Rows, tgt_lengths: Rows, *, strips: int) -> Rows:
    """Return the pairs ordered by strip, and in each by source length."""
    by_target = order_by(tgt_lengths, src_lengths)
    ends = np.cumsum((src_lengths + tgt_lengths)[by_target])
    strip = np.empty_like(by_target)
    strip[by_target] = (ends - 1) * strips // max(1, int(ends[-1]))
    return order_by(strip, src_lengths, tgt_lengths)


def _separate_cuts(cuts: Rows, size: int) -> Rows:
    """Move the cuts as little as needed for every part to hold a pair."""
    # Cut k must be at least k, above cut k - 1, and leave a pair for each later part.
    steps = np.arange(1, len(cuts) + 1)
    rising = np.maximum.accumulate(np.maximum(cuts - steps, 0)) + steps
    return np.minimum(rising, size - steps[::-1])


def check_pairs_fit(corpus: Corpus, *, batch_tokens: int) -> None:
    """Check that there are pairs and that each fits into a batch.

    Raises:
        DataError: If a check fails; the message names the corpus and its longest pair.
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
        DataError: If there are no pairs; the message names the corpus.
    """
    if corpus.info.pairs == 0:
        raise DataError(f"{_where(corpus)}the shard holds no sentence pairs; at least one is needed.")


def _where(corpus: Corpus) -> str:
    return f"{corpus.path}: " if isinstance(corpus, Shard) else ""


def batch_by_tokens(src_lengths: Rows, tgt_lengths: Rows, *, batch_tokens: int) -> list[NDArray[np.int64]]:
    """Cut pairs, sorted by target and then by source length, into batches within the budget.

    A batch of b pairs costs b · (longest source + longest target) tokens, padding included. A pair above the
    budget is a batch by itself.

    Args:
        src_lengths: (n,) source lengths.
        tgt_lengths: (n,) target lengths.
        batch_tokens: The budget.

    Returns:
        The pairs' numbers, batch by batch, in ascending order of length.
    """
    order = order_by(tgt_lengths, src_lengths)
    src_lengths, tgt_lengths = src_lengths[order], tgt_lengths[order]
    batches, start = [], 0
    while start < len(order):
        end = start + _count_first_batch(src_lengths[start:], tgt_lengths[start:], batch_tokens)
        batches.append(order[start:end])
        start = end
    return batches


def _count_first_batch(src_lengths: Rows, tgt_lengths: Rows, batch_tokens: int) -> int:
    """Return how many of the first pairs fit into one batch."""
    most = max(1, batch_tokens // max(1, int(src_lengths[0] + tgt_lengths[0])))
    widths = np.maximum.accumulate(src_lengths[:most]) + np.maximum.accumulate(tgt_lengths[:most])
    costs = widths * np.arange(1, len(widths) + 1)
    return max(1, int(np.searchsorted(costs, batch_tokens, side="right")))

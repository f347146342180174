"""The mutual information of expert and task in a mixture, from counts of choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64] | Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Specialisation:
    """The mutual information of expert and task in each layer, `(layers,)`."""

    nats: Floats
    """Mutual information of the observed counts, which is biased upwards."""
    chance: Floats
    """Its expectation if all choices were independent of each other and of the task."""
    corrected: Floats
    """`nats` without the bias, by the jackknife; it may be slightly below 0."""
    error: Floats
    """Standard error of `corrected`, in nats."""
    entropy: float
    """Entropy of the task, or its group, in nats: an upper bound."""

    @property
    def share(self) -> Floats:
        """`corrected` / `entropy`: 0 if experts do not depend on the task, 1 if an expert determines it."""
        return self.corrected / self.entropy if self.entropy else np.zeros_like(self.corrected)


def specialisation(blocks: Counts, groups: Sequence[int] | None = None) -> Specialisation:
    """Estimate the mutual information of expert and task from counts of independent blocks of sentences.

    Tokens within a sentence are correlated, which increases the bias of mutual information. The jackknife
    over blocks (Quenouille 1956; Efron and Stein 1981) accounts for this: J = B I − (B − 1) mean_b I_b has no
    bias of order 1 / tokens, and its variance is (B − 1) / B Σ_b (I_b − mean_b I_b)².

    Args:
        blocks: `(blocks, layers, tasks, experts)`, counts of choices of each expert by tokens of each task;
            at least two blocks. The same block is left out of all tasks, so parallel test sets may have the
            same lines in a block.
        groups: The group of each task, from 0, such as its source language; see `mutual_information`.

    Raises:
        ValueError: If there are fewer than two blocks.
    """
    number = len(blocks)
    if number < 2:
        raise ValueError(f"`blocks` must have at least 2 blocks, but has {number}.")
    total = blocks.sum(axis=0)
    nats = mutual_information(total, groups)
    parts = np.stack([mutual_information(total - block, groups) for block in blocks])
    spread = ((parts - parts.mean(axis=0)) ** 2).sum(axis=0)
    weights = _weights(total[0].sum(axis=-1)) @ _members(total.shape[-2], groups).T
    return Specialisation(
        nats=nats,
        chance=chance_information(total, groups),
        corrected=number * nats - (number - 1) * parts.mean(axis=0),
        error=np.sqrt((number - 1) / number * spread),
        entropy=float(_entropy(weights)),
    )


def mutual_information(counts: Counts, groups: Sequence[int] | None = None) -> Floats:
    """Return the mutual information I of a token's expert and its task, in nats, `(...)`.

    With p_t the shares of experts in the choices of task t and q = mean_t p_t,

        I = H(q) − mean_t H(p_t)

    Every task has the same weight, whatever its number of tokens, so that models of different mixtures can be
    compared; this is the Jensen-Shannon divergence of the p_t (Lin 1991). It is 0 if all tasks use the
    experts equally, even if the experts have different loads; and at most log T and log(E / k), if tokens
    choose k of E experts.

    Args:
        counts: `(..., tasks, experts)`, counts of choices of each expert by tokens of each task; tasks
            without choices are left out.
        groups: The group of each task, from 0, for information about the group: its p is the mean over its
            tasks, and its weight their number. By default each task is a group.
    """
    tokens = counts.sum(axis=-1)
    weights, shares = _weights(tokens), counts / np.maximum(tokens, 1)[..., None]
    mean = (weights[..., None, :] @ shares).squeeze(-2)
    if groups is not None:
        members = _members(counts.shape[-2], groups)
        sums = members @ (weights[..., None] * shares)
        weights = weights @ members.T
        shares = sums / np.where(weights > 0, weights, 1)[..., None]
    return np.asarray(_entropy(mean) - (weights * _entropy(shares)).sum(axis=-1))


def chance_information(counts: Counts, groups: Sequence[int] | None = None) -> Floats:
    """Return the expected mutual information of independent choices, in nats, `(...)`.

    (E − 1) / 2 Σ_t w_t (w_t / w_g − w_t) / n_t, for E experts with choices, n_t choices of task t, its weight
    w_t = 1 / T, and the weight w_g of its group (Miller 1955). It is (E − 1)(T − 1) / 2n for tasks of n / T
    choices each. Correlated choices within sentences make it larger.

    Args:
        counts: See `mutual_information`.
        groups: See `mutual_information`.
    """
    tokens, members = counts.sum(axis=-1), _members(counts.shape[-2], groups)
    weights = _weights(tokens)
    of_group = weights @ members.T @ members
    ratios = np.divide(weights, of_group, out=np.zeros_like(weights), where=of_group > 0)
    experts = (counts.sum(axis=-2) > 0).sum(axis=-1)
    terms = weights * (ratios - weights) / np.maximum(tokens, 1)
    return np.asarray(np.maximum(experts - 1, 0) / 2 * terms.sum(axis=-1))


def _weights(tokens: Counts) -> Floats:
    """Return the weights of tasks `(..., tasks)`, equal for all tasks with tokens."""
    occurs = tokens > 0
    return np.asarray(occurs / np.maximum(occurs.sum(axis=-1, keepdims=True), 1))


def _members(tasks: int, groups: Sequence[int] | None) -> Floats:
    """Return `(groups, tasks)`, 1 where the task is of the group."""
    numbers = np.arange(tasks) if groups is None else np.asarray(groups)
    return np.asarray(np.arange(numbers.max() + 1)[:, None] == numbers, dtype=np.float64)


def _entropy(shares: Floats) -> Floats:
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=-1))

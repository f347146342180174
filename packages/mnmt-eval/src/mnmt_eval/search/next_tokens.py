"""Next tokens: those that a prefix forces, those that the options allow, and the most probable ones."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.errors import EvalError
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.protocol import EOS, PAD, SearchModel, State

_FIRST = PAD + 1
_BLOCK = 128
"""The number of vocabulary tokens whose maximum is taken at once."""
_FEWEST_BLOCKS = 32
"""Of fewer blocks, all values are sorted."""


def add_start(src: Tensor, prefix: Tensor | None) -> Tensor:
    """Return the token that every target starts from, with the forced prefix after it.

    Args:
        src: `(batch, src_len)` token ids.
        prefix: `(batch, prefix_len)` token ids, or None if no tokens are forced.

    Returns:
        `(batch, 1 + prefix_len)` token ids.

    Raises:
        EvalError: If `prefix` is of another batch, or contains padding or `</s>`.
    """
    if prefix is None:
        return src.new_full((len(src), 1), PAD)
    if prefix.dim() != 2 or len(prefix) != len(src):
        raise EvalError(
            f"`prefix` must be (batch, prefix_len) with a batch of {len(src)}, but is {tuple(prefix.shape)}."
        )
    if ((prefix == PAD) | (prefix == EOS)).any():
        raise EvalError(f"`prefix` must have neither padding ({PAD}) nor `</s>` ({EOS}) in it, but has.")
    return F.pad(prefix, (1, 0), value=PAD)


def read_prefix(model: SearchModel[State], src: Tensor, prefix: Tensor) -> State:
    """Return the model's state before the last token of `prefix (batch, n)`."""
    state = model.encode(src, src == PAD)
    for tokens in prefix[:, :-1].unbind(1):
        _, state = model.step(state, tokens)
    return state


def on_device(tokens: NDArray[np.int64], like: Tensor) -> Tensor:
    """Return tokens, or places, on the device of `like`."""
    return torch.from_numpy(tokens).to(like.device)


def constrain(log_probs: Tensor, targets: NDArray[np.int64], *, length: int, config: SearchConfig) -> Tensor:
    """Return log-probabilities that are -∞ where `min_length` or `no_repeat_ngram` forbids a token.

    Where they forbid every token, `</s>` is allowed nevertheless, so that each hypothesis can end. `PAD` is
    not changed; `best_tokens` and sampling leave it out.

    Args:
        log_probs: `(rows, vocab_size)`.
        targets: `(rows, n)`, each target's tokens so far, prefix included.
        length: The number of tokens of each so far, without the prefix.
        config: The search options; only `min_length` and `no_repeat_ngram` count.
    """
    allowed = log_probs
    if length + 1 < config.min_length:
        allowed = _forbid_end(allowed)
    if config.no_repeat_ngram:
        allowed = _forbid_repeats(allowed, on_device(targets, log_probs), config.no_repeat_ngram)
    return allowed if allowed is log_probs else _allow_end_if_stuck(allowed, log_probs)


def _forbid_end(log_probs: Tensor) -> Tensor:
    return log_probs.index_fill(1, torch.tensor([EOS], device=log_probs.device), -torch.inf)


def _forbid_repeats(log_probs: Tensor, targets: Tensor, n: int) -> Tensor:
    """Forbid the last token of every n-gram whose other tokens are those that `targets` ends with."""
    if targets.size(1) < n:
        return log_probs
    ngrams = targets.unfold(1, n, 1)
    ending = targets[:, targets.size(1) - n + 1 :]
    repeats = (ngrams[..., :-1] == ending[:, None]).all(dim=2)
    return log_probs.scatter(1, ngrams[..., -1].where(repeats, PAD), -torch.inf)


def _allow_end_if_stuck(allowed: Tensor, log_probs: Tensor) -> Tensor:
    stuck = allowed[:, PAD + 1 :].amax(dim=1) == -torch.inf
    ends = log_probs[:, EOS].where(stuck, allowed[:, EOS])
    return allowed.index_copy(1, torch.tensor([EOS], device=ends.device), ends[:, None])


def best_tokens(log_probs: Tensor, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the `count` most probable next tokens of every row, best first, never `PAD`.

    Args:
        log_probs: `(rows, vocab_size)`.
        count: The number of tokens; all of them are returned if there are fewer.

    Returns:
        Their log-probabilities and the tokens, both `(rows, count)`.

    Raises:
        EvalError: If a row's best log-probability is not a finite number.
    """
    values, tokens = _largest(log_probs[:, _FIRST:], count)
    check_finite(values[:, 0])
    return values.astype(np.float64), tokens + _FIRST


def check_finite(best: NDArray[np.floating]) -> None:
    """Refuse the best log-probabilities of a model that has diverged; NaN counts as best."""
    if not np.isfinite(best).all():
        raise EvalError(
            "the model's log-probabilities are not finite: it has diverged; train it at a lower rate."
        )


def _largest(x: Tensor, count: int) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
    """Return what `x.topk(count)` returns, of large vocabularies in a fraction of its time; ties may differ.

    The largest values lie in the blocks with the `count` largest maxima, or behind the last whole block. How
    they are found depends on the vocabulary alone, so that ties do not depend on batch-mates.
    """
    num_blocks = x.size(1) // _BLOCK
    if num_blocks <= max(count, _FEWEST_BLOCKS):
        values, places = x.topk(min(count, x.size(1)))
        return values.cpu().numpy(), places.cpu().numpy()
    blocks, rest = x[:, : num_blocks * _BLOCK], x[:, num_blocks * _BLOCK :]
    blocks = blocks.view(len(x), num_blocks, _BLOCK)
    best_blocks = blocks.amax(dim=2).topk(count).indices
    rows = torch.arange(len(x), device=x.device)[:, None]
    values, order = torch.cat([blocks[rows, best_blocks].flatten(1), rest], dim=1).topk(count)
    return values.cpu().numpy(), _places(order.cpu().numpy(), best_blocks.cpu().numpy(), num_blocks)


def _places(order: NDArray[np.int64], best_blocks: NDArray[np.int64], num_blocks: int) -> NDArray[np.int64]:
    """Return the places in the vocabulary of `order (rows, count)` among the best blocks and the rest."""
    rows, count = np.arange(len(order))[:, None], best_blocks.shape[1]
    block = np.minimum(order // _BLOCK, count - 1)
    in_block: NDArray[np.int64] = best_blocks[rows, block] * _BLOCK + order % _BLOCK
    return np.where(order < count * _BLOCK, in_block, order + (num_blocks - count) * _BLOCK)

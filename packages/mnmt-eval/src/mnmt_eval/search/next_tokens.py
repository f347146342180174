"""The tokens that a target begins with, and those that may come next."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.errors import EvalError
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.protocol import EOS, PAD, State, TranslationModel


def beginnings(src: Tensor, prefix: Tensor | None) -> Tensor:
    """`(batch, 1 + prefix_len)` the token every target starts from, and those forced after it.

    Args:
        src: `(batch, src_len)` token ids.
        prefix: `(batch, prefix_len)` token ids, if any are forced.

    Raises:
        EvalError: If `prefix` is of another batch, or has padding or an end in it.
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


def begin(model: TranslationModel[State], src: Tensor, begun: Tensor) -> State:
    """The state before the last token of `begun (batch, n)`."""
    state = model.encode(src, src == PAD)
    for tokens in begun[:, :-1].unbind(1):
        _, state = model.step(state, tokens)
    return state


def constrain(log_probs: Tensor, targets: Tensor, *, length: int, config: SearchConfig) -> Tensor:
    """Log-probabilities, -∞ where `min_length` or `no_repeat_ngram` forbids a token, else as they are.

    Where they forbid every token, `</s>` is allowed nevertheless, so that each hypothesis can end. Nothing is
    done about `PAD`, which `best_tokens` and sampling leave out.

    Args:
        log_probs: `(rows, vocab_size)`.
        targets: `(rows, n)`, each target's tokens so far with all it was begun with.
        length: Tokens of each so far, without those it was begun with.
        config: Of which `min_length` and `no_repeat_ngram` count.
    """
    allowed = log_probs
    if length + 1 < config.min_length:
        allowed = _without_end(allowed)
    if config.no_repeat_ngram:
        allowed = _without_repeats(allowed, targets, config.no_repeat_ngram)
    return allowed if allowed is log_probs else _with_a_way_out(allowed, log_probs)


def _without_end(log_probs: Tensor) -> Tensor:
    return log_probs.index_fill(1, torch.tensor([EOS], device=log_probs.device), -torch.inf)


def _without_repeats(log_probs: Tensor, targets: Tensor, n: int) -> Tensor:
    """Forbid the last token of every n-gram whose others are those that `targets` ends with."""
    if targets.size(1) < n:
        return log_probs
    ngrams = targets.unfold(1, n, 1)
    ending = targets[:, targets.size(1) - n + 1 :]
    repeats = (ngrams[..., :-1] == ending[:, None]).all(dim=2)
    return log_probs.scatter(1, ngrams[..., -1].where(repeats, PAD), -torch.inf)


def _with_a_way_out(allowed: Tensor, log_probs: Tensor) -> Tensor:
    stuck = allowed[:, PAD + 1 :].amax(dim=1) == -torch.inf
    ends = log_probs[:, EOS].where(stuck, allowed[:, EOS])
    return allowed.index_copy(1, torch.tensor([EOS], device=ends.device), ends[:, None])


_FIRST = PAD + 1
_BLOCK = 128
"""Tokens of a vocabulary whose maximum is taken at once."""


def best_tokens(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` most probable next tokens of every row, best first; never `PAD`.

    Args:
        log_probs: `(rows, vocab_size)`.
        count: How many; all of them if there are fewer.

    Returns:
        Their log-probabilities, float64, and the tokens, both `(rows, count)`.

    Raises:
        EvalError: If a row's best log-probability is not a finite number.
    """
    values, tokens = _largest(log_probs[:, _FIRST:], count)
    check_finite(values[:, 0])
    return values.double(), tokens + _FIRST


def check_finite(best: Tensor) -> None:
    """Refuse the best log-probabilities of a model that has diverged; NaN counts as best."""
    if not best.isfinite().all():
        raise EvalError(
            "the model's log-probabilities are not finite: it has diverged; train it at a lower rate."
        )


def _largest(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest of each row and their places, as `topk`, which takes several times as long.

    They lie in the blocks of the `count` largest maxima, or behind the last whole block.
    """
    num_blocks = x.size(1) // _BLOCK
    if num_blocks <= count:
        values, places = x.topk(min(count, x.size(1)))
        return values, places
    blocks, rest = x[:, : num_blocks * _BLOCK], x[:, num_blocks * _BLOCK :]
    blocks = blocks.view(len(x), num_blocks, _BLOCK)
    chosen = blocks.amax(dim=2).topk(count).indices
    within = torch.arange(_BLOCK, device=x.device)
    places = (chosen[..., None] * _BLOCK + within).flatten(1)
    behind = torch.arange(num_blocks * _BLOCK, x.size(1), device=x.device).expand_as(rest)
    rows = torch.arange(len(x), device=x.device)[:, None]
    values, order = torch.cat([blocks[rows, chosen].flatten(1), rest], dim=1).topk(count)
    return values, torch.cat([places, behind], dim=1).gather(1, order)

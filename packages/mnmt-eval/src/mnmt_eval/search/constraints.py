"""Which tokens may come next."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_eval.protocol import EOS, PAD
from mnmt_eval.search.config import SearchConfig


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

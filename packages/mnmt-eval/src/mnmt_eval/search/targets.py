"""Hypotheses of a batch as tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.protocol import PAD


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """As many hypotheses of each of b sentences; some places may be empty."""

    tokens: Tensor
    """`(b, k, length)`; padded where a hypothesis is shorter."""

    token_log_probs: Tensor
    """`(b, k, length)` float64; 0 at padding."""

    log_probs: Tensor
    """`(b, k)` float64, their sums; -∞ where there is no hypothesis."""

    @property
    def length(self) -> int:
        """Tokens of the longest."""
        return self.tokens.size(2)

    def of(self, sentences: Tensor) -> Targets:
        """Those of some sentences `(n,)`."""
        return Targets(
            tokens=self.tokens[sentences],
            token_log_probs=self.token_log_probs[sentences],
            log_probs=self.log_probs[sentences],
        )

    def take(self, places: Tensor) -> Targets:
        """Of each sentence, those at `places (b, n)`."""
        sentences = torch.arange(len(places), device=places.device)[:, None]
        return Targets(
            tokens=self.tokens[sentences, places],
            token_log_probs=self.token_log_probs[sentences, places],
            log_probs=self.log_probs[sentences, places],
        )

    def continued(self, tokens: Tensor, token_log_probs: Tensor, log_probs: Tensor) -> Targets:
        """Each with one more token; all arguments are `(b, k)`, and `log_probs` are the new sums."""
        return Targets(
            tokens=torch.cat([self.tokens, tokens[..., None]], dim=2),
            token_log_probs=torch.cat([self.token_log_probs, token_log_probs[..., None]], dim=2),
            log_probs=log_probs,
        )

    def padded(self, length: int) -> Targets:
        """The same, `length` wide."""
        missing = (0, length - self.length)
        return Targets(
            tokens=F.pad(self.tokens, missing, value=PAD),
            token_log_probs=F.pad(self.token_log_probs, missing),
            log_probs=self.log_probs,
        )


def empty_targets(like: Tensor, count: int, *, log_prob: float) -> Targets:
    """`count` targets without tokens for each sentence of `like (b, ...)`, all of one log-probability."""
    shape, device = (len(like), count), like.device
    return Targets(
        tokens=torch.empty((*shape, 0), dtype=torch.int64, device=device),
        token_log_probs=torch.empty((*shape, 0), dtype=torch.float64, device=device),
        log_probs=torch.full(shape, log_prob, dtype=torch.float64, device=device),
    )


def joined(first: Targets, second: Targets) -> Targets:
    """The hypotheses of both, sentence by sentence."""
    length = max(first.length, second.length)
    first, second = first.padded(length), second.padded(length)
    return Targets(
        tokens=torch.cat([first.tokens, second.tokens], dim=1),
        token_log_probs=torch.cat([first.token_log_probs, second.token_log_probs], dim=1),
        log_probs=torch.cat([first.log_probs, second.log_probs], dim=1),
    )

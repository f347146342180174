"""The best finished hypotheses of every sentence of a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from mnmt_eval.protocol import PAD
from mnmt_eval.search.hypothesis import Hypothesis, hypothesis


class NBest:
    """The `count` best finished hypotheses of each sentence, best first; -∞ marks places yet empty."""

    def __init__(self, *, batch: int, count: int, max_length: int, device: torch.device) -> None:
        empty = torch.full((batch, count), -torch.inf, dtype=torch.float64, device=device)
        self._scores = empty
        self._normalised = empty.clone()
        self._tokens = torch.full((batch, count, max_length), PAD, device=device)

    def offer(self, sentences: Tensor, tokens: Tensor, scores: Tensor, normalised: Tensor) -> None:
        """Keep those of some newly finished hypotheses that are among the best.

        Args:
            sentences: `(b,)` the sentences they are of.
            tokens: `(b, c, length)`.
            scores: `(b, c)` log-probabilities.
            normalised: `(b, c)` what they are ranked by; -∞ where there is no hypothesis.
        """
        padded = torch.nn.functional.pad(tokens, (0, self._tokens.size(2) - tokens.size(2)), value=PAD)
        all_normalised = torch.cat([self._normalised[sentences], normalised], dim=1)
        all_scores = torch.cat([self._scores[sentences], scores], dim=1)
        all_tokens = torch.cat([self._tokens[sentences], padded], dim=1)
        best, order = all_normalised.sort(dim=1, descending=True, stable=True)
        count = self._scores.size(1)
        order = order[:, :count]
        self._normalised[sentences] = best[:, :count]
        self._scores[sentences] = all_scores.gather(1, order)
        self._tokens[sentences] = all_tokens.take_along_dim(order[..., None], dim=1)

    def to_beat(self, sentences: Tensor) -> Tensor:
        """Normalised score `(b,)` that a further hypothesis must exceed to enter."""
        return self._normalised[sentences, -1]

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, best first."""
        columns = zip(self._tokens.tolist(), self._scores.tolist(), self._normalised.tolist(), strict=True)
        return [
            [hypothesis(*row) for row in zip(*sentence, strict=True) if row[2] > -torch.inf]
            for sentence in columns
        ]

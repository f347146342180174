"""Continuations of the hypotheses of a beam."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name everybody uses

from mnmt_eval.search.best_tokens import best_tokens
from mnmt_eval.search.targets import Targets


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """Hypotheses with one token more, c of each of b sentences, best first; all fields are `(b, c)`."""

    parents: Tensor
    """Which hypothesis each continues."""

    tokens: Tensor
    """The token it is continued by."""

    token_log_probs: Tensor
    """That token's log-probability, float64."""

    log_probs: Tensor
    """Of the whole, float64; -∞ where there is no candidate."""

    def only(self, chosen: Tensor, count: int) -> Candidates:
        """The `count` best of those that are `chosen (b, c)`."""
        log_probs = self.log_probs.masked_fill(~chosen, -torch.inf)
        # A stable sort breaks ties by place, so that they do not depend on batch-mates.
        log_probs, places = log_probs.sort(dim=1, descending=True, stable=True)
        places = places[:, :count]
        return Candidates(
            parents=self.parents.gather(1, places),
            tokens=self.tokens.gather(1, places),
            token_log_probs=self.token_log_probs.gather(1, places),
            log_probs=log_probs[:, :count],
        )

    def grown_from(self, live: Targets) -> Targets:
        """Hypotheses `(b, c)` with all their tokens."""
        return live.take(self.parents).continued(self.tokens, self.token_log_probs, self.log_probs)


def best_candidates(live: Targets, log_probs: Tensor, beam: int) -> Candidates:
    """The `2 * beam` best continuations of each sentence, best first, or as many as there are.

    At most one continuation of a hypothesis ends with `</s>`, so that `beam` of these can live on, and
    `beam + 1` of each hypothesis are enough.

    Args:
        live: `(b, w)` hypotheses.
        log_probs: `(b, w, vocab_size)` of what follows each.
        beam: Hypotheses to keep.

    Raises:
        EvalError: If the log-probabilities are not finite.
    """
    b, w = live.log_probs.shape
    values, tokens = (found.view(b, w, -1) for found in best_tokens(log_probs.flatten(0, 1), beam + 1))
    parents = torch.arange(w, device=tokens.device)[:, None].expand_as(tokens)
    everything = Candidates(
        parents=parents.flatten(1),
        tokens=tokens.flatten(1),
        token_log_probs=values.flatten(1),
        log_probs=(live.log_probs[..., None] + values).flatten(1),
    )
    found = everything.only(torch.ones_like(everything.tokens, dtype=torch.bool), 2 * beam)
    return _padded(found, beam)


def _padded(found: Candidates, count: int) -> Candidates:
    """With empty places up to `count`: a small vocabulary has fewer candidates than a wide beam."""
    missing = (0, max(0, count - found.tokens.size(1)))
    return replace(
        found,
        parents=F.pad(found.parents, missing),
        tokens=F.pad(found.tokens, missing),
        token_log_probs=F.pad(found.token_log_probs, missing),
        log_probs=F.pad(found.log_probs, missing, value=-torch.inf),
    )

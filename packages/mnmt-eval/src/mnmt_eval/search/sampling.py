"""Translations drawn at random, reproducibly."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.search.config import SamplingConfig, SearchConfig
from mnmt_eval.search.greedy import decode
from mnmt_eval.search.hypotheses import Hypothesis, NBest, Targets
from mnmt_eval.search.next_tokens import check_finite
from mnmt_eval.search.protocol import PAD, SearchModel, State


@torch.inference_mode()
def sample(model: SearchModel[State], src: Tensor, config: SearchConfig) -> list[list[Hypothesis]]:
    """Draw `config.n_best` translations of each source, token by token.

    A sample depends only on the seed, the source and the sample's number, not on batch-mates; equal sources
    have equal samples. Log-probabilities are the model's, not those of the sharpened distribution.

    Args:
        model: The model that gives the log-probabilities.
        src: `(batch, src_len)` int64 token ids, padded with 0.
        config: The search options: `sampling`, `n_best`, `max_length` and `length_penalty`.

    Returns:
        The samples of each source, best score first; some may be equal.

    Raises:
        EvalError: If `config` has no `sampling`, or the model's log-probabilities are not finite.
    """
    if config.sampling is None:
        raise EvalError("`sampling` must be set to draw translations, but is None.")
    if not len(src):
        return []
    n, limits = config.n_best, config.max_length.limits(src)
    rows = torch.arange(len(src), device=src.device).repeat_interleave(n)
    uniforms = _uniforms(src, n, int(limits.max()), config.sampling.seed)
    choose = partial(_draw, uniforms=uniforms, sampling=config.sampling)
    state, start = model.encode(src, src == PAD).select(rows), src.new_full((len(rows),), PAD)
    samples = decode(model, state, start, limits.repeat(n), choose)
    by_sentence = Targets(
        tokens=samples.tokens.reshape(len(src), n, -1),
        token_log_probs=samples.token_log_probs.reshape(len(src), n, -1),
        log_probs=samples.log_probs.reshape(len(src), n),
    )
    return NBest.rank(by_sentence, config.length_penalty).hypotheses()


def _uniforms(src: Tensor, count: int, steps: int, seed: int) -> Tensor:
    """Return `(batch * count, steps)` float64 numbers from 0 to 1, each row from its own generator."""
    sources = [row[row != PAD].tolist() for row in src.cpu()]
    names = [f"{seed} {number} {source}" for source in sources for number in range(count)]
    return torch.stack([_random_row(name, steps) for name in names]).to(src.device)


def _random_row(name: str, steps: int) -> Tensor:
    digest = blake2b(name.encode(), digest_size=7).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest, "little"))
    return torch.rand(steps, dtype=torch.float64, generator=generator)


def _draw(
    log_probs: Tensor, rows: NDArray[np.int64], length: int, *, uniforms: Tensor, sampling: SamplingConfig
) -> Tensor:
    """Return the token at which the cumulative probability, likeliest first, passes the random number."""
    log_probs = log_probs[:, PAD + 1 :].double()
    best = log_probs.amax(dim=1, keepdim=True)
    check_finite(best.cpu().numpy())
    scaled = (log_probs - best) / sampling.temperature
    probs, tokens = scaled.softmax(dim=1).sort(dim=1, descending=True, stable=True)
    # The nucleus: tokens before whose turn less than top_p of the probability is taken.
    before = probs.cumsum(dim=1) - probs
    probs = probs.masked_fill(before >= sampling.top_p, 0)
    if sampling.top_k is not None:
        probs[:, sampling.top_k :] = 0
    cumulative = probs.cumsum(dim=1)
    passed = cumulative <= uniforms[rows, length, None] * cumulative[:, -1:]
    return tokens.gather(1, passed.sum(dim=1, keepdim=True)).squeeze(1) + PAD + 1

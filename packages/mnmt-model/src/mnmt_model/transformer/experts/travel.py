"""What travels between the processes that hold the experts: the slots of all experts, or tokens."""

from __future__ import annotations

from math import comb

from mnmt_model.transformer.model_config import ModelConfig

WORTH = 2
"""How many times fewer rows must travel for processes to exchange their numbers first."""


def rows_per_token(config: ModelConfig, *, ranks: int) -> float:
    """Return to how many of `ranks` processes a token travels on average, if experts are chosen evenly.

    R (1 - C(E - E/R, k) / C(E, k)) for k of E experts on R processes: k if each has one expert, and the less,
    the more experts of a token lie in one process.
    """
    number, choices = config.num_experts, config.experts_per_token
    return ranks * (1 - comb(number - number // ranks, choices) / comb(number, choices))


def sends_tokens(config: ModelConfig, *, ranks: int, chunks: int, tokens: int, capacity: int) -> bool:
    """Return whether tokens travel in training, each once to a process, and not the slots of all experts.

    Slots travel in parts, and no process waits for the sizes. So there must be as many as `WORTH` times the
    rows of tokens, because most of them are empty or a token's experts lie in the same processes.

    Args:
        config: The model's config.
        ranks: The number of processes that hold the experts together.
        chunks: Parts in which they exchange slots.
        tokens: The most tokens of any of them.
        capacity: Slots of an expert for these.
    """
    rows = tokens * rows_per_token(config, ranks=ranks)
    return ranks > 1 and chunks == 1 and config.num_experts * capacity >= WORTH * rows

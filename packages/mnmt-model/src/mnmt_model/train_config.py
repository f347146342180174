"""How a model is optimised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mnmt_data.mixing import MixingConfig


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Optimisation, logging and checkpoints of one run; the `[train]` section of a study.

    The rate of step t (from 1) is `learning_rate`, times t / `warmup_steps` during warm-up, times
    (`constant_steps` / t)^1/2 once t passes `constant_steps` (the inverse square root), times a line
    that falls to 0 over the last `cooldown_steps`.
    """

    steps: int = 1000
    """Training steps."""
    batch_tokens: int = 4096
    """Source and target tokens of a batch, on average, without padding."""
    mixing: MixingConfig = field(default_factory=MixingConfig)
    """How the mixture's weights act, and what else changes as training goes on."""
    optimizer: Literal["adafactor", "adamw"] = "adafactor"
    """`adafactor`'s rate is relative to each parameter's scale, `adamw`'s is not."""
    learning_rate: float = 0.01
    """Peak rate."""
    warmup_steps: int = 0
    """Steps over which the rate rises from 0."""
    constant_steps: int = 10_000
    """Step after which the rate decays as the inverse square root."""
    cooldown_steps: int = 0
    """Last steps, over which the rate falls to 0."""
    clip_norm: float = 0.0
    """Gradients are scaled down to this norm; 0 leaves them alone."""
    dropout: float = 0.0
    """Of embeddings, attention weights, feed-forward activations, sublayer outputs and final norms."""
    initial: str | None = None
    """A run's folder, or a checkpoint's, whose weights training starts from; drawn at random by default."""
    log_every: int = 50
    """Steps between lines of metrics.jsonl."""
    eval_every: int = 0
    """Steps between evaluations on the dev sets; 0 leaves only the last, which adds the test sets."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""
    keep_checkpoints: int = 1
    """How many of the newest checkpoints stay on disk."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_tokens", "constant_steps", "log_every", "checkpoint_every"):
            _require(name, getattr(self, name), at_least=1)
        for name in ("warmup_steps", "cooldown_steps", "clip_norm", "eval_every"):
            _require(name, getattr(self, name), at_least=0)
        _require("keep_checkpoints", self.keep_checkpoints, at_least=1)
        if self.learning_rate <= 0:
            raise ValueError(f"`learning_rate` must be above 0, but is {self.learning_rate}.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` must be in [0, 1), but is {self.dropout}.")
        if self.cooldown_steps > self.steps:
            raise ValueError(
                f"`cooldown_steps` must be at most `steps` ({self.steps}), but is {self.cooldown_steps}."
            )


def _require(name: str, value: float, *, at_least: int) -> None:
    if value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, but is {value}.")

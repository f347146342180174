"""How a model is optimised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mnmt_data.stream import MixingConfig
from mnmt_model.guard_config import GuardConfig

POSITIVE = (
    "steps",
    "batch_tokens",
    "accumulation",
    "constant_steps",
    "log_every",
    "checkpoint_every",
    "keep_checkpoints",
    "expert_parallel",
    "exchange_chunks",
)
NOT_NEGATIVE = (
    "warmup_steps",
    "cooldown_steps",
    "clip_norm",
    "z_loss",
    "weight_decay",
    "eval_every",
    "test_every",
    "keep_best",
    "early_stopping",
    "auxiliary_loss",
    "uniform_routing_steps",
)


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
    """Source and target tokens of a batch, on average, without padding, over all processes."""
    accumulation: int = 1
    """Parts a process computes its share of a batch in, one after the other, to need less memory."""
    mixing: MixingConfig = field(default_factory=MixingConfig)
    """How the mixture's weights act, and what else changes as training goes on."""
    optimizer: Literal["adafactor", "adamw"] = "adafactor"
    """`adafactor`'s rate is relative to each parameter's scale, `adamw`'s is not."""
    weight_decay: float = 0.0
    """Of `adamw`: each step multiplies matrices by 1 - rate · `weight_decay`."""
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
    skip_above: float = 0.0
    """A step whose gradient norm is above so many times the median of the last 64 is left out; 0 leaves none.

    One whose norm is not finite is always left out."""
    max_skipped: int = 10
    """Steps that may be left out in a row; one more ends the run."""
    label_smoothing: float = 0.0
    """Share of each token's objective that is spread over the vocabulary."""
    z_loss: float = 0.0
    """Factor of the squared log-normaliser of the softmax; T5 has 0.0001."""
    dropout: float = 0.0
    """Of embeddings, attention weights, feed-forward activations, sublayer outputs and final norms."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the states; weights and the optimiser's state are float32."""
    compile: bool = False
    """Whether layers are compiled; this takes a C++ compiler, and a minute at the start."""
    activation_checkpointing: bool = False
    """Whether layers are computed again for the backward pass, to need less memory."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """What several processes share: nothing but gradients, or weights and optimiser state too (FSDP2)."""
    auxiliary_loss: float = 0.01
    """Factor of the auxiliary loss that keeps experts in balance, added to the loss of a token."""
    uniform_routing_steps: int = 0
    """First steps, in which tokens are spread evenly over the experts whatever the gate says."""
    expert_parallel: int = 1
    """Processes that hold the experts together, each of them `num_experts / expert_parallel` of a layer."""
    exchange_chunks: int = 1
    """Parts in which processes exchange tokens, so that experts compute while the next part is on its way."""
    initial: str | None = None
    """A run's folder, or a checkpoint's, whose weights training starts from; drawn at random by default."""
    log_every: int = 50
    """Steps between lines of metrics.jsonl."""
    eval_every: int = 0
    """Steps between evaluations on the dev sets; 0 leaves only the last, which adds the test sets."""
    test_every: int = 0
    """Steps between evaluations on the test sets; 0 leaves only the last."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""
    keep_checkpoints: int = 2
    """How many of the newest checkpoints stay on disk; the one before last serves if the last is damaged."""
    keep_best: int = 0
    """How many of the checkpoints with the lowest dev loss stay too; they are made where `eval_every` is."""
    early_stopping: int = 0
    """So many evaluations without a lower dev loss end the run; 0 never does."""
    tensorboard: bool = False
    """Whether what metrics.jsonl and evals.jsonl hold is written for TensorBoard too."""

    def __post_init__(self) -> None:
        for name in POSITIVE:
            _require(name, getattr(self, name), at_least=1)
        GuardConfig(skip_above=self.skip_above, max_skipped=self.max_skipped)
        for name in NOT_NEGATIVE:
            _require(name, getattr(self, name), at_least=0)
        for name in ("dropout", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be in [0, 1), but is {getattr(self, name)}.")
        self._check_rate()
        if (self.early_stopping or self.keep_best) and not self.eval_every:
            raise ValueError("`early_stopping` and `keep_best` need `eval_every`, but that is 0.")

    def _check_rate(self) -> None:
        if self.learning_rate <= 0:
            raise ValueError(f"`learning_rate` must be above 0, but is {self.learning_rate}.")
        if self.cooldown_steps > self.steps:
            raise ValueError(
                f"`cooldown_steps` must be at most `steps` ({self.steps}), but is {self.cooldown_steps}."
            )

    @property
    def guard(self) -> GuardConfig:
        """Which steps are left out."""
        return GuardConfig(skip_above=self.skip_above, max_skipped=self.max_skipped)


def _require(name: str, value: float, *, at_least: int) -> None:
    if value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, but is {value}.")

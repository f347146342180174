"""Training settings of a run: optimisation, logging and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from mnmt_data.stream import MixingConfig
from mnmt_data.study import Ranges, check_ranges

FREE_SETTINGS = frozenset(
    {
        "accumulation",
        "activation_checkpointing",
        "checkpoint_every",
        "checkpoint_minutes",
        "compile",
        "exchange_chunks",
        "expert_parallel",
        "horizons",
        "keep_best",
        "keep_checkpoints",
        "log_every",
        "pack",  # Records of version 0.5 and before have it.
        "parallel",
        "tensorboard",  # Records of version 0.5 and before have it.
        "trackers",
    }
)
"""Settings of `[train]` that affect computation and storage, but not the learned weights."""


class _Default(int):
    """A default, distinguished by type from the same number in a study."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Optimisation, logging and checkpoints of one run; the `[train]` section of a study.

    The learning rate of step t (from 1) is `learning_rate`, times t / `warmup_steps` during warm-up, times
    (`constant_steps` / t)^1/2 after `constant_steps` (inverse square root), times a linear decrease to 0 over
    the last `cooldown_steps`.
    """

    RANGES: ClassVar[Ranges] = {
        "[1, 1e9]": ("steps", "batch_tokens"),
        "[1, inf)": (
            *("accumulation", "constant_steps", "expert_parallel", "exchange_chunks"),
            *("log_every", "checkpoint_every", "keep_checkpoints"),
        ),
        "[0, inf)": (
            *("warmup_steps", "cooldown_steps", "uniform_routing_steps", "max_skipped"),
            *("eval_every", "test_every", "keep_best", "early_stopping", "checkpoint_minutes"),
            *("clip_norm", "weight_decay", "z_loss"),
            *("auxiliary_loss", "router_z_loss", "balance_bias_rate"),
        ),
        "[0, 1)": ("dropout", "label_smoothing"),
        "(0, inf)": ("learning_rate",),
    }

    steps: int = _Default(1000)
    """Training steps; by default the last of `horizons`, if given."""
    horizons: tuple[int, ...] = ()
    """Lengths at which the loss is measured after a cool-down; the last is `steps`. Each other length is a
    separate run, which branches off this one at the start of its cool-down, of proportional length."""
    batch_tokens: int = 4096
    """Source and target tokens of a batch, on average, without padding, over all processes."""
    accumulation: int = 1
    """Parts in which a process computes its share of a batch sequentially, to save memory."""
    mixing: MixingConfig = field(default_factory=MixingConfig)
    """Use of the mixture's weights, their phases, and the hook of batches."""
    optimizer: Literal["adafactor", "adamw"] = "adafactor"
    """`adafactor` or `adamw`. Adafactor's learning rate is relative to the scale of each parameter."""
    weight_decay: float = 0.0
    """For `adamw`: each step multiplies matrices by 1 - learning rate · `weight_decay`."""
    learning_rate: float = 0.01
    """Peak learning rate."""
    warmup_steps: int = 0
    """First steps, in which the learning rate rises from 0."""
    constant_steps: int = 10_000
    """Step after which the learning rate decays as the inverse square root."""
    cooldown_steps: int = 0
    """Last steps, in which the learning rate falls to 0."""
    clip_norm: float = 0.0
    """Largest gradient norm; larger gradients are scaled down. 0 does not clip."""
    skip_above: float = 0.0
    """Multiple of the median of the last 64 gradient norms above which a step is skipped; 0 for no limit.

    A step whose norm is not finite is always skipped."""
    max_skipped: int = 10
    """Steps that may be skipped in a row; one more ends the run."""
    label_smoothing: float = 0.0
    """Share of each token's objective spread over the vocabulary."""
    z_loss: float = 0.0
    """Factor of the softmax's squared log-normaliser in the objective; T5 has 0.0001."""
    dropout: float = 0.0
    """Rate at embeddings, attention weights, feed-forward activations, sublayer outputs and last norms."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Precision of the states; weights and the optimiser's state are float32. `tf32` is float32 whose matrix
    products a GPU computes in TF32, with 10 bits of the 23."""
    compile: bool = False
    """Whether to compile the model, which needs a C++ compiler and about a minute at the start."""
    activation_checkpointing: bool = False
    """Whether to recompute layers in the backward pass, to save memory."""
    parallel: Literal["ddp", "fsdp", "hsdp"] = "ddp"
    """`ddp`: processes average gradients; `fsdp`: weights and optimiser state are also sharded over them
    (FSDP2); `hsdp`: over the processes of each machine."""
    auxiliary_loss: float = 0.01
    """Factor of the auxiliary loss for balancing experts in the objective of a token."""
    auxiliary_loss_over: Literal["group", "batch"] = "group"
    """Tokens over which the auxiliary loss balances experts: those of a group (`group_size`), or the
    `batch` of all processes, in its parts computed so far (Qiu et al. 2025)."""
    router_z_loss: float = 0.0
    """Factor of the mean squared log-normaliser of the gates, summed over layers, in the objective of a
    token; ST-MoE has 0.001 (Zoph et al. 2022, eq. 5)."""
    balance_bias_rate: float = 0.0
    """Change of each expert's bias after a training step: up if the expert had fewer tokens than the mean,
    down if more (Wang et al. 2024); 0 for no biases. Biases affect only choices. They replace the auxiliary
    loss, which can then be 0."""
    uniform_routing_steps: int = 0
    """First steps, in which tokens are distributed evenly over experts, independently of the gate."""
    expert_parallel: int = 1
    """Processes that divide the experts, each with `num_experts / expert_parallel` of every layer."""
    exchange_chunks: int = 1
    """Parts in which processes exchange tokens, to overlap computation with communication."""
    initial: str | None = None
    """Folder of a run or a checkpoint with the initial weights; random by default."""
    log_every: int = 50
    """Steps between lines of metrics.jsonl."""
    eval_every: int = 200
    """Steps between evaluations on the dev sets; 0 evaluates only at the end."""
    test_every: int = 0
    """Steps between evaluations on the test sets; 0 evaluates only at the end."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""
    checkpoint_minutes: float = 0.0
    """Most minutes between checkpoints; extra ones are removed after the next. 0 sets no limit."""
    keep_checkpoints: int = 2
    """Number of newest checkpoints to keep; if the last is damaged, training resumes from an earlier one."""
    keep_best: int = 0
    """Number of checkpoints with the lowest dev loss to keep besides, saved at every evaluation."""
    early_stopping: int = 0
    """Number of evaluations without a lower dev loss that ends the run; 0 never ends it early."""
    trackers: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ()
    """Where to send metrics.jsonl and evals.jsonl besides: `tensorboard`, `wandb`, `mlflow`."""

    def __post_init__(self) -> None:
        if self.horizons and isinstance(self.steps, _Default):
            object.__setattr__(self, "steps", self.horizons[-1])
        check_ranges(self, beyond="beyond any published run")
        if self.accumulation > self.batch_tokens:
            tokens = f"`batch_tokens` ({self.batch_tokens})"
            raise ValueError(f"`accumulation` must be at most {tokens}, but is {self.accumulation}.")
        if self.skip_above != 0 and not 1 < self.skip_above < math.inf:
            raise ValueError(f"`skip_above` must be 0, or finite and above 1, but is {self.skip_above}.")
        self._check_rate()
        self._check_schedules()

    def _check_schedules(self) -> None:
        if (self.early_stopping or self.keep_best) and not self.eval_every:
            raise ValueError("`early_stopping` and `keep_best` need `eval_every`, but that is 0.")
        if self.horizons:
            self._check_horizons()

    def _check_horizons(self) -> None:
        if list(self.horizons) != sorted(set(self.horizons)) or self.horizons[0] < 1:
            raise ValueError(f"`horizons` must rise, the first from 1, but are {list(self.horizons)}.")
        if self.horizons[-1] != self.steps:
            raise ValueError(
                f"`horizons` must end with `steps` ({self.steps}), but end with {self.horizons[-1]}."
            )
        if not self.cooldown_steps:
            raise ValueError("`horizons` need `cooldown_steps`, which each ends with, but that is 0.")
        if self.early_stopping:
            raise ValueError("`horizons` and `early_stopping` exclude each other: a branch needs its trunk.")
        for steps in self.horizons[:-1]:
            cooldown = self._cooldown(steps)
            if steps - cooldown < max(1, self.warmup_steps):
                raise ValueError(
                    f"`horizons` must leave room for `warmup_steps` ({self.warmup_steps}) before cool-downs, "
                    f"but of {steps} steps {cooldown} are cool-down."
                )

    def at_horizon(self, steps: int) -> TrainConfig:
        """Return the settings of a run of `steps`, with a proportional cool-down."""
        return replace(self, steps=steps, cooldown_steps=self._cooldown(steps), horizons=())

    @property
    def departures(self) -> tuple[int, ...]:
        """The steps after which the runs of shorter horizons branch off."""
        return tuple(steps - self._cooldown(steps) for steps in self.horizons[:-1])

    def is_annealed(self, step: int) -> bool:
        """Return whether the learning rate has fallen to 0 at `step`."""
        return self.cooldown_steps > 0 and step == self.steps

    def _cooldown(self, steps: int) -> int:
        return max(1, round(self.cooldown_steps * steps / self.steps))

    def _check_rate(self) -> None:
        for name in ("warmup_steps", "cooldown_steps"):
            if getattr(self, name) > self.steps:
                raise ValueError(
                    f"`{name}` must be at most `steps` ({self.steps}), but is {getattr(self, name)}."
                )
        if self.warmup_steps + self.cooldown_steps > self.steps:
            raise ValueError(
                f"`warmup_steps` ({self.warmup_steps}) and `cooldown_steps` ({self.cooldown_steps}) must be "
                f"together at most `steps` ({self.steps}), or the rate never reaches its peak."
            )


def free_settings(train: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the settings that do not affect the learned weights, given all settings."""
    # Evaluations affect the weights only through early stopping.
    return FREE_SETTINGS if train.get("early_stopping") else FREE_SETTINGS | {"eval_every"}

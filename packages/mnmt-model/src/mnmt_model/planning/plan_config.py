"""What a plan assumes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mnmt_model.errors import RunError
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """What to assume; what is left out is as the study or the preset has it."""

    src_len: int | None = None
    """Source tokens of a pair: the mean of the data by default, 30 for a preset."""
    tgt_len: int | None = None
    """Target tokens of a pair: the mean of the data by default, 30 for a preset."""
    devices: int = 1
    """Devices that train together."""
    cpu: bool = False
    """Whether the devices are CPUs, whose attention keeps its weights."""
    vocab_size: int | None = None
    """Tokens of the target's vocabulary."""
    batch_tokens: int | None = None
    """Source and target tokens of a batch, over all devices."""
    accumulation: int | None = None
    """Parts that each device computes its share of a batch in."""
    optimizer: Literal["adafactor", "adamw"] | None = None
    """`adamw` keeps two numbers a parameter, `adafactor` one a row and column of a matrix."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Of the states; weights and the optimiser's state are float32."""
    activation_checkpointing: bool | None = None
    """Whether layers are computed again for the backward pass."""
    parallel: Literal["ddp", "fsdp"] | None = None
    """Whether each of several devices holds the whole model, or a part of it."""
    expert_parallel: int | None = None
    """Devices that hold the experts together, each `num_experts / expert_parallel` of every mixture."""
    dropout: float | None = None
    """Rate; where it is above 0, masks take memory."""
    flops_per_second: float | None = None
    """Model FLOPs a second that all devices reach together; gives the time of a step, and of a study."""
    exchange_bytes_per_second: float | None = None
    """Bytes a second that a device sends in an all-to-all; gives the time that experts' tokens take."""

    def check_rates(self) -> None:
        """See that rates are rates.

        Raises:
            RunError: If one is not above 0.
        """
        for name in ("flops_per_second", "exchange_bytes_per_second"):
            rate = getattr(self, name)
            if rate is not None and not rate > 0:
                raise RunError(f"`{name}` must be above 0, but is {rate:g}.")

    def train(self, default: TrainConfig) -> TrainConfig:
        """`default` with what is given here.

        Raises:
            RunError: If a value is refused.
        """
        names = vars(self).keys() & vars(default).keys()
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        try:
            return replace(default, **given)
        except ValueError as error:
            raise RunError(str(error)) from None

    def workload(self, *, src_len: int, tgt_len: int) -> Workload:
        """Sentences of the given lengths, unless others are asked for.

        Raises:
            RunError: If a value is refused.
        """
        try:
            return Workload(
                src_len=src_len if self.src_len is None else self.src_len,
                tgt_len=tgt_len if self.tgt_len is None else self.tgt_len,
                devices=self.devices,
                on_gpu=not self.cpu,
            )
        except ValueError as error:
            raise RunError(str(error)) from None

"""What a plan assumes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mnmt_model.errors import RunError
from mnmt_model.planning.workload import Workload
from mnmt_model.train_config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """What to assume; options that are not set are taken from the study or the preset."""

    src_len: int | None = None
    """Source tokens of a pair: the mean of the data by default, 30 for a preset."""
    tgt_len: int | None = None
    """Target tokens of a pair: the mean of the data by default, 30 for a preset."""
    devices: int = 1
    """Number of devices that train together."""
    cpu: bool = False
    """Whether the devices are CPUs, where attention is not fused."""
    vocab_size: int | None = None
    """Tokens of the target's vocabulary."""
    batch_tokens: int | None = None
    """Source and target tokens of a batch, over all devices."""
    accumulation: int | None = None
    """Number of parts in which each device computes its share of a batch."""
    optimizer: Literal["adafactor", "adamw"] | None = None
    """`adamw` keeps two numbers for each parameter, `adafactor` one for each row and column of a matrix."""
    precision: Literal["float32", "bfloat16"] | None = None
    """Precision of the states; weights and the optimiser's state are float32."""
    activation_checkpointing: bool | None = None
    """Whether layers are computed again for the backward pass, to need less memory."""
    parallel: Literal["ddp", "fsdp"] | None = None
    """Whether each of several devices holds the whole model (`ddp`) or a part of it (`fsdp`)."""
    expert_parallel: int | None = None
    """Devices that hold the experts together, each `num_experts / expert_parallel` of every mixture."""
    dropout: float | None = None
    """Dropout rate; above 0, its masks take memory."""
    flops_per_second: float | None = None
    """Model FLOPs per second of all devices together, to give the time of a step and of a study."""
    exchange_bytes_per_second: float | None = None
    """Bytes per second that a device sends in an all-to-all, to give the time of exchanging tokens."""

    def check_rates(self) -> None:
        """Check the rates.

        Raises:
            RunError: If one is not above 0.
        """
        for name in ("flops_per_second", "exchange_bytes_per_second"):
            rate = getattr(self, name)
            if rate is not None and not rate > 0:
                raise RunError(f"`{name}` must be above 0, but is {rate:g}.")

    def train(self, default: TrainConfig) -> TrainConfig:
        """Return `default` with the options that are set here.

        Raises:
            RunError: If a value is refused.
        """
        names = vars(self).keys() & vars(default).keys()
        changes = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        try:
            return replace(default, **changes)
        except ValueError as error:
            raise RunError(str(error)) from None

    def workload(self, *, src_len: int, tgt_len: int) -> Workload:
        """Return the workload, with sentences of the given lengths unless the options set others.

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

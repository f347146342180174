"""What a device computes at a time."""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.train_config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What a device computes at a time."""

    src_len: int
    """Source tokens of a pair."""
    tgt_len: int
    """Target tokens of a pair."""
    devices: int = 1
    on_gpu: bool = True
    """Whether attention is fused, as on GPUs, or keeps its weights."""

    def __post_init__(self) -> None:
        for name in ("src_len", "tgt_len", "devices"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {getattr(self, name)}.")

    def pairs(self, train: TrainConfig) -> int:
        """Sentence pairs in memory at a time, at least 1."""
        tokens = (self.src_len + self.tgt_len) * self.devices * train.accumulation
        return max(1, round(train.batch_tokens / tokens))

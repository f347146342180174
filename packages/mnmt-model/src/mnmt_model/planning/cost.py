"""What training takes, and how long at rates that were measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a training step, or a run, takes; times are None without the rates that give them."""

    flops: int
    """Model FLOPs, of all devices."""
    exchange_bytes: int
    """Bytes that one device sends to others for the experts."""
    flops_per_second: float | None
    """Model FLOPs a second that all devices reach together."""
    exchange_bytes_per_second: float | None
    """Bytes a second that one device sends in an all-to-all."""

    @property
    def compute_seconds(self) -> float | None:
        """Of the FLOPs."""
        return None if self.flops_per_second is None else self.flops / self.flops_per_second

    @property
    def exchange_seconds(self) -> float | None:
        """Of the all-to-alls; 0 where there are none."""
        if not self.exchange_bytes:
            return 0.0
        rate = self.exchange_bytes_per_second
        return None if rate is None else self.exchange_bytes / rate

    @property
    def sequential_seconds(self) -> float | None:
        """Of both, where nothing is computed while devices exchange tokens."""
        compute, exchange = self.compute_seconds, self.exchange_seconds
        return None if compute is None or exchange is None else compute + exchange

    @property
    def overlapped_seconds(self) -> float | None:
        """Of both at once: the least that exchanging in chunks can lead to."""
        compute, exchange = self.compute_seconds, self.exchange_seconds
        return None if compute is None or exchange is None else max(compute, exchange)

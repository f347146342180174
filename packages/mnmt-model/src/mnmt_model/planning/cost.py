"""FLOPs and traffic of a training step, or of a run, and bounds of the time that they take.

Where the traffic is a mean over even choices of experts, the times are estimates: uneven choices send other
bytes, and the device whose experts are chosen most often receives and computes more than the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from mnmt_model.planning.traffic import StepTraffic, Traffic
from mnmt_model.planning.workload import PlanConfig


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How fast devices compute and send."""

    flops_per_second: float | None = None
    """FLOPs a second that all devices execute together."""
    exchange_bytes_per_second: float | None = None
    """Bytes a second that one device sends to others."""
    exchange_latency_seconds: float = 0.0
    """Seconds that each message takes besides its bytes."""

    @classmethod
    def of(cls, options: PlanConfig) -> Rates:
        """Return the rates that a plan assumes."""
        return cls(
            flops_per_second=options.flops_per_second,
            exchange_bytes_per_second=options.exchange_bytes_per_second,
            exchange_latency_seconds=options.exchange_latency_seconds or 0.0,
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a training step, or a run, takes; times are None without the rates that give them."""

    flops: int
    """Useful FLOPs of all devices."""
    executed_flops: int
    """FLOPs that all devices execute: with those of empty slots, and of recomputed activations."""
    traffic: StepTraffic
    """What one device sends to others."""
    assumes_even_choices: bool
    """Whether the traffic is a mean, as if all experts were chosen equally often."""
    hides_tokens: bool
    """Whether tokens travel in chunks, so that experts can compute while others are on their way."""
    rates: Rates

    @property
    def executed_over_useful(self) -> float:
        """FLOPs that are executed for each useful one."""
        return self.executed_flops / self.flops

    @property
    def compute_seconds(self) -> float | None:
        """Seconds that the executed FLOPs take."""
        rate = self.rates.flops_per_second
        return None if rate is None else self.executed_flops / rate

    @property
    def exchange_seconds(self) -> float | None:
        """Seconds that all traffic takes, one message after the other; 0 where there is none."""
        return self.seconds(self.traffic.total)

    @property
    def most_seconds(self) -> float | None:
        """Upper bound at these rates: nothing is computed or sent at the same time as anything else.

        It is an estimate where the traffic assumes even choices.
        """
        compute, exchange = self.compute_seconds, self.exchange_seconds
        return None if compute is None or exchange is None else compute + exchange

    @property
    def least_seconds(self) -> float | None:
        """Lower bound at these rates: whatever can be computed and sent at the same time is.

        The messages of an all-to-all are then on their way together. Without chunks nothing is computed
        meanwhile, as the experts wait for their tokens. It is an estimate where the traffic assumes even
        choices.
        """
        tokens = self.seconds(self.traffic.tokens, together=True)
        exchange = self.seconds(self.traffic.total, together=True)
        compute = self.compute_seconds
        if compute is None or tokens is None or exchange is None:
            return None
        return max(compute if self.hides_tokens else compute + tokens, exchange)

    def seconds(self, traffic: Traffic, *, together: bool = False) -> float | None:
        """Return the seconds that some traffic takes: latency · messages + bytes / rate.

        Args:
            traffic: What one device sends.
            together: Count only messages that wait for one another.
        """
        rate = self.rates.exchange_bytes_per_second
        if not traffic.size:
            return 0.0
        if rate is None:
            return None
        messages = traffic.rounds if together else traffic.messages
        return self.rates.exchange_latency_seconds * messages + traffic.size / rate

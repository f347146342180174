"""The training log, metrics.jsonl."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mnmt_data.store import append_json_lines
from mnmt_model.errors import RunError
from mnmt_model.training.balance import BalanceLog, Reduce
from mnmt_model.training.gradient_step import StepLosses
from mnmt_model.training.mfu import peak_flops, synchronize

_COUNTS = ("taken_tokens", "real_tokens", "cells", "flops")


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The result of a training step."""

    step: int
    """The number of the step, from 1."""
    losses: StepLosses
    flops: int
    """Model FLOPs of the whole batch, forwards and backwards, without recomputation."""
    grad_norm: float
    """The gradient's norm over all ranks, before clipping."""
    lr: float
    """The learning rate."""
    skipped: bool = False
    """Whether the guard skipped the update."""


class TrainingLog:
    """Sums the results of steps, and writes lines of metrics.jsonl.

    Between lines nothing is read from the device. The clock starts at construction.

    Args:
        path: The file metrics.jsonl.
        device: The device of this rank.
        dtype: Precision of the matrix products, for the peak FLOP/s.
        num_devices: Number of devices in training.
        tasks: The tasks whose drop rates are reported.
        rank: This rank; rank 0 writes.
        peak: Returns the FLOP/s of one device.
        clock: Returns seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        num_devices: int = 1,
        tasks: Sequence[str] = (),
        rank: int = 0,
        peak: Callable[[torch.device, torch.dtype], float | None] = peak_flops,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.path, self.device, self.dtype = path, device, dtype
        self.num_devices, self.rank = num_devices, rank
        self._peak, self._clock = peak, clock
        self.skipped = 0
        self._balance = BalanceLog(tasks)
        self._restart()

    def _restart(self) -> None:
        self._sums = torch.zeros(2, device=self.device)
        self._taken_tokens = self._real_tokens = self._cells = self._flops = 0
        self._balance.restart()
        self._since = self._clock()

    def add(self, result: StepResult) -> None:
        """Add a step; a skipped one counts for time, tokens and FLOPs, but not for the loss."""
        self._last, losses = result, result.losses
        if result.skipped:
            self.skipped += 1
        else:
            self._sums = self._sums + torch.stack([losses.nats.detach(), losses.objective.detach()])
            self._taken_tokens += losses.tgt_tokens
        self._real_tokens += losses.src_tokens + losses.tgt_tokens
        self._cells += losses.cells
        self._flops += result.flops
        if losses.balance is not None:
            self._balance.add(losses.balance)

    def state(self, *, reduce: Reduce = lambda sums: sums) -> dict[str, Any]:
        """Return the state as a value for JSON, to resume from; every rank calls this.

        The sums of ranks are separate, since float32 sums depend on the order.
        """
        by_rank = self._sums.new_zeros(self.num_devices, len(self._sums))
        by_rank[self.rank] = self._sums
        sums = reduce(by_rank).tolist()
        counts = {name: getattr(self, f"_{name}") for name in _COUNTS}
        balance = self._balance.state(reduce)
        return {"sums": sums, "skipped": self.skipped, "balance": balance, **counts}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the value of `state`.

        Each rank continues from its sums; with another number of ranks, rank 0 continues from the total.
        """
        self.skipped = state["skipped"]
        by_rank = torch.tensor(state["sums"], device=self.device).view(-1, len(self._sums))
        if len(by_rank) == self.num_devices:
            self._sums = by_rank[self.rank]
        elif self.rank == 0:
            self._sums = by_rank.sum(0)
        if self.rank == 0 and state.get("balance") is not None:
            self._balance.restore(state["balance"], self.device)
        for name in _COUNTS:
            setattr(self, f"_{name}", state[name])

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Exclude the time inside, for evaluations and checkpoints, from the rates."""
        synchronize(self.device)
        since = self._clock()
        yield
        synchronize(self.device)
        self._since += self._clock() - since

    def write(
        self, tokens: int, *, data_seconds: float = 0.0, reduce: Reduce = lambda sums: sums
    ) -> dict[str, Any]:
        """Append a line for the steps since the last one. Every rank calls this and gets the line.

        Args:
            tokens: Source and target tokens of the run so far.
            data_seconds: Seconds that this rank waited for batches since the last line.
            reduce: Sums a small float tensor over the ranks.

        Raises:
            RunError: If the loss is not finite.
        """
        sums = torch.cat([self._sums, self._sums.new_tensor([data_seconds])])
        nats, objective, waited = reduce(sums).tolist()
        seconds = max(self._clock() - self._since, 1e-9)
        line = {
            "step": self._last.step,
            "tokens": tokens,
            "loss": self._per_token(nats),
            "objective": self._per_token(objective),
            "lr": self._last.lr,
            "grad_norm": _finite(self._last.grad_norm),
            "skipped": self.skipped,
            "tokens_per_second": round(self._real_tokens / seconds),
            "mfu": self._mfu(seconds),
            "data_wait": round(waited / self.num_devices / seconds, 4),
            "padding": round(1 - self._real_tokens / max(self._cells, 1), 4),
            **self._balance.line(reduce),
        }
        if self.rank == 0:
            append_json_lines(self.path, [line])
        self._restart()
        return line

    def peak(self) -> float | None:
        """Return the peak FLOP/s of all devices, the denominator of `mfu`; None if unknown."""
        peak = self._peak(self.device, self.dtype)
        return None if peak is None else peak * self.num_devices

    def _mfu(self, seconds: float) -> float | None:
        peak = self.peak()
        return None if peak is None else round(self._flops / (seconds * peak), 4)

    def _per_token(self, nats: float) -> float | None:
        if not self._taken_tokens:
            return None
        if not math.isfinite(nats):
            raise RunError(
                f"the loss is {nats} at step {self._last.step}; lower `learning_rate` or set `clip_norm`"
            )
        return nats / self._taken_tokens


def _finite(value: float) -> float | None:
    """Return None for infinity and NaN, which JSON cannot express."""
    return value if math.isfinite(value) else None

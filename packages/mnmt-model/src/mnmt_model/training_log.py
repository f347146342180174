"""metrics.jsonl: how training goes."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch

from mnmt_data.batches import Batch
from mnmt_model import jsonl
from mnmt_model.checkpoint import Progress
from mnmt_model.errors import RunError


class TrainingLog:
    """Sums the loss between the lines of metrics.jsonl."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.grad_norm = torch.zeros(())
        self._restart()

    def _restart(self) -> None:
        self.loss, self.tokens, self.cells, self.padding = torch.zeros(()), 0, 0, 0.0
        self.since = time.monotonic()

    def add(self, loss: torch.Tensor, batch: Batch, grad_norm: torch.Tensor) -> None:
        """Count a step's summed loss (nats), target tokens and padding."""
        self.loss = self.loss + loss
        self.tokens += batch.num_tokens
        cells = batch.src.size + batch.tgt.size
        self.cells += cells
        self.padding += batch.padding * cells
        self.grad_norm = grad_norm

    def write(self, progress: Progress, optimizer: torch.optim.Optimizer) -> None:
        """Append a line for the steps since the last one.

        Raises:
            RunError: if the loss is no longer finite.
        """
        loss = float(self.loss) / max(self.tokens, 1)
        if not math.isfinite(loss):
            raise RunError(
                f"the loss is {loss} at step {progress.step}; lower `learning_rate` or set `clip_norm`"
            )
        line: dict[str, Any] = {
            "step": progress.step,
            "tokens": progress.tokens,
            "loss": loss,
            "lr": optimizer.param_groups[0]["lr"],
            "grad_norm": float(self.grad_norm),
            "tokens_per_second": round(self.tokens / (time.monotonic() - self.since)),
            "padding": round(self.padding / max(self.cells, 1), 4),
        }
        jsonl.append_lines(self.path, [line])
        self._restart()

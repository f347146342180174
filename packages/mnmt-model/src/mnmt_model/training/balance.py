"""How evenly experts are used in training, and the metrics of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mnmt_model.transformer.experts.routes import Balance

Reduce = Callable[[Tensor], Tensor]


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskBalance:
    """Sums over parts of batches; a process computes a part at a time."""

    parts: Tensor
    """Scalar, the number of parts."""
    auxiliary: Tensor
    """Scalar, the auxiliary losses of all layers, summed; each is 1 in perfect balance."""
    load: Tensor
    """`(layers, num_experts)` tokens that chose each expert, those dropped included."""
    claims: Tensor
    """`(tasks,)` choices of each task's tokens."""
    drops: Tensor
    """`(tasks,)` choices that found no slot."""

    @classmethod
    def of(cls, balance: Balance, tasks: Tensor, num_tasks: int) -> TaskBalance:
        """Return the balance of one part, whose pairs are of `tasks (batch,)`.

        Float64 holds every sum of counts exactly.
        """
        by_task = torch.zeros(2, num_tasks, dtype=torch.float64, device=tasks.device)
        by_task.index_add_(1, tasks, torch.stack([balance.claims, balance.drops]).double())
        return cls(
            parts=by_task.new_ones(()),
            auxiliary=balance.auxiliary.detach().double(),
            load=balance.load.double(),
            claims=by_task[0],
            drops=by_task[1],
        )

    def __add__(self, other: TaskBalance) -> TaskBalance:
        return TaskBalance(**{name: value + vars(other)[name] for name, value in vars(self).items()})


class BalanceLog:
    """Sums balances of steps into a line of metrics.jsonl."""

    def __init__(self, tasks: Sequence[str]) -> None:
        self.tasks = tuple(tasks)
        self._sum: TaskBalance | None = None

    def add(self, balance: TaskBalance) -> None:
        """Add this process's balance of a step."""
        self._sum = balance if self._sum is None else self._sum + balance

    def restart(self) -> None:
        """Start a new line."""
        self._sum = None

    def line(self, reduce: Reduce) -> dict[str, Any]:
        """Return the metrics over all ranks, each of which calls this; none for a model without experts."""
        if self._sum is None:
            return {}
        total = _sum_over_ranks(self._sum, reduce)
        shares = total.load / total.load.mean(dim=1, keepdim=True).clamp(min=1)
        rates = (total.drops / total.claims.clamp(min=1)).tolist()
        occurs = (total.claims > 0).tolist()
        return {
            "auxiliary_loss": float(total.auxiliary / (total.parts * len(shares))),
            "drop_rate": float(total.drops.sum() / total.claims.sum().clamp(min=1)),
            "drop_rates": {
                task: rate for task, rate, some in zip(self.tasks, rates, occurs, strict=True) if some
            },
            "load": [[float(layer.min()), float(layer.max())] for layer in shares],
        }

    def state(self, reduce: Reduce) -> dict[str, Any] | None:
        """Return, as JSON, the sums that a resumed run continues from; every rank calls this."""
        if self._sum is None:
            return None
        return {name: value.tolist() for name, value in vars(_sum_over_ranks(self._sum, reduce)).items()}

    def restore(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Continue from what `state` returned."""
        sums = {name: torch.tensor(v, dtype=torch.float64, device=device) for name, v in state.items()}
        self._sum = TaskBalance(**sums)


def _sum_over_ranks(balance: TaskBalance, reduce: Reduce) -> TaskBalance:
    """Return the sums over all ranks, in one all-reduce."""
    fields = vars(balance)
    flat = reduce(torch.cat([value.flatten() for value in fields.values()]))
    parts = torch.split(flat, [value.numel() for value in fields.values()])
    return TaskBalance(
        **{name: part.view(fields[name].shape) for name, part in zip(fields, parts, strict=True)}
    )

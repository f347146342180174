"""The balance of experts in training, as metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mnmt_model.runs.task_specialisation import chance_information, mutual_information
from mnmt_model.transformer.experts.routes import Balance

Reduce = Callable[[Tensor], Tensor]

LOADS = "expert_loads"
"""The key of all counts in a line of metrics.jsonl."""

MOST_LOADS = 2**13
"""Most counts of layers, tasks and experts in a line: about 50 kB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskBalance:
    """Sums over parts of batches, which a process computes one at a time."""

    parts: Tensor
    """Scalar, the number of parts."""
    auxiliary: Tensor
    """Scalar, the auxiliary losses of all layers, summed; each is 1 in perfect balance."""
    load: Tensor
    """`(layers, tasks, num_experts)` tokens that chose each expert, including dropped choices."""
    drops: Tensor
    """`(tasks,)` dropped choices."""

    @classmethod
    def of(cls, balance: Balance) -> TaskBalance:
        """Return the balance of one part, with tasks as labels of its pairs.

        Float64 holds every sum of counts exactly.
        """
        return cls(
            parts=balance.load.new_ones((), dtype=torch.float64),
            auxiliary=balance.auxiliary.detach().double(),
            load=balance.load.double(),
            drops=balance.drops.double(),
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
        """Return the metrics over all ranks, which all call this; {} for a model without experts."""
        if self._sum is None:
            return {}
        total = _sum_over_ranks(self._sum, reduce)
        by_expert, claims = total.load.sum(dim=1), total.load.sum(dim=(0, 2))
        shares = by_expert / by_expert.mean(dim=1, keepdim=True).clamp(min=1)
        return {
            "auxiliary_loss": float(total.auxiliary / (total.parts * len(shares))),
            "drop_rate": float(total.drops.sum() / claims.sum().clamp(min=1)),
            "drop_rates": self._by_task(total.drops / claims.clamp(min=1), claims),
            "load": [[float(layer.min()), float(layer.max())] for layer in shares],
            **self._specialisation(total.load, claims),
        }

    def _specialisation(self, load: Tensor, claims: Tensor) -> dict[str, Any]:
        """Return the mutual information of expert and task, and the counts if there are few."""
        counts, tasks = load.cpu().numpy(), int((claims > 0).sum())
        line: dict[str, Any] = {}
        if tasks > 1:
            nats = mutual_information(counts) - chance_information(counts)
            line["specialisation"] = (nats / np.log(tasks)).tolist()
        if counts.size <= MOST_LOADS:
            line[LOADS] = self._by_task(load.long().transpose(0, 1), claims)
        return line

    def _by_task(self, values: Tensor, claims: Tensor) -> dict[str, Any]:
        """Return {task: value} of the tasks that occur."""
        rows = zip(self.tasks, values.tolist(), claims.tolist(), strict=True)
        return {task: value for task, value, claimed in rows if claimed}

    def state(self, reduce: Reduce) -> dict[str, Any] | None:
        """Return the sums as a value for JSON, to resume from; every rank calls this."""
        if self._sum is None:
            return None
        return {name: value.tolist() for name, value in vars(_sum_over_ranks(self._sum, reduce)).items()}

    def restore(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Continue from the value of `state`; ignore one with other fields, of an older version."""
        if state.keys() != TaskBalance.__dataclass_fields__.keys():
            return
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

"""The optimisers of several models whose parameters are rows of stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from mnmt_model.optim.adafactor import Adafactor
from mnmt_model.transformer.products import TORCH


class StackedOptimizer:
    """Updates the models' parameters as each model's optimiser would, where it can all of them in one pass.

    The optimisers' states become rows of stacks too, so they stay what checkpoints save. One pass serves all
    models while each of them takes every step. Once one does not, each is updated by its own optimiser, until
    their numbers of steps agree again.

    Args:
        stack: {name: `(models, …)`}, of which each model's parameters are rows.
        models: The models.
        optimizers: Their optimisers, of one kind and with equal settings.
    """

    def __init__(
        self, stack: Mapping[str, Tensor], models: Sequence[nn.Module], optimizers: Sequence[Optimizer]
    ) -> None:
        self.stack, self.optimizers = stack, optimizers
        self.params = [dict(model.named_parameters()) for model in models]
        for optimizer in optimizers:
            if isinstance(optimizer, Adafactor):
                # The joint pass has these ways, and its bits must not depend on who takes a step.
                optimizer.products = TORCH
        self._joint: Optimizer | None = None
        self._steps: Tensor | None = None

    @torch.no_grad()
    def clip(self, clip_norm: float) -> list[float]:
        """Scale each model's gradients to a norm of at most `clip_norm`, unless that is 0.

        Returns:
            Each model's norm before.
        """
        grads = [parameter.grad for parameter in self.stack.values() if parameter.grad is not None]
        squares = [torch.linalg.vecdot(rows, rows) for rows in (grad.flatten(1) for grad in grads)]
        norms = torch.stack(squares).sum(0).sqrt_()
        if clip_norm:
            factors = (clip_norm / (norms + 1e-6)).clamp_(max=1.0)
            torch._foreach_mul_(grads, [factors.view(-1, *[1] * (grad.dim() - 1)) for grad in grads])
        result: list[float] = norms.tolist()
        return result

    @torch.no_grad()
    def step(self, accepted: Sequence[bool]) -> None:
        """Update the models whose step is accepted, and drop all gradients."""
        if self._steps is None:
            self._stack_states()
        if all(accepted) and self._is_in_step():
            self._step_jointly()
        else:
            for number, is_accepted in enumerate(accepted):
                if is_accepted:
                    self._step_one(number)
        for parameter in self.stack.values():
            parameter.grad = None

    def _step_one(self, number: int) -> None:
        for name, parameter in self.params[number].items():
            grad = self.stack[name].grad
            parameter.grad = None if grad is None else grad[number]
        self.optimizers[number].step()
        self.optimizers[number].zero_grad(set_to_none=True)

    def _is_in_step(self) -> bool:
        """Return whether all models have taken equally many steps."""
        return self._steps is not None and bool((self._steps == self._steps[0, 0]).all())

    def _step_jointly(self) -> None:
        assert self._joint is not None
        assert self._steps is not None
        for group in self._joint.param_groups:
            group["lr"] = self.optimizers[0].param_groups[0]["lr"]
        for state in self._joint.state.values():
            state["step"].copy_(self._steps[0, 0])
        self._joint.step()
        self._steps += 1

    def _stack_states(self) -> None:
        """Make the states of the optimisers rows of stacks, once each parameter of each model has one."""
        states: list[list[dict[str, Any]]] = [
            [optimizer.state.get(params[name], {}) for name in self.stack]
            for optimizer, params in zip(self.optimizers, self.params, strict=True)
        ]
        if not all(state for of_model in states for state in of_model):
            return
        self._joint = _joint_optimizer(self.optimizers[0], self.params[0], self.stack)
        self._steps = torch.tensor([[float(state["step"]) for state in of_model] for of_model in states])
        for column, parameter in enumerate(self.stack.values()):
            self._joint.state[parameter] = _stack_state([of_model[column] for of_model in states])
            for number, of_model in enumerate(states):
                of_model[column]["step"] = self._steps[number, column]


def _stack_state(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the stacked state of a parameter, of which the given states become rows."""
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0] if name != "step"}
    for number, state in enumerate(states):
        state.update({name: rows[number] for name, rows in stacked.items()})
    return {"step": torch.zeros(()), **stacked}


def _joint_optimizer(
    optimizer: Optimizer, params: Mapping[str, Tensor], stack: Mapping[str, Tensor]
) -> Optimizer:
    """Return an optimiser like `optimizer`, whose parameters are the stacks."""
    stacks = {id(parameter): stack[name] for name, parameter in params.items()}
    groups = [
        {**group, "params": [stacks[id(parameter)] for parameter in group["params"]]}
        for group in optimizer.param_groups
    ]
    if isinstance(optimizer, Adafactor):
        return Adafactor(groups, lr=groups[0]["lr"], stacked=True)
    return AdamW(groups, fused=True)

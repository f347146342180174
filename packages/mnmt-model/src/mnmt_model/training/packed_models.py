"""The steps of several models of one size, computed as one program."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import FunctionType

import numpy as np
import torch
import torch._dynamo
import torch._inductor.config
from torch import Tensor, nn
from torch.func import functional_call, vmap

from mnmt_data.stream import WHOLE, Batch
from mnmt_model.training.gradient_step import StepLosses
from mnmt_model.training.run_state import RunState
from mnmt_model.training.stacked_optimizer import StackedOptimizer
from mnmt_model.transformer.sentences import Sentences

PROBE_STEPS = 16
"""First steps whose batches tell whether all batches have one shape."""

PackLosses = tuple[Tensor, Tensor, Tensor]
"""The sum of all mean objectives, and each model's summed objective and -log p, `(models,)`."""


class PackedModels:
    """Computes the steps of several runs whose models have one config and one precision.

    Each parameter is a row of a stack `(models, …)`, which the models share. `torch.func` maps the model over
    the stacks, and `torch.compile` makes one program of it. Batches are laid into tables of a common shape,
    whose padding is computed like tokens.

    A result depends on the shape of the tables in its last bits. So the shape comes from the batches of all
    runs, also of those that have ended; and one shape is always computed by the same program.

    Args:
        runs: The runs, on one process.
        backend: Of `torch.compile`; `eager` only stacks.
    """

    def __init__(self, runs: Sequence[RunState], *, backend: str = "inductor") -> None:
        self.runs, self.device, self.backend = runs, runs[0].world.device, backend
        self.stack = stack_parameters([run.model for run in runs])
        self.optimizer = StackedOptimizer(
            self.stack, [run.model for run in runs], [run.optimizer for run in runs]
        )
        config = runs[0].config
        self._losses = _compiled(
            runs[0].model, config.label_smoothing, config.z_loss, backend, self._common_shape()
        )

    def gradients(self, step: int) -> Sequence[StepLosses]:
        """Compute the gradients of `step`, counted from 1, of all models."""
        read = [run.batches.read(step - 1) for run in self.runs]
        # Dropout is a function of (seed, step), so a resumed pack needs no generator state.
        torch.manual_seed((self.runs[0].run.seed * 1_000_003 + step) * 65_537)
        src, tgt, weights = (
            table.to(self.device, non_blocking=True) for table in _tables([batch.parts[0] for batch in read])
        )
        scales = torch.tensor([1 / batch.tgt_tokens for batch in read], device=self.device)
        objective, objectives, nats = self._losses(self.stack, src, tgt, weights, scales)
        objective.backward()  # type: ignore[no-untyped-call]
        return [
            StepLosses(
                objective=objectives[number],
                nats=nats[number],
                src_tokens=batch.src_tokens,
                tgt_tokens=batch.tgt_tokens,
                cells=src[0].numel() + tgt[0].numel(),
            )
            for number, batch in enumerate(read)
        ]

    def clip(self) -> Sequence[float]:
        """Clip the gradients of each model, and return their norms before."""
        return self.optimizer.clip(self.runs[0].config.clip_norm)

    def update(self, accepted: Sequence[bool]) -> None:
        """Update the weights of the models whose step is accepted, and drop all gradients."""
        self.optimizer.step(accepted)

    def drop_gradients(self) -> None:
        """Forget the gradients that were computed last."""
        self.optimizer.step([False] * len(self.runs))

    def _common_shape(self) -> tuple[int, ...] | None:
        """Return (rows, src_width, tgt_width) of the first batches' tables; None if they differ."""
        shapes = {
            _shape([run.stream.share(step, WHOLE)[0] for run in self.runs]) for step in range(PROBE_STEPS)
        }
        return shapes.pop() if len(shapes) == 1 else None


def has_compiler(device: torch.device) -> bool:
    """Return whether `torch.compile` has what it needs: a C++ compiler, or Triton on a GPU."""
    if torch._dynamo.config.disable:
        return False
    if device.type == "cuda":
        return find_spec("triton") is not None
    return any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++"))


def stack_parameters(models: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Return {name: `(models, …)`}, and make each parameter of each model a view of a row of it."""
    named = [dict(model.named_parameters()) for model in models]
    stack = {}
    for name in named[0]:
        stack[name] = torch.stack([parameters[name].detach() for parameters in named]).requires_grad_()
        for parameters, row in zip(named, stack[name].detach(), strict=True):
            parameters[name].data = row
    return stack


def _compiled(
    model: nn.Module, label_smoothing: float, z_loss: float, backend: str, common: tuple[int, ...] | None
) -> Callable[..., PackLosses]:
    """Return the losses as a program for tables of the `common` shape, and another for all others."""
    template = copy.deepcopy(model).to("meta").train()

    def losses(
        parameters: dict[str, Tensor], src: Tensor, tgt: Tensor, weights: Tensor
    ) -> tuple[Tensor, ...]:
        arguments = (Sentences.with_padding(src), Sentences.with_padding(tgt))
        options = {"pair_weights": weights, "label_smoothing": label_smoothing, "z_loss": z_loss}
        result = functional_call(template, parameters, arguments, options)
        return result.objective, result.pair_nats.sum()

    def packed(
        stack: dict[str, Tensor], src: Tensor, tgt: Tensor, weights: Tensor, scales: Tensor
    ) -> PackLosses:
        objectives, nats = vmap(losses, randomness="different")(stack, src, tgt, weights)
        return (objectives * scales).sum(), objectives.detach(), nats.detach()

    # More than its own threads would take cores from other workers of a sweep.
    torch._inductor.config.compile_threads = torch.get_num_threads()
    one_shape, any_shape = (
        torch.compile(_copy(packed), backend=backend, dynamic=False, fullgraph=True) for _ in range(2)
    )

    def choose(stack: dict[str, Tensor], src: Tensor, tgt: Tensor, *rest: Tensor) -> PackLosses:
        if (*src.shape[1:], tgt.size(2)) == common:
            return one_shape(stack, src, tgt, *rest)
        for table, dims in ((src, (1, 2)), (tgt, (1, 2)), (rest[0], (1,))):
            for dim in dims:
                torch._dynamo.mark_dynamic(table, dim)
        return any_shape(stack, src, tgt, *rest)

    return choose


def _copy(function: Callable[..., PackLosses]) -> Callable[..., PackLosses]:
    """Return a copy of a function with code of its own, by which the compiler tells programs apart."""
    return FunctionType(function.__code__.replace(), globals(), None, None, function.__closure__)


def _shape(batches: Sequence[Batch]) -> tuple[int, int, int]:
    """Return the rows, the source width and the target width of tables that hold each batch."""
    shapes = np.array([(*batch.src.shape, batch.tgt.shape[1]) for batch in batches])
    rows, src_width, tgt_width = shapes.max(axis=0).tolist()
    return rows, src_width, tgt_width


def _tables(batches: Sequence[Batch]) -> tuple[Tensor, Tensor, Tensor]:
    """Return sources `(models, rows, src_width)`, targets `(models, rows, tgt_width)`, weights of pairs."""
    rows, src_width, tgt_width = _shape(batches)
    src = np.zeros((len(batches), rows, src_width), dtype=np.int64)
    tgt = np.zeros((len(batches), rows, tgt_width), dtype=np.int64)
    weights = np.zeros((len(batches), rows), dtype=np.float32)
    for number, batch in enumerate(batches):
        src[number, : batch.src.shape[0], : batch.src.shape[1]] = batch.src
        tgt[number, : batch.tgt.shape[0], : batch.tgt.shape[1]] = batch.tgt
        weights[number, : len(batch.loss_weights)] = batch.loss_weights
    return torch.from_numpy(src), torch.from_numpy(tgt), torch.from_numpy(weights)

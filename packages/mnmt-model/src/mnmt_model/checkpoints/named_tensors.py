"""The tensors of a model and of its optimiser, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mnmt_model.checkpoints.tensor_files import TensorFiles
from mnmt_model.distributed.shards import local_part
from mnmt_model.errors import RunError


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return {name: parameter or buffer} of the model's state."""
    tensors: dict[str, Tensor] = model.state_dict(keep_vars=True)
    return tensors


def optimizer_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Return {`parameter.state`: tensor} of the optimiser's state, such as `embedding.weight.exp_avg`."""
    names = _names(model)
    return {
        f"{names[id(parameter)]}.{name}": tensor
        for parameter, state in optimizer.state.items()
        for name, tensor in state.items()
    }


@torch.no_grad()
def load_tensors(files: TensorFiles, targets: Mapping[str, Tensor], *, source: Path, what: str) -> None:
    """Copy the tensors of `files` into `targets`, in place.

    Args:
        files: Files with the tensors.
        targets: {name: tensor}, with the same names and shapes.
        source: Path for errors.
        what: Owner of the targets, such as "model", for errors.

    Raises:
        RunError: If names or shapes differ.
    """
    reason = _difference(files.shapes, {name: tuple(tensor.shape) for name, tensor in targets.items()}, what)
    if reason:
        raise RunError(f"{source}: does not fit the {what}: {reason}")
    for name, target in targets.items():
        files.copy_part(name, *local_part(target))


def load_weights(files: TensorFiles, model: nn.Module, *, source: Path) -> None:
    """Copy the tensors of `files` into the weights and buffers of `model`, in place.

    Missing biases of gates, which older versions did not write, stay 0.

    Raises:
        RunError: If the tensors are of another model.
    """
    tensors = model_tensors(model)
    targets = {
        name: tensor for name, tensor in tensors.items() if name in files.shapes or not is_bias_of_gate(name)
    }
    load_tensors(files, targets, source=source, what="model")


def is_bias_of_gate(name: str) -> bool:
    """Return whether a tensor is a gate's bias, which checkpoints of older versions lack, as if 0."""
    return name.endswith(".gate.balance_bias")


def load_optimizer(files: TensorFiles, model: nn.Module, optimizer: Optimizer, *, source: Path) -> None:
    """Copy the tensors of `files` into the state of `optimizer`, in place.

    Raises:
        RunError: If the tensors are of another optimiser or another model.
    """
    _fill_state(optimizer)
    saved = {name.rpartition(".")[0] for name in files.shapes}
    names = _names(model)
    for parameter in list(optimizer.state):
        # A parameter that had no gradient yet has no state.
        if names[id(parameter)] not in saved:
            del optimizer.state[parameter]
    load_tensors(files, optimizer_tensors(model, optimizer), source=source, what="optimizer")


def _names(model: nn.Module) -> dict[int, str]:
    """Return {identity of a parameter: its name}."""
    return {id(parameter): name for name, parameter in model_tensors(model).items()}


def _fill_state(optimizer: Optimizer) -> None:
    """Create the optimiser's state with its sharding by a step of rate 0 with gradients of 0."""
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def _difference(saved: Mapping[str, object], expected: Mapping[str, object], what: str) -> str | None:
    """Describe the first difference between two {name: shape}; None if they are equal."""
    missing, unknown = list(expected.keys() - saved.keys()), list(saved.keys() - expected.keys())
    if missing:
        return f"it has no {_some(missing)}"
    if unknown:
        return f"it has {_some(unknown)}, which the {what} has not"
    for name, shape in expected.items():
        if saved[name] != shape:
            return f"{name} is {saved[name]} in it, but {shape} in the {what}"
    return None


def _some(names: list[str]) -> str:
    first = ", ".join(sorted(names)[:3])
    return f"{first} and {len(names) - 3} more" if len(names) > 3 else first

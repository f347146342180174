"""Records what would make the host wait for a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

OPERATORS = ("_local_scalar_dense", "nonzero", "masked_select")
"""Operators of torch whose results, or their sizes, the host reads; so does indexing by a mask."""
METHODS = (Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.new_tensor)
"""Methods that copy to the host or, from memory that is not pinned, to the device."""


class _Operators(TorchDispatchMode):
    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = name == "index" and any(each is not None and each.dtype == torch.bool for each in args[1])
        if name in OPERATORS or masks:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in METHODS or (func is torch.tensor and "device" in (kwargs or {})):
            self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


@contextmanager
def host_waits() -> Iterator[list[str]]:
    """Yield the names of the operators and methods inside that wait."""
    names: list[str] = []
    with _Operators(names), _Functions(names):
        yield names

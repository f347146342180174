"""Copies between a CPU and a GPU for which the host does not wait."""

from __future__ import annotations

import torch
from torch import Tensor


def runs_behind(device: torch.device) -> bool:
    """Return whether a device computes while the host goes on."""
    return device.type != "cpu"


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on another device; a copy to a GPU is from pinned memory, without a wait."""
    if device.type == "cuda" and tensor.is_cpu:
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


class HostCopy:
    """A copy of a tensor on the CPU, which starts when the tensor has been computed.

    Args:
        tensor: The tensor; from a GPU it is copied into pinned memory.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._copy = tensor.to("cpu", non_blocking=True)
        self._done = torch.cuda.current_stream().record_event() if tensor.is_cuda else None

    def read(self) -> list[float]:
        """Wait until the copy is complete, but for nothing queued after it, and return the numbers."""
        if self._done is not None:
            self._done.synchronize()
        numbers: list[float] = self._copy.tolist()
        return numbers

"""Access to `mnmt_moe_ext`: its compiled operators, or otherwise their plain-torch reference."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from mnmt_model.errors import RunError

if TYPE_CHECKING:
    from mnmt_moe_ext import Layout, Routing

__all__ = ["Layout", "Routing", "extension", "operators"]

INSTALL = "pip install --no-build-isolation packages/mnmt-moe-ext"

_log = logging.getLogger(__name__)

_warned: set[str] = set()
"""Device types with a warning already logged."""


def extension() -> ModuleType:
    """Return the package `mnmt_moe_ext`.

    Raises:
        RunError: If it is not installed; the message has the command.
    """
    try:
        import mnmt_moe_ext
    except ModuleNotFoundError:
        raise RunError(f"`num_experts` above 0 needs the package mnmt-moe-ext: {INSTALL}") from None
    return mnmt_moe_ext


def operators(device_type: str) -> ModuleType:
    """Return gate, dispatch and combine for a type of device; warn once if they are slow."""
    package = extension()
    if package.is_available(torch.device(device_type)):
        return package
    if device_type not in _warned:
        _warned.add(device_type)
        _log.warning(
            "mnmt-moe-ext has no compiled operators for %s here: its plain-torch reference runs, "
            "many times slower; build them with: %s",
            device_type,
            INSTALL,
        )
    reference: ModuleType = package.reference
    return reference

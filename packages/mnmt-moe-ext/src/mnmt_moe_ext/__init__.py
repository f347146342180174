"""C++ and CUDA operators of the mixture-of-experts Transformer layer: gate, dispatch and combine."""

from importlib.metadata import version
from typing import Any

import torch  # noqa: F401 (loads libtorch, which _native links to)

from mnmt_moe_ext import operators, reference
from mnmt_moe_ext.all_to_all import ExchangeError
from mnmt_moe_ext.counter_rng import RandomKey
from mnmt_moe_ext.expert_parallel import apply_experts
from mnmt_moe_ext.gate import route, uniform_choices
from mnmt_moe_ext.layout import Layout
from mnmt_moe_ext.native import BuildInfo, build_info, is_available
from mnmt_moe_ext.routing import Routing, balance_loss, expert_capacity
from mnmt_moe_ext.rows import combine, dispatch
from mnmt_moe_ext.token_exchange import apply_experts_to_tokens

__all__ = [
    "BuildInfo",
    "ExchangeError",
    "Layout",
    "RandomKey",
    "Routing",
    "apply_experts",
    "apply_experts_to_tokens",
    "balance_loss",
    "build_info",
    "combine",
    "dispatch",
    "expert_capacity",
    "is_available",
    "operators",
    "reference",
    "route",
    "uniform_choices",
]


def __getattr__(name: str) -> Any:
    """Return `__version__`, which an uninstalled source does not know."""
    if name == "__version__":
        return version("mnmt-moe-ext")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

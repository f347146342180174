"""Operators of the mixture-of-experts Transformer layer: the top-2 gate of GShard, in C++ and CUDA."""

import torch  # noqa: F401 (loads libtorch, which _native links to)

from mnmt_moe_ext._native import BuildInfo, build_info
from mnmt_moe_ext.capacity import expert_capacity
from mnmt_moe_ext.gate import top2_gate
from mnmt_moe_ext.reference import reference_top2_gate
from mnmt_moe_ext.routing import Routing

__all__ = [
    "BuildInfo",
    "Routing",
    "build_info",
    "expert_capacity",
    "reference_top2_gate",
    "top2_gate",
]

"""The same functions in plain torch: the definition that the compiled operators are tested against.

They are slow and simple, and autograd differentiates them any number of times. `route` consists of
`top_k_gate`, and `capacity_layout` or `ragged_layout`.
"""

from mnmt_moe_ext.reference.exchange import apply_experts_to_tokens
from mnmt_moe_ext.reference.gate import route, top_k_gate
from mnmt_moe_ext.reference.rows import capacity_layout, combine, dispatch, ragged_layout
from mnmt_moe_ext.routing import expert_capacity

__all__ = [
    "apply_experts_to_tokens",
    "capacity_layout",
    "combine",
    "dispatch",
    "expert_capacity",
    "ragged_layout",
    "route",
    "top_k_gate",
]

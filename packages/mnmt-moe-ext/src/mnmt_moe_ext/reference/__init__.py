"""The package's functions in plain torch: the definition that the compiled operators are tested against.

Slow and obvious; differentiated by autograd, any number of times.
"""

from mnmt_moe_ext.reference.gate import top2_gate
from mnmt_moe_ext.reference.rows import capacity_layout, combine, dispatch, ragged_layout
from mnmt_moe_ext.routing import expert_capacity

__all__ = ["capacity_layout", "combine", "dispatch", "expert_capacity", "ragged_layout", "top2_gate"]

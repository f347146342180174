"""What torch has to know about the compiled operators beside their kernels: output shapes and gradients."""

from mnmt_moe_ext import native

if native.COMPILED:
    from mnmt_moe_ext.operators import gate, rows  # noqa: F401 (importing them registers it)

"""Operations with a gradient of their own, in fewer passes over memory than torch takes."""

from mnmt_model.transformer.operations.attention import attention
from mnmt_model.transformer.operations.gelu import gated_gelu
from mnmt_model.transformer.operations.joint import joint_linear
from mnmt_model.transformer.operations.norm import rms_norm
from mnmt_model.transformer.operations.rows import rows

__all__ = ["attention", "gated_gelu", "joint_linear", "rms_norm", "rows"]

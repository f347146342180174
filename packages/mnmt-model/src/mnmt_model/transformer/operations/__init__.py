"""Operations with a gradient of their own, in fewer passes over memory than torch takes."""

from collections.abc import Mapping

from mnmt_model.transformer.operations.attention import attention
from mnmt_model.transformer.operations.cross_entropy import cross_entropy_, cross_entropy_work
from mnmt_model.transformer.operations.dropout import dropout, dropout_mask, dropout_work
from mnmt_model.transformer.operations.gated import Unit, gated, gelu_work
from mnmt_model.transformer.operations.joint import joint_linear
from mnmt_model.transformer.operations.norm import norm_work, rms_norm
from mnmt_model.transformer.operations.ragged_attention import (
    Spans,
    attention_work,
    has_spans,
    ragged_attention,
)
from mnmt_model.transformer.operations.rows import rows
from mnmt_model.transformer.products import Kind, Work

WORKS: Mapping[Kind, Work] = {
    "rms_norm": norm_work,
    "gated_gelu": gelu_work,
    "dropout": dropout_work,
    "cross_entropy": cross_entropy_work,
    "attention": attention_work,
}
"""What computes each operation that has a way in C++, to measure whether that is faster here."""

__all__ = [
    "WORKS",
    "Spans",
    "Unit",
    "attention",
    "cross_entropy_",
    "dropout",
    "dropout_mask",
    "gated",
    "has_spans",
    "joint_linear",
    "ragged_attention",
    "rms_norm",
    "rows",
]

"""The ways of a run's matrix products: which shapes a model has, what was measured, what its record says."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from mnmt_model.errors import RunError
from mnmt_model.optim.native_adafactor import optimizer_shapes
from mnmt_model.optim.optimizer import OPTIMIZER_WORKS
from mnmt_model.runs.run_record import RunRecord
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.attention import Attention
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.experts.activation import activation_work
from mnmt_model.transformer.experts.experts import Experts
from mnmt_model.transformer.feed_forward import GatedFeedForward
from mnmt_model.transformer.loss import chunk_rows
from mnmt_model.transformer.machine import machine
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.modules import Dropout, RMSNorm
from mnmt_model.transformer.native import fingerprint, why_missing
from mnmt_model.transformer.operations import WORKS
from mnmt_model.transformer.products import (
    EXPERTS,
    SINGLE,
    TORCH,
    WAYS,
    Kind,
    Products,
    Shape,
    cached_products,
    can_take,
    measured_products,
    nearest_power,
)
from mnmt_model.transformer.translation_model import TranslationModel

SENTENCE_LENGTHS = (8, 32, 128)
"""Mean lengths of a batch's sentences for which attention is measured."""

DECODING_ROWS = 64
"""Hypotheses that translation continues at a time, about."""

_log = logging.getLogger(__name__)


def training_products(
    config: ModelConfig, vocab_size: int, train: TrainConfig, *, processes: int = 1
) -> Products:
    """Return the fastest ways of a model's products on this machine; see `measured_products`.

    Args:
        config: The model.
        vocab_size: Size of its vocabulary.
        train: How it is trained.
        processes: The processes that train it together.
    """
    with torch.device("meta"):
        model = build_model(config, vocab_size, dropout=train.dropout)
    tokens = max(1, train.batch_tokens // (train.accumulation * processes))
    shapes = product_shapes(
        model,
        train.precision,
        tokens=tokens,
        group=train.expert_parallel,
    )
    optimizer = optimizer_shapes(list(model.parameters()), train.optimizer)
    return measured_products(
        list(dict.fromkeys([*shapes, *optimizer])),
        {**WORKS, **OPTIMIZER_WORKS, "expert_activation": activation_work},
    )


def product_shapes(model: TranslationModel, dtype: str, *, tokens: int, group: int = 1) -> Iterator[Shape]:
    """Yield the shapes of a model's products in training and in translation, some of them repeatedly.

    Numbers of rows are powers of two, so that batches of about equal size have the same shapes.

    Args:
        model: The model, whose weights may be on the meta device.
        dtype: Precision of the states in training; models translate in float32.
        tokens: Source and target tokens that are computed at a time.
        group: The processes that hold the experts together.
    """
    config = model.config
    num_rows = 1 << nearest_power(tokens if config.is_language_model else tokens / 2)
    kinds: tuple[Kind, ...] = (*SINGLE, "linear")
    for module in model.modules():
        if isinstance(module, nn.Linear) and hasattr(module, "products"):
            columns, inner = module.weight.shape
            yield from (Shape(kind, dtype, 1, num_rows, inner, columns) for kind in kinds)
            yield Shape("forward", "float32", 1, DECODING_ROWS, inner, columns)
        yield from _operations(module, config, dtype, num_rows)
        for names in getattr(module, "joint_maps", ()):
            weights = [getattr(module, name).weight for name in names]
            columns, inner = sum(map(len, weights)), weights[0].size(1)
            yield from (Shape(kind, dtype, 1, num_rows, inner, columns) for kind in kinds)
            yield Shape("forward", "float32", 1, DECODING_ROWS, inner, columns)
        if isinstance(module, Experts):
            yield from _expert_shapes(module, config, dtype, num_rows, group)
    columns, inner = model.softmax_weight.shape
    num_rows = min(num_rows, 1 << nearest_power(chunk_rows(columns, on_gpu=False)))
    yield from (Shape(kind, dtype, 1, num_rows, inner, columns) for kind in SINGLE)
    yield Shape("cross_entropy", dtype, 1, num_rows, 1, columns)
    yield Shape("forward", "float32", 1, DECODING_ROWS, inner, columns)


def _expert_shapes(
    experts: Experts, config: ModelConfig, dtype: str, num_rows: int, group: int
) -> Iterator[Shape]:
    number, choices = config.num_experts // group, config.experts_per_token
    for _, inner, columns in (experts.wi.shape, experts.wo.shape):
        yield from (Shape(kind, dtype, number, choices * num_rows, inner, columns) for kind in EXPERTS)
        yield Shape("experts_forward", "float32", number, DECODING_ROWS, inner, columns)
    yield Shape("expert_activation", dtype, 1, choices * num_rows, 1, config.d_ff)


def _operations(module: nn.Module, config: ModelConfig, dtype: str, num_rows: int) -> Iterator[Shape]:
    """Yield the shapes of what a module computes besides products."""
    if isinstance(module, RMSNorm):
        yield Shape("rms_norm", dtype, 1, num_rows, config.d_model, config.d_model)
    if isinstance(module, GatedFeedForward):
        yield Shape("gated_gelu", dtype, 1, num_rows, 1, module.wo.in_features)
    if isinstance(module, Dropout) and module.rate:
        yield Shape("dropout", dtype, 1, num_rows, 1, config.d_model)
    if isinstance(module, Attention) and config.top_only:
        # Where source and target are in one attention, it is torch's.
        sizes = (config.num_heads, num_rows, config.resolved_head_dim)
        yield from (Shape("attention", dtype, *sizes, length) for length in SENTENCE_LENGTHS)


def to_record(products: Products) -> dict[str, Any]:
    """Return what run.json says of the products under `kernels`."""
    ways = {str(shape): way for shape, way in products.ways.items()}
    return {"machine": machine(), "native": fingerprint(), "ways": ways}


def recorded_products(kernels: Mapping[str, Any] | None) -> Products:
    """Return the products that a run was trained with, of its record's `kernels`; torch's own if None."""
    if kernels is None:
        return TORCH
    ways = {Shape.parse(text): way for text, way in kernels["ways"].items()}
    # Older versions had kinds that are computed otherwise now.
    return Products(ways={shape: way for shape, way in ways.items() if shape.kind in WAYS})


def check_ways(record: RunRecord) -> None:
    """Check that this machine has the ways that a run's products take, or would take others in silence.

    Operations in C++ that were compiled otherwise, as after an update of the compiler, round otherwise. That
    is said, and no more, since no other machine may be able to continue the run.

    Raises:
        RunError: If it lacks one.
    """
    if record.kernels is None:
        return
    ways = recorded_products(record.kernels).ways
    if lacking := next((way for shape, way in ways.items() if not can_take(way, shape)), None):
        raise RunError(
            f"{record.run}: its products are computed {_lacked(lacking)}; "
            f"train it on one like {record.kernels['machine']}, or remove its folder to train anew"
        )
    if "native" in ways.values() and record.kernels.get("native", fingerprint()) != fingerprint():
        _log.warning("%s: its operations in C++ were compiled anew; last digits may differ", record.run)


def _lacked(way: str) -> str:
    """Return a way that this machine lacks, and why it does."""
    if way == "native" and (reason := why_missing()):
        return f"in C++, which this machine cannot: {reason}"
    return f"by {way}, which this machine lacks"


def products_to_translate(record: RunRecord) -> Products:
    """Return the ways of a loaded run's products: those of its record, or else those measured here before."""
    return cached_products() if record.kernels is None else recorded_products(record.kernels)

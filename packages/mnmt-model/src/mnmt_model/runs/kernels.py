"""The ways of a run's matrix products: which shapes a model has, what was measured, what its record says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from mnmt_model.errors import RunError
from mnmt_model.runs.run_record import RunRecord
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.experts.layer import Experts
from mnmt_model.transformer.loss import chunk_rows
from mnmt_model.transformer.model_config import ModelConfig
from mnmt_model.transformer.products import (
    SINGLE,
    TORCH,
    Kind,
    Products,
    Shape,
    cached_products,
    can_take,
    machine,
    measured_products,
)
from mnmt_model.transformer.translation_model import TranslationModel

DECODING_ROWS = 64
"""Hypotheses that translation continues at a time, about."""


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
        model = build_model(config, vocab_size)
    tokens = max(1, train.batch_tokens // (train.accumulation * processes))
    shapes = product_shapes(
        model,
        train.precision,
        tokens=tokens,
        capacity_factor=config.capacity_factor,
        group=train.expert_parallel,
    )
    return measured_products(list(dict.fromkeys(shapes)))


def product_shapes(
    model: TranslationModel, dtype: str, *, tokens: int, capacity_factor: float, group: int = 1
) -> Iterator[Shape]:
    """Yield the shapes of a model's products in training and in translation, some of them repeatedly.

    Numbers of rows are powers of two, so that batches of about equal size have the same shapes.

    Args:
        model: The model, whose weights may be on the meta device.
        dtype: Precision of the states in training; models translate in float32.
        tokens: Source and target tokens that are computed at a time.
        capacity_factor: See `ModelConfig`.
        group: The processes that hold the experts together.
    """
    config = model.config
    num_rows = _power_of_two(tokens if config.is_language_model else tokens / 2)
    kinds: tuple[Kind, ...] = (*SINGLE, "linear")
    for module in model.modules():
        if isinstance(module, nn.Linear) and hasattr(module, "products"):
            columns, inner = module.weight.shape
            yield from (Shape(kind, dtype, 1, num_rows, inner, columns) for kind in kinds)
            yield Shape("forward", "float32", 1, DECODING_ROWS, inner, columns)
        for names in getattr(module, "joint_maps", ()):
            weights = [getattr(module, name).weight for name in names]
            columns, inner = sum(map(len, weights)), weights[0].size(1)
            yield from (Shape(kind, dtype, 1, num_rows, inner, columns) for kind in kinds)
            yield Shape("forward", "float32", 1, DECODING_ROWS, inner, columns)
        if isinstance(module, Experts):
            number = config.num_experts // group
            slots = config.expert_capacity(num_rows * group, capacity_factor)
            for _, inner, columns in (module.wi.shape, module.wo.shape):
                yield Shape("experts", dtype, number, _power_of_two(slots), inner, columns)
                yield Shape("ragged", "float32", number, DECODING_ROWS, inner, columns)
                yield Shape("ragged", dtype, number, 2 * num_rows, inner, columns)
    columns, inner = model.softmax_weight.shape
    num_rows = min(num_rows, _power_of_two(chunk_rows(columns, on_gpu=False)))
    yield from (Shape(kind, dtype, 1, num_rows, inner, columns) for kind in SINGLE)
    yield Shape("forward", "float32", 1, DECODING_ROWS, inner, columns)


def _power_of_two(number: float) -> int:
    """Return the nearest power of two."""
    return 1 << (max(1, round(number)) ** 2).bit_length() // 2


def to_record(products: Products) -> dict[str, Any]:
    """Return what run.json says of the products under `kernels`."""
    return {"machine": machine(), "ways": {str(shape): way for shape, way in products.ways.items()}}


def recorded_products(kernels: Mapping[str, Any] | None) -> Products:
    """Return the products that a run was trained with, of its record's `kernels`; torch's own if None."""
    if kernels is None:
        return TORCH
    return Products(ways={Shape.parse(text): way for text, way in kernels["ways"].items()})


def products_to_train(record: RunRecord, train: TrainConfig, *, processes: int) -> Products:
    """Return the ways that a run's products take: those that it began with, or else the fastest here.

    Args:
        record: The run's record.
        train: How it is trained.
        processes: The processes that train it together.

    Raises:
        RunError: If the run began with ways that this machine lacks.
    """
    if record.kernels is None:
        return training_products(record.model, record.vocab_size, train, processes=processes)
    products = recorded_products(record.kernels)
    if lacking := next((way for shape, way in products.ways.items() if not can_take(way, shape)), None):
        raise RunError(
            f"{record.run}: its products were computed by {lacking}, which this machine lacks; "
            f"resume it on one like {record.kernels['machine']}, or remove its folder to train anew"
        )
    return products


def products_to_translate(record: RunRecord) -> Products:
    """Return the ways of a loaded run's products: those of its record, or else those measured here before."""
    return cached_products() if record.kernels is None else recorded_products(record.kernels)

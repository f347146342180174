"""Measurements of products that tests make up, in this process or in those that train together."""

import os
from collections.abc import Collection
from pathlib import Path

from mnmt_model import RunConfig, train
from mnmt_model.training import initial_model
from mnmt_model.transformer.products import Products, Shape, cache
from mnmt_model.transformer.products.ways import WAYS, can_take


def last_ways(shapes: Collection[Shape]) -> dict[Shape, str]:
    """Return the last way of each shape that this machine can take."""
    return {
        shape: next(way for way in reversed(WAYS[shape.kind]) if can_take(way, shape)) for shape in shapes
    }


def pretend(shapes: Collection[Shape], **_: object) -> dict[Shape, dict[str, float]]:
    """Measure that the last ways are fast."""
    ways = last_ways(shapes)
    return {shape: {**dict.fromkeys(WAYS[shape.kind], 2.0), way: 1.0} for shape, way in ways.items()}


def train_with_cache_of_rank(run: RunConfig, folder: Path, out: Path) -> None:
    """Train with a cache of this rank's own, in which products differ, and write down the model's."""
    rank = os.environ["RANK"]
    os.environ["XDG_CACHE_HOME"] = str(out / f"cache{rank}")
    if rank == "0":
        cache.measure = pretend  # type: ignore[assignment]
    build = initial_model.build_model

    def spy(*args: object, products: Products, **options: object) -> object:
        (out / f"products{rank}").write_text(repr(products))
        return build(*args, products=products, **options)  # type: ignore[arg-type]

    initial_model.build_model = spy  # type: ignore[assignment]
    train(run, folder)

"""Matrix products: the ways to compute them, the table of which way a shape takes, and its measurement."""

from mnmt_model.transformer.products.cache import cache_file, cached_products, machine, measured_products
from mnmt_model.transformer.products.table import TORCH, Products, round_rows
from mnmt_model.transformer.products.ways import SINGLE, Kind, Shape, can_take

__all__ = [
    "SINGLE",
    "TORCH",
    "Kind",
    "Products",
    "Shape",
    "cache_file",
    "cached_products",
    "can_take",
    "machine",
    "measured_products",
    "round_rows",
]

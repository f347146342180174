"""Matrix products: the ways to compute them, the table of which way a shape takes, and its measurement."""

from mnmt_model.transformer.products.cache import cached_products, measured_products
from mnmt_model.transformer.products.measurement import Work
from mnmt_model.transformer.products.onednn import round_rows
from mnmt_model.transformer.products.table import TORCH, Products
from mnmt_model.transformer.products.ways import SINGLE, Kind, Shape, can_take, nearest_power

__all__ = [
    "SINGLE",
    "TORCH",
    "Kind",
    "Products",
    "Shape",
    "Work",
    "cached_products",
    "can_take",
    "measured_products",
    "nearest_power",
    "round_rows",
]

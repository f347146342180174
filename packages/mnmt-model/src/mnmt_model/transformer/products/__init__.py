"""Matrix products: the ways to compute them, the table of which way a shape takes, and its measurement."""

from mnmt_model.transformer.products.cache import cached_products, measured_products
from mnmt_model.transformer.products.experts import torch_experts_product
from mnmt_model.transformer.products.measurement import Work
from mnmt_model.transformer.products.table import TORCH, Products
from mnmt_model.transformer.products.ways import EXPERTS, SINGLE, WAYS, Kind, Shape, can_take, nearest_power

__all__ = [
    "EXPERTS",
    "SINGLE",
    "TORCH",
    "WAYS",
    "Kind",
    "Products",
    "Shape",
    "Work",
    "cached_products",
    "can_take",
    "measured_products",
    "nearest_power",
    "torch_experts_product",
]

"""The peak FLOP/s of a device, the denominator of the model FLOPs utilisation (MFU)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import torch

DATA_SHEET = {
    "A100": 312e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H200 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
}
"""{part of the device's name: NVIDIA's dense bfloat16 FLOP/s}; the first match applies."""

SECONDS = 0.1
SMALLEST, LARGEST = 256, 4096
PRODUCTS = 4


def peak_flops(device: torch.device, dtype: torch.dtype) -> float | None:
    """Return the peak FLOP/s of `device` in `dtype`; None if it cannot be measured.

    For a known GPU in bfloat16 it is the data sheet's value without sparsity, as usual in the field.
    Otherwise it is measured once a process, in about a tenth of a second: the rate of a large matrix product
    with torch's current threads and precision of matrix products (TF32 or not).
    """
    if device.type == "cuda":
        known = data_sheet_peak(torch.cuda.get_device_name(device), dtype)
        if known is not None:
            return known
    return _measured_peak(device, dtype, torch.get_num_threads(), torch.get_float32_matmul_precision())


def data_sheet_peak(name: str, dtype: torch.dtype) -> float | None:
    """Return the dense FLOP/s that NVIDIA states for the GPU `name` in `dtype`; None if not in the table."""
    if dtype != torch.bfloat16 or "MIG" in name:
        return None
    return next((peak for part, peak in DATA_SHEET.items() if part in name), None)


def fastest_rate(time_product: Callable[[int], float], *, seconds: float = SECONDS) -> float:
    """Return the highest rate, 2n³ / time of a product, over increasing n that fit into `seconds`.

    Args:
        time_product: Returns the mean seconds of a product of two (n, n) matrices, after `PRODUCTS` runs of
            it.
        seconds: Total time to spend; only the smallest size may exceed it.

    Returns:
        FLOP/s.
    """
    rate, spent, size = 0.0, 0.0, SMALLEST
    while True:
        duration = time_product(size)
        rate = max(rate, 2 * size**3 / duration)
        spent += PRODUCTS * duration
        size *= 2
        if size > LARGEST or spent + PRODUCTS * 8 * duration > seconds:
            return rate


@cache
def _measured_peak(
    device: torch.device, dtype: torch.dtype, threads: int, matmul_precision: str
) -> float | None:
    try:
        return fastest_rate(lambda size: _time_product(device, dtype, size))
    except RuntimeError:  # out of memory, or no product in this dtype: training can do without
        return None


@torch.no_grad()
def _time_product(device: torch.device, dtype: torch.dtype, size: int) -> float:
    # A separate generator does not change the random numbers of training.
    generator = torch.Generator(device).manual_seed(0)
    a, b = torch.randn(2, size, size, generator=generator, device=device).to(dtype)
    out = torch.mm(a, b)
    synchronize(device)
    since = time.perf_counter()
    for _ in range(PRODUCTS - 1):
        torch.mm(a, b, out=out)
    synchronize(device)
    return (time.perf_counter() - since) / (PRODUCTS - 1)


def synchronize(device: torch.device) -> None:
    """Wait until `device` has finished its work."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)

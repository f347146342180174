import pytest
import torch

from mnmt_model.training import mfu
from mnmt_model.training.mfu import data_sheet_peak, fastest_rate, peak_flops

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", 835e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA H200 NVL", 835e12),
        ("NVIDIA GH200 480GB", 989e12),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_bfloat16_peaks_of_known_gpus(name: str, peak: float | None) -> None:
    assert data_sheet_peak(name, torch.bfloat16) == peak


def test_the_rate_of_the_largest_product_that_fits_into_the_time() -> None:
    # 1 ms to launch, then 10 GFLOP/s: 256 takes 4.36 ms, 512 27.8 ms, 1024 215.75 ms; each is run four times.
    tried = []

    def time_product(size: int) -> float:
        tried.append(size)
        return 1e-3 + 2 * size**3 / 10e9

    assert fastest_rate(time_product, seconds=1.1) == pytest.approx(2 * 1024**3 / 0.21575, rel=1e-3)
    assert tried == [256, 512, 1024]


def test_a_slow_device_is_asked_for_one_small_product() -> None:
    tried = []

    def time_product(size: int) -> float:
        tried.append(size)
        return 2.0

    assert fastest_rate(time_product, seconds=0.1) == 256**3
    assert tried == [256]


def test_measuring_leaves_the_random_numbers_of_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mfu, "LARGEST", 256)
    mfu._measured_peak.cache_clear()
    before = torch.get_rng_state()
    peak = peak_flops(CPU, torch.float32)
    assert peak is not None
    assert peak > 0
    assert torch.equal(torch.get_rng_state(), before)
    assert peak_flops(CPU, torch.float32) == peak  # Measured once.

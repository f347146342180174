"""The emulator finds the mistakes for which it was written, and runs the kernels of the gate."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gate_calls import check_backward, check_forward, make_call
from torch import Tensor

THREADS = torch.arange(64, dtype=torch.int32)


def run(kernels: Any, kernel: str, *, blocks: int = 1) -> Tensor:
    out = torch.zeros(65, dtype=torch.int32)
    kernels.call(f"run_{kernel}", blocks, out)
    return out[:64]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("half_a_warp_votes", r"^divergence: thread \d+ waits for its warp in vain; thread \d+ has ended\.$"),
        (
            "one_thread_misses_the_barrier",
            r"^divergence: thread \d+ waits for its block in vain; thread 5 has ended\.$",
        ),
        (
            "lanes_call_different_collectives",
            r"^divergence: thread 0 waits for its warp in vain; thread 1 waits for its warp",
        ),
    ],
)
def test_divergence(kernels: Any, kernel: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        run(kernels, kernel)


@pytest.mark.parametrize(
    "kernel",
    ["block_does_not_wait", "block_waits_by_warps", "warp_shuffles", "counts", "reads_an_atomic_count"],
)
def test_races(kernels: Any, kernel: str) -> None:
    with pytest.raises(RuntimeError, match=r"^race: thread \d+ of block 0 (reads|writes|adds to)"):
        run(kernels, kernel)


def test_a_barrier_orders_a_block(kernels: Any) -> None:
    assert torch.equal(run(kernels, "block_waits"), (THREADS + 1) % 64)


def test_a_barrier_of_a_warp_orders_a_warp(kernels: Any) -> None:
    assert torch.equal(run(kernels, "warp_waits"), THREADS // 32 * 32 + (THREADS + 1) % 32)


def test_nothing_orders_blocks(kernels: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^race: thread 0 of block 1 writes"):
        run(kernels, "block_waits", blocks=2)


def test_atomics_need_no_order(kernels: Any) -> None:
    assert run(kernels, "counts_atomically", blocks=3)[0] == 3 * 64


def test_an_overflow(kernels: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^overflow: a signed integer, at faulty\.cpp:\d+\.$"):
        run(kernels, "multiplies_in_int32")


def test_the_kernels_of_the_gate_agree_with_their_definition(kernels: Any) -> None:
    """One call of many in `test_gate.py`, which is slow."""
    call = make_call((2, 9, 40), second_expert_policy="random", biased=True)
    check_forward(kernels, call)
    check_backward(kernels, call)

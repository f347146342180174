"""The emulator finds the mistakes for which it was written, and runs the kernels of the gate."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gate_calls import check_backward, check_forward, make_call
from torch import Tensor

# In the order of faulty.cpp.
(
    HALF_A_WARP_VOTES,
    MISSED_BARRIER,
    DIFFERENT_COLLECTIVES,
    BLOCK_DOES_NOT_WAIT,
    BLOCK_WAITS_BY_WARPS,
    BLOCK_WAITS,
    WARP_SHUFFLES,
    WARP_WAITS,
    COUNTS,
    COUNTS_ATOMICALLY,
    READS_AN_ATOMIC_COUNT,
    MULTIPLIES_IN_INT32,
) = range(12)
THREADS = torch.arange(64, dtype=torch.int32)


def run(kernels: Any, which: int, *, blocks: int = 1) -> Tensor:
    out = torch.zeros(65, dtype=torch.int32)
    kernels.call("run_faulty", which, blocks, out)
    return out[:64]


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (HALF_A_WARP_VOTES, r"^divergence: thread \d+ waits for its warp in vain; thread \d+ has ended\.$"),
        (MISSED_BARRIER, r"^divergence: thread \d+ waits for its block in vain; thread 5 has ended\.$"),
        (
            DIFFERENT_COLLECTIVES,
            r"^divergence: thread 0 waits for its warp in vain; thread 1 waits for its warp",
        ),
    ],
)
def test_divergence(kernels: Any, which: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        run(kernels, which)


@pytest.mark.parametrize(
    "which", [BLOCK_DOES_NOT_WAIT, BLOCK_WAITS_BY_WARPS, WARP_SHUFFLES, COUNTS, READS_AN_ATOMIC_COUNT]
)
def test_races(kernels: Any, which: int) -> None:
    with pytest.raises(RuntimeError, match=r"^race: thread \d+ of block 0 (reads|writes|adds to)"):
        run(kernels, which)


def test_a_barrier_orders_a_block(kernels: Any) -> None:
    assert torch.equal(run(kernels, BLOCK_WAITS), (THREADS + 1) % 64)


def test_a_barrier_of_a_warp_orders_a_warp(kernels: Any) -> None:
    assert torch.equal(run(kernels, WARP_WAITS), THREADS // 32 * 32 + (THREADS + 1) % 32)


def test_nothing_orders_blocks(kernels: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^race: thread 0 of block 1 writes"):
        run(kernels, BLOCK_WAITS, blocks=2)


def test_atomics_need_no_order(kernels: Any) -> None:
    assert run(kernels, COUNTS_ATOMICALLY, blocks=3)[0] == 3 * 64


def test_an_overflow(kernels: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^overflow: a signed integer, at faulty\.cpp:\d+\.$"):
        run(kernels, MULTIPLIES_IN_INT32)


def test_the_kernels_of_the_gate_agree_with_their_definition(kernels: Any) -> None:
    """One call of many in `test_gate.py`, which is slow."""
    call = make_call((2, 9, 40), second_expert_policy="random", biased=True)
    check_forward(kernels, call)
    check_backward(kernels, call)

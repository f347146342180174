"""The emulator finds the mistakes for which it was written, and runs the kernels of the gate."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from gate_calls import check_backward, check_forward, make_call
from torch import Tensor

HALF_A_WARP_VOTES, MISSED_BARRIER, DIFFERENT_COLLECTIVES, RACE, NO_RACE = range(5)


def run(kernels: Any, which: int, order: int = 0) -> Tensor:
    out = torch.full((64,), -1, dtype=torch.int32)
    kernels.library.set_order(ctypes.c_int64(order))
    kernels.call("run_faulty", which, out)
    return out


@pytest.mark.parametrize("order", [0, 1, 20])
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
def test_divergence(kernels: Any, which: int, message: str, order: int) -> None:
    with pytest.raises(RuntimeError, match=message):
        run(kernels, which, order)


def test_a_race_depends_on_the_order_of_threads(kernels: Any) -> None:
    assert not torch.equal(run(kernels, RACE, order=0), run(kernels, RACE, order=1))


def test_threads_that_wait_do_not_race(kernels: Any) -> None:
    expected = (torch.arange(64, dtype=torch.int32) + 1) % 64
    for order in (0, 1, 20):
        assert torch.equal(run(kernels, NO_RACE, order), expected)


def test_the_kernels_of_the_gate_agree_with_their_definition(kernels: Any) -> None:
    """One call of many in `test_gate.py`, which is slow."""
    call = make_call((2, 9, 40), second_expert_policy="random", biased=True)
    check_forward(kernels, call)
    check_backward(kernels, call)

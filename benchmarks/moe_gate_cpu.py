"""The compiled top-2 gate against its plain-torch definition, on the CPU, in one run.

Prints the best time of a forward pass and of a forward with a backward pass at several sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from mnmt_moe_ext import Routing, build_info, expert_capacity, reference_top2_gate, top2_gate

SIZES = [(1, 1024, 8), (8, 1024, 16), (8, 1024, 64), (4, 2048, 128)]
REPEATS = 15

Gate = Callable[..., Routing]
Run = Callable[[Gate, torch.Tensor, int], None]


def best_milliseconds(run: Run, gate: Gate, logits: torch.Tensor, capacity: int) -> float:
    """The fastest of REPEATS runs, the one that other work on the machine disturbed least."""
    run(gate, logits, capacity)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run(gate, logits, capacity)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def forward(gate: Gate, logits: torch.Tensor, capacity: int) -> None:
    """Routes without recording for autograd."""
    with torch.no_grad():
        gate(logits, capacity=capacity)


def forward_backward(gate: Gate, logits: torch.Tensor, capacity: int) -> None:
    """Routes and differentiates through the weights and the loss."""
    routing = gate(logits, capacity=capacity)
    torch.autograd.grad(routing.weights.square().sum() + routing.auxiliary_loss, logits)


def measure(groups: int, tokens: int, num_experts: int, dtype: torch.dtype) -> None:
    """Prints one line a pass for one size."""
    logits = torch.randn(groups, tokens, num_experts, dtype=dtype, requires_grad=True)
    capacity = expert_capacity(num_tokens=tokens, num_experts=num_experts)
    for name, run in (("forward", forward), ("forward + backward", forward_backward)):
        ours = best_milliseconds(run, top2_gate, logits, capacity)
        reference = best_milliseconds(run, reference_top2_gate, logits, capacity)
        size = f"{groups} x {tokens} x {num_experts}"
        kind = str(dtype).removeprefix("torch.")
        print(f"{size:>19}  {kind:>8}  {name:<18} {ours:9.2f} {reference:14.2f} {reference / ours:6.1f}")


def main() -> None:
    """Prints the table."""
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {build_info().compiler}")
    print(f"{'groups x tokens x E':>19}    logits  {'pass':<18}  ours, ms  reference, ms  times")
    for dtype in (torch.float32, torch.bfloat16):
        for size in SIZES:
            measure(*size, dtype)


if __name__ == "__main__":
    main()

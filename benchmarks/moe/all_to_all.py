"""Experts spread over processes: the exchange of their rows and back, checked and timed on every rank.

The experts return what they get, so that the result must be the buffers and the time is the exchange's, with
its gradient. Over NCCL, a GPU a process, or over gloo on a CPU. GB/s are those a rank sends to others.

    torchrun --standalone --nproc-per-node 2 -m benchmarks.moe.all_to_all \
        --out benchmarks/results/moe/all_to_all.json
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import cyclopts
import torch
import torch.distributed as dist

from benchmarks.moe.report import described
from mnmt_moe_ext import apply_experts


def main(
    *,
    experts_per_rank: int = 8,
    rows: int = 1024,
    d_model: int = 1024,
    chunks: tuple[int, ...] = (1, 2, 4),
    rounds: int = 20,
    out: Path | None = None,
) -> None:
    """Print a line for each number of chunks.

    Args:
        experts_per_rank: Number of them.
        rows: Of each expert, from one rank.
        d_model: Width, in bfloat16.
        chunks: Into which the rows are cut.
        rounds: Timed, after three that are not.
        out: File for the figures.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    ranks = dist.get_world_size()
    buffers = torch.randn(ranks * experts_per_rank, rows, d_model, device=device).bfloat16().requires_grad_()
    found = {count: figures(buffers, chunks=count, rounds=rounds) for count in chunks}
    if dist.get_rank() == 0:
        for count, each in found.items():
            print(f"{ranks} ranks, {count} chunks: {each}")
        if out:
            report = described(device) | {"ranks": ranks, "shape": list(buffers.shape), "chunks": found}
            out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    dist.destroy_process_group()


def figures(buffers: torch.Tensor, *, chunks: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of a forward and backward pass, and the bandwidth.

    Raises:
        RuntimeError: The rows did not come back as they were.
    """
    group = dist.group.WORLD
    assert group is not None
    seconds = []
    for _ in range(3 + rounds):
        synchronize(buffers)
        start = time.perf_counter()
        outputs = apply_experts(torch.clone, buffers, group=group, num_chunks=chunks)
        (gradient,) = torch.autograd.grad(outputs, buffers, buffers.detach())
        synchronize(buffers)
        seconds.append(time.perf_counter() - start)
    if not (torch.equal(outputs, buffers) and torch.equal(gradient, buffers)):
        raise RuntimeError("rows did not come back as they were")
    sent = 4 * buffers.numel() * buffers.element_size() * (1 - 1 / group.size())
    middle = median(seconds[3:])
    return {"median_ms": round(1000 * middle, 3), "gb_per_second": round(sent / middle / 1e9, 2)}


def synchronize(buffers: torch.Tensor) -> None:
    """Wait for all ranks and this rank's GPU."""
    dist.barrier()
    if buffers.device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    cyclopts.run(main)

"""The exchange of experts' rows between processes and back, checked and timed on every rank.

Claim: the bandwidth of the exchange, and how far chunks slow it down. No peer. No page cites it yet.

The experts return their inputs, so that the result must equal the buffers, and the time is that of the
exchange with its gradient. It runs over NCCL, a GPU a process, or over gloo on a CPU. GB/s are those that a
rank sends to others. Without torchrun, the benchmark starts its own ranks.

    torchrun --standalone --nproc-per-node 2 -m benchmarks.moe.all_to_all --out
    benchmarks/results/moe/all_to_all.json
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from statistics import median

import torch
import torch.distributed as dist

from benchmarks.measurement import Counts, Figures, Out, print_table, provenance, run, write_report
from mnmt_moe_ext import apply_experts


def main(
    *,
    experts_per_rank: int = 8,
    rows: int = 1024,
    d_model: int = 1024,
    chunks: Counts = (1, 2, 4),
    rounds: int = 20,
    ranks: int = 2,
    out: Out = None,
) -> None:
    """Print a row for each number of chunks.

    Args:
        experts_per_rank: Experts of each rank.
        rows: Rows of each expert, from one rank.
        d_model: Width of the rows, in bfloat16.
        chunks: Numbers of chunks into which the rows are split.
        rounds: Timed rounds, after three that do not count.
        ranks: Processes to start, without torchrun.
        out: JSON file for the figures.
    """
    if "RANK" not in os.environ:
        start_ranks(ranks)
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    ranks = dist.get_world_size()
    buffers = torch.randn(ranks * experts_per_rank, rows, d_model, device=device).bfloat16().requires_grad_()
    figures = [{"chunks": count, **measure(buffers, chunks=count, rounds=rounds)} for count in chunks]
    if dist.get_rank() == 0:
        print_table(figures)
        report = {"ranks": ranks, "shape": list(buffers.shape), "results": figures}
        description = provenance("mnmt-moe-ext", "torch", gpu=device == "cuda")
        write_report(out, "exchange of experts' rows between ranks", report, description)
    dist.destroy_process_group()


def start_ranks(ranks: int) -> None:
    """Start this program once a rank, with its own options."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    subprocess.run([*command, "-m", "benchmarks.moe.all_to_all", *sys.argv[1:]], check=True)


def measure(buffers: torch.Tensor, *, chunks: int, rounds: int) -> Figures:
    """Return the milliseconds of a forward and backward pass, and the bandwidth.

    Raises:
        RuntimeError: The rows came back changed.
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
        raise RuntimeError("the rows came back changed")
    sent = 4 * buffers.numel() * buffers.element_size() * (1 - 1 / group.size())
    middle = median(seconds[3:])
    return {"median_ms": round(1000 * middle, 3), "gb_per_second": round(sent / middle / 1e9, 2)}


def synchronize(buffers: torch.Tensor) -> None:
    """Wait for all ranks and this rank's GPU."""
    dist.barrier()
    if buffers.device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    smoke = {"experts_per_rank": 2, "rows": 8, "d_model": 16, "chunks": (1, 2), "rounds": 2}
    run(main, smoke=smoke)

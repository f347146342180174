"""One of the processes of which rank 1 fails: failing_rank.py FOLDER RANK RANKS HOW."""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from mnmt_moe_ext import apply_experts

SHORT, LONG = timedelta(seconds=3), timedelta(minutes=10)


class Failing(torch.autograd.Function):
    """Experts that change nothing, and fail at the second chunk or in the backward pass."""

    calls = 0

    @staticmethod
    def forward(ctx: object, rows: Tensor, how: str) -> Tensor:
        Failing.calls += 1
        if how == "exit" and Failing.calls == 2:
            os._exit(9)
        if how == "sleep":
            time.sleep(LONG.total_seconds())
        return rows.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None]:
        raise ArithmeticError("the experts failed")


def main(folder: Path, rank: int, ranks: int, how: str) -> None:
    dist.init_process_group(
        "gloo",
        init_method=(folder / "store").as_uri(),
        rank=rank,
        world_size=ranks,
        timeout=LONG,
    )
    group = dist.new_group(timeout=SHORT if how == "sleep" else LONG)
    buffers = torch.ones(ranks, 3, 2, requires_grad=True)
    outputs = apply_experts(
        lambda rows: Failing.apply(rows, how) if rank == 1 else rows * 2,
        buffers,
        group=group,
        num_chunks=3,
    )
    outputs.sum().backward()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])

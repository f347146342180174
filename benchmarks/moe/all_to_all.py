"""A layer's exchange of tokens between processes, by slots and by tokens, checked and timed on every rank.

Claim: with twice as many slots as rows of tokens, it is quicker to send tokens. No peer. Cited in
docs/moe/scaling-out.md.

Tokens are routed at random, brought to their experts on all ranks and combined, with the gradient. The
experts return their inputs, so that the time is that of the exchange, and every rank knows the result. Ways
take turns. It runs over NCCL, a GPU a process, or over gloo on a CPU. GB/s are those that a rank sends to
others. Without torchrun, the benchmark starts its own ranks.

    torchrun --standalone --nproc-per-node 2 -m benchmarks.moe.all_to_all --out
    benchmarks/results/moe/all_to_all.json
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.measurement import (
    Counts,
    Figures,
    Numbers,
    Out,
    print_table,
    provenance,
    ratios,
    run,
    write_report,
)
from mnmt_moe_ext import (
    Layout,
    Routing,
    apply_experts,
    apply_experts_to_tokens,
    combine,
    dispatch,
    expert_capacity,
    route,
)

UNTIMED_ROUNDS = 3
WAY_OF_TOKENS = "tokens, chunks: 1"


@dataclass(frozen=True)
class Layer:
    """The tokens of this rank, and where they go."""

    tokens: Tensor
    """(1, tokens, d_model) bfloat16."""
    routing: Routing
    layout: Layout
    group: dist.ProcessGroup

    @property
    def rows_of_slots(self) -> int:
        """The rows that leave for other ranks if slots travel."""
        return self.layout.bin_size * self.layout.num_experts * (self.group.size() - 1) // self.group.size()

    @property
    def rows_of_tokens(self) -> int:
        """The rows that leave for other ranks if tokens travel."""
        routing, size = self.routing, self.group.size()
        ranks = routing.experts // (self.layout.num_experts // size)
        others = [rank for rank in range(size) if rank != self.group.rank()]
        return sum(int(((ranks == rank) & (routing.slots >= 0)).any(dim=-1).sum()) for rank in others)

    def exchange_slots(self, num_chunks: int) -> Tensor:
        """Return the combined outputs."""
        buffers = dispatch(self.tokens, self.layout)
        outputs = apply_experts(torch.clone, buffers, group=self.group, num_chunks=num_chunks)
        return combine(outputs, self.routing.weights, self.layout)

    def exchange_tokens(self, num_chunks: int) -> Tensor:
        """Return the combined outputs."""
        return apply_experts_to_tokens(
            lambda rows, ends: rows.clone(),
            self.tokens,
            self.routing,
            group=self.group,
            num_chunks=num_chunks,
        )


def main(
    *,
    experts_per_rank: int = 8,
    tokens: int = 4096,
    d_model: int = 1024,
    top_k: Counts = (1, 2, 8),
    capacity_factors: Numbers = (1.0, 2.0, 4.0),
    chunks: Counts = (1, 2, 4),
    rounds: int = 20,
    ranks: int = 2,
    out: Out = None,
) -> None:
    """Print a row for each way of sending tokens with `top_k` choices at each capacity factor.

    Args:
        experts_per_rank: Experts of each rank.
        tokens: Tokens of each rank.
        d_model: Width of a token, in bfloat16.
        top_k: Numbers of choices of a token.
        capacity_factors: Slots of an expert as multiples of its fair share of all choices.
        chunks: Numbers of chunks, from 1 on.
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
    torch.manual_seed(dist.get_rank())
    states = torch.randn(1, tokens, d_model, device=device).bfloat16().requires_grad_()
    figures = [
        {"top_k": count, "capacity_factor": factor, **row}
        for count in top_k
        for factor in capacity_factors
        for row in measure(make_layer(states, experts_per_rank, count, factor), chunks, rounds=rounds)
    ]
    if dist.get_rank() == 0:
        print_table(figures)
        shape = {"ranks": dist.get_world_size(), "experts_per_rank": experts_per_rank}
        report = {**shape, "shape": list(states.shape), "results": figures}
        description = provenance("mnmt-moe-ext", "torch", gpu=device == "cuda")
        write_report(out, "exchange of tokens between ranks, by slots and by tokens", report, description)
    dist.destroy_process_group()


def start_ranks(ranks: int) -> None:
    """Start this program once a rank, with its own options."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    subprocess.run([*command, "-m", "benchmarks.moe.all_to_all", *sys.argv[1:]], check=True)


def make_layer(states: Tensor, experts_per_rank: int, top_k: int, capacity_factor: float) -> Layer:
    """Route tokens to experts that are about equally often chosen."""
    group = dist.group.WORLD
    assert group is not None
    tokens, num_experts = states.shape[1], experts_per_rank * group.size()
    capacity = expert_capacity(
        num_tokens=tokens, num_experts=num_experts, capacity_factor=top_k * capacity_factor
    )
    logits = torch.randn(1, tokens, num_experts, device=states.device)
    return Layer(states, *route(logits, layout="capacity", top_k=top_k, capacity=capacity), group)


def measure(layer: Layer, chunks: Counts, *, rounds: int) -> list[Figures]:
    """Time all ways of a forward and backward pass in turns; return a row for each.

    Raises:
        AssertionError: An exchange changed the tokens or their gradient.
    """
    exchanges = {"slots": layer.exchange_slots, "tokens": layer.exchange_tokens}
    ways: dict[str, Callable[[], Tensor]] = {
        f"{what}, chunks: {count}": partial(exchange, count)
        for what, exchange in exchanges.items()
        for count in chunks
    }
    expected = differentiated(lambda: combine(*local_outputs(layer)), layer.tokens)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(UNTIMED_ROUNDS + rounds):
        for way, exchange in ways.items():
            synchronize(layer.tokens)
            start = time.perf_counter()
            results = differentiated(exchange, layer.tokens)
            synchronize(layer.tokens)
            seconds[way].append(time.perf_counter() - start)
            # The sums of each rank are rounded to bfloat16.
            torch.testing.assert_close(results, expected, rtol=0.02, atol=0.02)
    timed = {way: times[UNTIMED_ROUNDS:] for way, times in seconds.items()}
    return [describe(layer, way, times, timed[WAY_OF_TOKENS]) for way, times in timed.items()]


def local_outputs(layer: Layer) -> tuple[Tensor, Tensor, Layout]:
    """Return what `combine` takes if experts return their inputs."""
    return dispatch(layer.tokens, layer.layout), layer.routing.weights, layer.layout


def differentiated(exchange: Callable[[], Tensor], tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs, and the gradient of the tokens by half their squares."""
    outputs = exchange()
    (gradient,) = torch.autograd.grad(outputs, tokens, outputs.detach())
    return outputs.detach(), gradient


def describe(layer: Layer, way: str, seconds: list[float], of_tokens: list[float]) -> Figures:
    """Return a way's rows to other ranks, its milliseconds, and how many times the whole tokens' it took."""
    rows = layer.rows_of_tokens if way.startswith("tokens") else layer.rows_of_slots
    middle = median(seconds)
    sent = 4 * rows * layer.tokens.shape[-1] * layer.tokens.element_size()
    return {
        "way": way,
        "rows_to_others": rows,
        "median_ms": round(1000 * middle, 3),
        "gb_per_second": round(sent / middle / 1e9, 2),
        **ratios(seconds, of_tokens),
    }


def synchronize(tokens: Tensor) -> None:
    """Wait for all ranks and this rank's GPU."""
    dist.barrier()
    if tokens.device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    smoke = {"experts_per_rank": 2, "tokens": 16, "d_model": 16, "rounds": 2, "top_k": (1, 2)}
    run(main, smoke=smoke | {"capacity_factors": (2.0,), "chunks": (1, 2)})

"""One of the processes that share experts: rank.py FOLDER RANK RANKS.

Reads FOLDER/cases.pt, {name: (function of this file, number of ranks that share experts, arguments)}, and
writes FOLDER/results.RANK.pt, {name: result}.
"""

import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from mnmt_moe_ext import (
    RandomKey,
    apply_experts,
    apply_experts_to_tokens,
    combine,
    dispatch,
    route,
)

Result = dict[str, Any]


def share(tensor: Tensor, group: dist.ProcessGroup) -> Tensor:
    """The part of this rank of the group, along the first dimension, as a leaf."""
    return tensor.chunk(group.size())[group.rank()].clone().requires_grad_(tensor.is_floating_point())


def feed_forward(rows: Tensor, wi: Tensor, wo: Tensor) -> Tensor:
    return torch.bmm(torch.relu(torch.bmm(rows, wi)), wo)


def feed_forward_ragged(rows: Tensor, ends: Tensor, wi: Tensor, wo: Tensor) -> Tensor:
    parts = rows.tensor_split(ends[:-1].tolist())
    return torch.cat([torch.relu(part @ wi[e]) @ wo[e] for e, part in enumerate(parts)])


def routed(
    group: dist.ProcessGroup,
    *,
    tensors: dict[str, Tensor],
    gate: dict[str, Any],
    ragged: bool,
    num_chunks: int,
    recompute: bool,
) -> Result:
    """A mixture-of-experts layer on this rank's groups of tokens, from the gate to the gradients."""
    everyone = dist.group.WORLD
    tokens, logits, padding, token_ids, probe = (
        share(tensors[name], everyone) for name in ("tokens", "logits", "padding", "token_ids", "probe")
    )
    experts = {name: share(tensors[name], group) for name in ("wi", "wo")}
    if gate["second_expert_policy"] != "always":
        gate |= {"random_key": RandomKey.make(seed=1, step=2, layer=3), "token_ids": token_ids}
    routing, layout = route(logits, padding, layout="ragged" if ragged else "capacity", **gate)

    def layer(tokens: Tensor, weights: Tensor) -> Tensor:
        if ragged:
            closed = partial(feed_forward_ragged, **experts)
            weighted = replace(routing, weights=weights)
            return apply_experts_to_tokens(closed, tokens, weighted, group=group, num_chunks=num_chunks)
        closed = partial(feed_forward, **experts)
        buffers = dispatch(tokens, layout)
        outputs = apply_experts(closed, buffers, group=group, num_chunks=num_chunks)
        return combine(outputs, weights, layout)

    arguments = tokens, routing.weights
    combined = checkpoint(layer, *arguments, use_reentrant=False) if recompute else layer(*arguments)
    (combined * probe).sum().backward()
    return {
        "experts": routing.experts,
        "slots": routing.slots,
        "weights": routing.weights.detach(),
        "combined": combined.detach(),
        "tokens.grad": tokens.grad,
        "logits.grad": logits.grad,
        **{f"{name}.grad": weight.grad for name, weight in experts.items()},
    }


def exact(
    group: dist.ProcessGroup,
    *,
    buffers: Tensor,
    scales: Tensor,
    num_chunks: int,
    transposed: bool,
    backwards: int,
) -> Result:
    """Experts that multiply by a number; `buffers` has a first dimension of ranks.

    `transposed`: what the experts return is not contiguous, nor is the gradient that arrives.
    """
    rank = dist.get_rank()
    mine = buffers[rank].clone().requires_grad_()
    scale = share(scales, group)
    seen = []

    def experts(rows: Tensor) -> Tensor:
        seen.append(tuple(rows.shape))
        outputs = rows * scale[:, None, None]
        return outputs.mT.contiguous().mT if transposed else outputs

    outputs = apply_experts(experts, mine, group=group, num_chunks=num_chunks)
    loss = (outputs.mT.contiguous() if transposed else outputs).sum()  # the gradient of a sum is expanded
    for _ in range(backwards):
        loss.backward(retain_graph=True)
    return {"outputs": outputs.detach(), "buffers.grad": mine.grad, "scales.grad": scale.grad, "seen": seen}


class LoggedWork:
    """A collective under way that notes when it is waited for."""

    def __init__(self, log: list[str], name: str, work: dist.Work) -> None:
        self.log, self.name, self.work = log, name, work

    def wait(self) -> bool:
        self.log.append(f"{self.name} ends")
        return self.work.wait()


class LoggedExperts(torch.autograd.Function):
    """Doubles rows and gradients, which tells those on the way there from those on the way back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, log: list[str]) -> Tensor:
        ctx.log = log
        log.append("experts")
        return rows * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.log.append("experts")
        return gradient * 2, None


def order(group: dist.ProcessGroup, *, num_chunks: int) -> Result:
    """In which order exchanges begin, experts compute and exchanges are waited for."""
    log: list[str] = []
    all_to_all = dist.all_to_all_single

    def logged(received: Tensor, sent: Tensor, *arguments: Any, **options: Any) -> LoggedWork:
        name = "there" if sent.flatten()[0] == 1 else "back"
        log.append(f"{name} begins")
        return LoggedWork(log, name, all_to_all(received, sent, *arguments, **options))

    buffers = torch.ones(4, 2 * num_chunks, 1, requires_grad=True)
    with patch.object(dist, "all_to_all_single", logged):
        outputs = apply_experts(
            lambda rows: LoggedExperts.apply(rows, log), buffers, group=group, num_chunks=num_chunks
        )
        forward = log.copy()
        log.clear()
        outputs.sum().backward()
    return {"forward": forward, "backward": log}


def refused(group: dist.ProcessGroup, *, outsider: bool, **arguments: Any) -> Result:
    """The error that arguments raise; `outsider` gives a group without this rank."""
    if outsider:
        others = [rank for rank in range(dist.get_world_size()) if rank != dist.get_rank()]
        group = [dist.new_group([rank]) for rank in range(dist.get_world_size())][others[0]]
    try:
        apply_experts(lambda rows: rows[..., :-1, :], group=group, **arguments)
    except ValueError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": None}


def main(folder: Path, rank: int, ranks: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=(folder / "store").as_uri(),
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=30),
    )
    groups = {size: dist.new_subgroups(size)[0] for size in (1, 2, 4)}
    cases = torch.load(folder / "cases.pt")
    results = {name: globals()[run](groups[size], **case) for name, (run, size, case) in cases.items()}
    torch.save(results, folder / f"results.{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

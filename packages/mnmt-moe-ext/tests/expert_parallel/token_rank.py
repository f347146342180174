"""One of the processes that send each token once to a rank: token_rank.py FOLDER RANK RANKS.

Reads FOLDER/cases.pt, {name: (number of ranks that share experts, arguments of `routed`)}, and writes
FOLDER/results.RANK.pt, {name: result}.
"""

import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from rank import LoggedExperts, LoggedWork, feed_forward_ragged, share
from torch import Tensor

import mnmt_moe_ext
from mnmt_moe_ext import reference


def mine(tensor: Tensor, sizes: list[int]) -> Tensor:
    """The tokens of this rank, as a leaf."""
    part = tensor.split(sizes, dim=1)[dist.get_rank()].clone()
    return part.requires_grad_(part.is_floating_point())


def routed(
    group: dist.ProcessGroup, *, tensors: dict[str, Tensor], sizes: list[int], num_chunks: int, compiled: bool
) -> dict[str, Any]:
    """The layer on this rank's tokens, its gradients, and the shapes that were sent."""
    tokens, experts, slots, weights, probe = (
        mine(tensors[name], sizes) for name in ("tokens", "experts", "slots", "weights", "probe")
    )
    wi, wo = share(tensors["wi"], group), share(tensors["wo"], group)
    load = torch.empty(1, len(tensors["wi"]), experts.shape[2], dtype=torch.int32)
    routing: Any = SimpleNamespace(experts=experts, slots=slots, weights=weights, load=load)
    sent: list[tuple[int, ...]] = []
    all_to_all = dist.all_to_all_single

    def logged(received: Tensor, sending: Tensor, *arguments: Any, **options: Any) -> dist.Work:
        sent.append(tuple(sending.shape))
        return all_to_all(received, sending, *arguments, **options)

    apply = (mnmt_moe_ext if compiled else reference).apply_experts_to_tokens
    with patch.object(dist, "all_to_all_single", logged):
        experts_of_rank = partial(feed_forward_ragged, wi=wi, wo=wo)
        combined = apply(experts_of_rank, tokens, routing, group=group, num_chunks=num_chunks)
    (combined * probe).sum().backward()
    return {
        "combined": combined.detach(),
        "tokens.grad": tokens.grad,
        "weights.grad": weights.grad,
        "wi.grad": wi.grad,
        "wo.grad": wo.grad,
        "sent": sent,
    }


def order(group: dist.ProcessGroup, *, num_chunks: int) -> dict[str, Any]:
    """In which order tokens and sums begin to travel, experts compute, and both are waited for."""
    log: list[str] = []
    all_to_all = dist.all_to_all_single

    def logged(received: Tensor, sending: Tensor, *arguments: Any, **options: Any) -> Any:
        work = all_to_all(received, sending, *arguments, **options)
        if sending.shape[1:] != (1,):  # counts, or choices
            return work
        name = "there" if sending.flatten()[0] == 1 else "back"
        log.append(f"{name} begins")
        return LoggedWork(log, name, work)

    tokens = torch.ones(1, 2 * num_chunks, 1, requires_grad=True)
    experts = torch.tensor([0, 3] * num_chunks, dtype=torch.int32).view(1, -1, 1)
    weights = torch.ones(experts.shape, requires_grad=True)
    load = torch.empty(1, 4, 1, dtype=torch.int32)
    routing: Any = SimpleNamespace(experts=experts, slots=experts, weights=weights, load=load)
    with patch.object(dist, "all_to_all_single", logged):
        sums = mnmt_moe_ext.apply_experts_to_tokens(
            lambda rows, _: LoggedExperts.apply(rows, log),
            tokens,
            routing,
            group=group,
            num_chunks=num_chunks,
        )
        forward = log.copy()
        log.clear()
        sums.sum().backward()
    return {"forward": forward, "backward": log}


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
    results = {name: routed(groups[size], **case) for name, (size, case) in cases.items()}
    results["order"] = order(groups[2], num_chunks=3)
    torch.save(results, folder / f"results.{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

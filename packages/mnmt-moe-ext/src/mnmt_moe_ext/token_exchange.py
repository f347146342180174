"""Expert parallelism that sends a token once to each rank that holds some of its experts.

With R ranks and E experts, rank r holds the experts r·E/R to (r+1)·E/R - 1. A token whose experts lie on two
of the ranks is one row for each, for any number of experts. The token's choices are sent with the row. The
receiver applies its experts, sums their weighted outputs and returns one row:

    tokens ─ rows by rank ─ all-to-all ─ rows by expert ─ experts ─ sums by row ─ all-to-all ─ sums by token
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from mnmt_moe_ext import rows
from mnmt_moe_ext.all_to_all import Exchange, Transfer
from mnmt_moe_ext.expert_parallel import check_group, check_num_experts, check_outputs
from mnmt_moe_ext.layout import Layout
from mnmt_moe_ext.routing import Routing

NONE = -1

Experts = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class RowOperators:
    """`dispatch` and `combine`, compiled or in plain torch."""

    dispatch: Callable[[Tensor, Layout], Tensor]
    combine: Callable[[Tensor, Tensor, Layout], Tensor]


def apply_experts_to_tokens(
    experts: Experts, tokens: Tensor, routing: Routing, *, group: dist.ProcessGroup
) -> Tensor:
    """Send tokens to their experts on all ranks, and sum the weighted outputs: Σ_k weights[..., k] · FFN_k.

    A token is one row for each rank that holds one of its experts, there and back, and each row has
    2 k numbers beside it. The ranks exchange their counts and read them on the host. It can be differentiated
    once, with respect to `tokens`, `routing.weights` and whatever `experts` closes over; then
    the outputs of `experts` must depend on its input even if that has no rows. Whether `tokens`, the weights
    and the outputs of `experts` require a gradient, and whether the result is differentiated, must be the
    same on every rank of the group. The sums of each rank are rounded to the dtype of the outputs.

    Args:
        experts: Function that applies the experts of this rank, ((n, d), local ends (E/R,) int32) -> (n,
            d_out), each expert to each of its rows. n can be 0.
        tokens: Hidden states (groups, tokens, d) of this rank, float32, bfloat16 or float64. The numbers of
            groups and tokens may differ between ranks.
        routing: The routing of the same groups and tokens; choices without a slot are left out.
        group: The R ranks that share the experts, including this one.

    Returns:
        Hidden states (groups, tokens, d_out) in the dtype of the outputs; 0 for a token without a slot.

    Raises:
        ValueError: An argument has a wrong shape or value, or `experts` returned a wrong shape.
        ExchangeError: Another rank died, raised, or did not take part before the group's timeout. With NCCL,
            torch's own watchdog may end the process first.
        RuntimeError: The compiled operators for the device are missing.
    """
    return exchange_tokens(experts, tokens, routing, group=group, operators=NATIVE)


NATIVE = RowOperators(dispatch=rows.dispatch, combine=rows.combine)


def exchange_tokens(
    experts: Experts,
    tokens: Tensor,
    routing: Routing,
    *,
    group: dist.ProcessGroup,
    operators: RowOperators,
) -> Tensor:
    """Compute `apply_experts_to_tokens` with the given `operators`."""
    check_group(group)
    check_num_experts("routing", routing.load.shape[1], group)
    per_rank = routing.load.shape[1] // group.size()
    numbers = routing.experts.masked_fill(routing.slots < 0, NONE)
    ranks = torch.div(numbers, per_rank, rounding_mode="floor")
    addressed = _first_of_each(ranks)
    counts = torch.stack([_count(addressed, group.size()), _count(ranks, group.size())], dim=1)
    send, receive, num_choices = _exchange_counts(counts, group)

    to_ranks = layout_by_bin(addressed, num_bins=group.size(), num_rows=sum(send))
    arriving = Exchange(operators.dispatch(tokens, to_ranks), send, receive, group)
    # Numbers of experts are exact in float32, so that one message holds them and their weights.
    choices = torch.cat([routing.weights, numbers.to(routing.weights.dtype)], dim=2)
    received = Exchange(operators.dispatch(choices, to_ranks), send, receive, group).wait()
    weights, received_numbers = received[None].tensor_split(2, dim=2)
    to_experts = layout_by_bin(
        _local(received_numbers, first=group.rank() * per_rank, size=per_rank),
        num_bins=per_rank,
        num_rows=num_choices,
    )
    buffers = operators.dispatch(arriving.wait()[None], to_experts)
    assert to_experts.ends is not None
    outputs = check_outputs(experts(buffers, to_experts.ends), buffers)
    sums = operators.combine(outputs, weights, to_experts)
    returned = Exchange(sums[0], receive, send, group).wait()
    return operators.combine(returned, torch.ones_like(routing.weights), to_ranks)


def layout_by_bin(bins: Tensor, *, num_bins: int, num_rows: int) -> Layout:
    """Lay out a ragged buffer bin by bin, the choices of a bin in the order of tokens.

    Args:
        bins: (groups, tokens, k) the bin of each choice, in [0, num_bins); -1 without a bin.
        num_bins: Number of bins.
        num_rows: Number of choices with a bin.
    """
    flat = bins.flatten()
    order = flat.masked_fill(flat < 0, num_bins).argsort(stable=True)
    numbers = torch.arange(len(flat), dtype=torch.int32, device=flat.device)
    positions = torch.empty_like(numbers).scatter_(0, order, numbers)
    ends = _count(bins, num_bins).cumsum(0).int()
    return Layout(
        rows=positions.masked_fill_(flat < 0, NONE).view_as(bins),
        filled=ends[-1:],
        bin_size=num_rows,
        num_experts=num_bins,
        ends=ends,
    )


def _first_of_each(ranks: Tensor) -> Tensor:
    """Return `ranks (groups, tokens, k)` with -1 for each repetition of a rank among a token's choices."""
    repeated = (ranks.unsqueeze(-1) == ranks.unsqueeze(-2)).tril(-1).any(dim=-1)
    return ranks.masked_fill(repeated, NONE)


def _count(bins: Tensor, num_bins: int) -> Tensor:
    """Return the number of choices with each bin, (num_bins,) int64."""
    counts = torch.zeros(num_bins + 1, dtype=torch.int64, device=bins.device)
    numbers = bins.flatten().long() + 1
    return counts.scatter_add_(0, numbers, torch.ones_like(numbers))[1:]


def _exchange_counts(counts: Tensor, group: dist.ProcessGroup) -> tuple[list[int], list[int], int]:
    """Return the numbers of rows for and from each rank, and the choices that arrive with the received rows.

    `counts` is (ranks, 2): rows and choices for each rank.
    """
    one_each = [1] * group.size()
    received = Transfer(counts, one_each, one_each, group).wait()
    numbers = torch.stack([counts[:, 0], received[:, 0], received[:, 1]])
    sent_rows, received_rows, received_choices = numbers.tolist()
    return sent_rows, received_rows, sum(received_choices)


def _local(numbers: Tensor, *, first: int, size: int) -> Tensor:
    """Return experts' numbers among this rank's experts, int64; -1 for experts of other ranks."""
    local = numbers.detach().long() - first
    return local.masked_fill((local < 0) | (local >= size), NONE)

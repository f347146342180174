"""Expert parallelism that sends a token once to each rank that holds some of its experts.

With R ranks and E experts, rank r holds the experts r·E/R to (r+1)·E/R - 1. A token whose experts lie on two
of the ranks is one row for each, for any number of experts. The token's choices are sent with the row. The
receiver applies its experts, sums their weighted outputs and returns one row:

    tokens ─ rows by rank ─ all-to-all ─ rows by expert ─ experts ─ sums by row ─ all-to-all ─ sums by token
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from mnmt_moe_ext import rows
from mnmt_moe_ext.all_to_all import Exchange, Transfer
from mnmt_moe_ext.expert_parallel import (
    check_group,
    check_num_chunks,
    check_num_experts,
    check_outputs,
    overlapped,
)
from mnmt_moe_ext.layout import Layout
from mnmt_moe_ext.routing import Routing

NONE = -1

Experts = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class RowOperators:
    """`arrange`, `dispatch` and `combine`, compiled or in plain torch."""

    arrange: Callable[[Tensor, int], tuple[Tensor, Tensor]]
    dispatch: Callable[[Tensor, Layout], Tensor]
    combine: Callable[[Tensor, Tensor, Layout], Tensor]


def apply_experts_to_tokens(
    experts: Experts, tokens: Tensor, routing: Routing, *, group: dist.ProcessGroup, num_chunks: int = 1
) -> Tensor:
    """Send tokens to their experts on all ranks, and sum the weighted outputs: Σ_k weights[..., k] · FFN_k.

    A token is one row for each rank that holds one of its experts, there and back, and each row has
    2 k numbers beside it. The tokens are split into chunks that overlap as those of `apply_experts` do. The
    ranks first exchange their counts, for which the host waits once: only slots have sizes that are known.

    It can be differentiated once, with respect to `tokens`, `routing.weights` and whatever `experts` closes
    over; then the outputs of `experts` must depend on its input even if that has no rows. Whether `tokens`,
    the weights and the outputs of `experts` require a gradient, and whether the result is differentiated,
    must be the same on every rank of the group. The sums of each rank are rounded to the dtype of the
    outputs.

    Args:
        experts: Function that applies the experts of this rank, ((n, d), local ends (E/R,) int32) -> (n,
            d_out), each expert to each of its rows. n can be 0. It is called once per chunk.
        tokens: Hidden states (groups, tokens, d) of this rank, float32, bfloat16 or float64. The numbers of
            groups and tokens may differ between ranks.
        routing: The routing of the same groups and tokens; choices without a slot are left out.
        group: The R ranks that share the experts, including this one.
        num_chunks: Number of chunks, the same on every rank.

    Returns:
        Hidden states (groups, tokens, d_out) in the dtype of the outputs; 0 for a token without a slot.

    Raises:
        ValueError: An argument has a wrong shape or value, or `experts` returned a wrong shape.
        ExchangeError: Another rank died, raised, or did not take part before the group's timeout. With NCCL,
            torch's own watchdog may end the process first.
        RuntimeError: The compiled operators for the device are missing.
    """
    return exchange_tokens(experts, tokens, routing, group=group, num_chunks=num_chunks, operators=NATIVE)


NATIVE = RowOperators(arrange=rows.arrange, dispatch=rows.dispatch, combine=rows.combine)


def exchange_tokens(
    experts: Experts,
    tokens: Tensor,
    routing: Routing,
    *,
    group: dist.ProcessGroup,
    num_chunks: int,
    operators: RowOperators,
) -> Tensor:
    """Compute `apply_experts_to_tokens` with the given `operators`."""
    check_group(group)
    check_num_experts("routing", routing.load.shape[1], group)
    check_num_chunks(num_chunks)
    ranks = _Ranks(group=group, per_rank=routing.load.shape[1] // group.size(), operators=operators)
    numbers = routing.experts.masked_fill(routing.slots < 0, NONE)
    split = (each.flatten(0, 1).tensor_split(num_chunks) for each in (tokens, routing.weights, numbers))
    chunks = [_Chunk(*parts, ranks=ranks) for parts in zip(*split, strict=True)]
    _exchange_counts(chunks, group)
    returning = overlapped(
        chunks,
        send=lambda chunk: (chunk, *chunk.send()),
        compute=lambda sent: (sent[0], sent[0].compute(experts, *sent[1:])),
        send_back=lambda computed: (computed[0], computed[0].send_back(computed[1])),
    )
    sums = torch.cat([chunk.sums(exchange) for chunk, exchange in returning])
    return sums.view(*tokens.shape[:2], sums.shape[1])


@dataclass(frozen=True, kw_only=True)
class _Ranks:
    """The ranks that share experts."""

    group: dist.ProcessGroup
    per_rank: int
    """Experts of a rank."""
    operators: RowOperators


class _Chunk:
    """A part of this rank's tokens, on its way to the experts and back.

    Args:
        tokens: (n, d).
        weights: (n, k) of their choices.
        numbers: (n, k), the experts; -1 for a choice without a slot.
        ranks: The ranks that have the experts.
    """

    def __init__(self, tokens: Tensor, weights: Tensor, numbers: Tensor, *, ranks: _Ranks) -> None:
        self.tokens, self.weights, self.numbers, self.ranks = tokens, weights, numbers, ranks
        of_choices = torch.div(numbers, ranks.per_rank, rounding_mode="floor")
        self.rows, self.ends = self._arrange(_first_of_each(of_choices))
        choice_ends = self._arrange(of_choices)[1]
        self.counts = torch.stack([self.ends, choice_ends]).diff(prepend=self.ends.new_zeros(2, 1)).T
        """(R, 2): rows and choices for each rank."""

    def _arrange(self, of_choices: Tensor) -> tuple[Tensor, Tensor]:
        return self.ranks.operators.arrange(of_choices, self.ranks.group.size())

    def set_sizes(self, *, send: list[int], receive: list[int], num_choices: int) -> None:
        """Set the numbers of rows for and from each rank, and the choices that arrive with these."""
        self.sent, self.received, self.num_choices = send, receive, num_choices
        self.to_ranks = _layout(self.rows, self.ends, num_rows=sum(send))

    def send(self) -> tuple[Exchange, Exchange]:
        """Send the tokens and their choices."""
        # Numbers of experts are exact in float32, so that one message holds them and their weights.
        choices = torch.cat([self.weights, self.numbers.to(self.weights.dtype)], dim=1)
        return self._send(self.tokens), self._send(choices)

    def _send(self, numbers: Tensor) -> Exchange:
        rows = self.ranks.operators.dispatch(numbers[None], self.to_ranks)
        return Exchange(rows, self.sent, self.received, self.ranks.group)

    def compute(self, experts: Experts, tokens: Exchange, choices: Exchange) -> Tensor:
        """Apply this rank's experts to what arrives, and sum their weighted outputs by row."""
        operators = self.ranks.operators
        weights, numbers = choices.wait().tensor_split(2, dim=1)
        rows, ends = operators.arrange(self._local(numbers), self.ranks.per_rank)
        to_experts = _layout(rows, ends, num_rows=self.num_choices)
        buffers = operators.dispatch(tokens.wait()[None], to_experts)
        outputs = check_outputs(experts(buffers, ends), buffers)
        return operators.combine(outputs, weights[None], to_experts)[0]

    def _local(self, numbers: Tensor) -> Tensor:
        """Return experts' numbers among this rank's experts, int32; -1 for experts of other ranks."""
        size = self.ranks.per_rank
        local = numbers.detach().int() - self.ranks.group.rank() * size
        return local.masked_fill((local < 0) | (local >= size), NONE)

    def send_back(self, sums: Tensor) -> Exchange:
        """Send the sums of the rows back."""
        return Exchange(sums, self.received, self.sent, self.ranks.group)

    def sums(self, returning: Exchange) -> Tensor:
        """Return the sums (n, d_out) over all choices."""
        ones = torch.ones_like(self.weights)[None]
        return self.ranks.operators.combine(returning.wait(), ones, self.to_ranks)[0]


def _layout(rows: Tensor, ends: Tensor, *, num_rows: int) -> Layout:
    """Return the ragged layout of `rows (n, k)`, as one group."""
    return Layout(rows=rows[None], filled=ends[-1:], bin_size=num_rows, num_experts=len(ends), ends=ends)


def _first_of_each(ranks: Tensor) -> Tensor:
    """Return `ranks (n, k)` with -1 for each repetition of a rank among a token's choices."""
    repeated = (ranks.unsqueeze(-1) == ranks.unsqueeze(-2)).tril(-1).any(dim=-1)
    return ranks.masked_fill(repeated, NONE)


def _exchange_counts(chunks: Sequence[_Chunk], group: dist.ProcessGroup) -> None:
    """Tell each rank how many rows and choices of each chunk come to it; sets the chunks' sizes."""
    counts, one_each = torch.stack([chunk.counts for chunk in chunks], dim=1), [1] * group.size()
    received = Transfer(counts, one_each, one_each, group).wait()
    # (chunks, 3, R): rows to send, and rows and choices to receive.
    numbers = torch.cat([counts[..., :1], received], dim=2).permute(1, 2, 0)
    for chunk, (send, receive, choices) in zip(chunks, numbers.tolist(), strict=True):
        chunk.set_sizes(send=send, receive=receive, num_choices=sum(choices))

"""Experts spread over ranks: each token's rows travel to the expert's rank and back.

With R ranks and E experts, rank r holds the experts r·E/R to (r+1)·E/R - 1. Two ranks and four experts, where
a2 is what rank a has for expert 2:

    rank a   a0 a1 a2 a3 ─┐ all-to-all ┌─ a0 b0 a1 b1 ── experts 0, 1 ─┐ all-to-all ┌─ a0 a1 a2 a3
    rank b   b0 b1 b2 b3 ─┘            └─ a2 b2 a3 b3 ── experts 2, 3 ─┘            └─ b0 b1 b2 b3

An expert's rows come in the order of the ranks, so groups of tokens that are dealt to the ranks in order
arrive in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from mnmt_moe_ext.all_to_all import Exchange, Transfer


def apply_experts(
    experts: Callable[[Tensor], Tensor], buffers: Tensor, *, group: dist.ProcessGroup, num_chunks: int = 1
) -> Tensor:
    """Apply the experts of all ranks to the buffers of all ranks, which have the same shape everywhere.

    The rows of each expert are cut into chunks that travel on their own. While one is computed, the next
    comes and the one before goes back:

        to the experts   0 1 2
        experts            0 1 2
        back                 0 1 2

    The backward pass does the same from the last chunk to the first, except that the gradients of all outputs
    leave at its beginning, and that those of a chunk must be back before the next but one is computed.
    Shapes depend on no value, and the host waits for no GPU.

    It can be differentiated once, with respect to `buffers` and whatever `experts` closes over; an expert's
    weights get their gradient from the rows of all ranks in the group. Whether `buffers` and the outputs of
    `experts` require a gradient, and whether the result is part of what is differentiated, must be the same
    on every rank of the group.

    Args:
        experts: Applies the experts of this rank, (E/R, R·chunk_rows, d) -> (E/R, R·chunk_rows, d_out), each
            expert to each of its rows alone. Within a chunk a rank's rows follow those of the rank before. It
            is called once for every chunk.
        buffers: (E, rows, d), floating point: what this rank has for each expert, as `dispatch` gives it.
        group: The R ranks that share the experts, this one among them. With one rank nothing is sent or cut.
        num_chunks: The rows are cut into that many chunks, whose sizes differ by at most one; empty ones are
            left out.

    Returns:
        (E, rows, d_out): the experts' outputs, where the rows were in `buffers`.

    Raises:
        ValueError: An argument has a wrong shape or value, or `experts` returned a wrong shape. It is not
            noticed if the ranks' buffers have different shapes: the result is undefined or the exchange
            fails.
        ExchangeError: Another rank died, raised, or did not take part before the group's timeout. With NCCL
            torch's own watchdog may end the process first.
    """
    _check_buffers(buffers, "(experts, rows, d)", dims=3)
    _check_group(group)
    _check_num_experts("buffers", buffers.shape[0], group)
    if num_chunks < 1:
        raise ValueError(f"`num_chunks` must be at least 1, but is {num_chunks}.")
    if group.size() == 1:
        return _apply(experts, buffers)
    chunks = torch.split(buffers, _chunk_sizes(buffers.shape[1], num_chunks), dim=1)
    return torch.cat([way_back.wait() for way_back in _visit_experts(experts, chunks, group)], dim=1)


def _chunk_sizes(rows: int, num_chunks: int) -> list[int]:
    num_chunks = max(1, min(num_chunks, rows))
    return [rows // num_chunks + (index < rows % num_chunks) for index in range(num_chunks)]


def _visit_experts(
    experts: Callable[[Tensor], Tensor], chunks: tuple[Tensor, ...], group: dist.ProcessGroup
) -> list[Exchange]:
    """The chunks (E, chunk_rows, d_out) on their way back.

    The order in which exchanges begin and end is also what lets them overlap in the backward pass: of the
    operators that are ready, autograd takes the last first.
    """
    ways_there = (_even_exchange(chunk, group) for chunk in chunks)
    under_way = deque(islice(ways_there, 2))
    ways_back = []
    while under_way:
        outputs = _apply(experts, _gather_experts(under_way.popleft().wait(), group.size()))
        under_way.extend(islice(ways_there, 1))  # before the way back, which is waited for last
        ways_back.append(_even_exchange(_scatter_experts(outputs, group.size()), group))
    return ways_back


def _even_exchange(buffers: Tensor, group: dist.ProcessGroup) -> Exchange:
    shares = [buffers.shape[0] // group.size()] * group.size()
    return Exchange(buffers, send=shares, receive=shares, group=group)


def _gather_experts(received: Tensor, num_ranks: int) -> Tensor:
    """(ranks · local experts, chunk_rows, d), rank by rank, to (local experts, ranks · chunk_rows, d)."""
    return torch.unflatten(received, 0, (num_ranks, -1)).transpose(0, 1).flatten(1, 2)


def _scatter_experts(outputs: Tensor, num_ranks: int) -> Tensor:
    """The inverse of `_gather_experts`."""
    return torch.unflatten(outputs, 1, (num_ranks, -1)).transpose(0, 1).flatten(0, 1)


def apply_experts_ragged(
    experts: Callable[[Tensor, Tensor], Tensor], buffers: Tensor, ends: Tensor, *, group: dist.ProcessGroup
) -> Tensor:
    """Apply the experts of all ranks to rows that lie expert by expert, as many as each happens to have.

    The ranks tell each other their counts and read them on the host, since the sizes of the exchange and of
    what `experts` gets depend on them. It is meant for evaluation, where no token is to be dropped. It can be
    differentiated like `apply_experts`; then the outputs of `experts` must depend on its input also where
    that has no rows.

    Args:
        experts: Applies the experts of this rank, ((n, d), local ends (E/R,) int32) -> (n, d_out), each
            expert to each of its rows alone. An expert's rows from a rank follow those from the rank before.
            n can be 0.
        buffers: (rows, d), floating point, as `dispatch` gives it in a ragged layout. The number of rows may
            differ between ranks.
        ends: (E,) int32: the row after each expert's last; rows from ends[-1] on are not sent.
        group: The R ranks that share the experts, this one among them. With one rank nothing is sent.

    Returns:
        (rows, d_out): the experts' outputs, where the rows were in `buffers`; 0 from ends[-1] on.

    Raises:
        TypeError: `ends` is not int32.
        ValueError: An argument has a wrong shape or value, or `experts` returned a wrong shape.
        ExchangeError: Another rank died, raised, or did not take part before the group's timeout. With NCCL
            torch's own watchdog may end the process first.
    """
    _check_buffers(buffers, "(rows, d)", dims=2)
    _check_group(group)
    _check_ends(ends)
    _check_num_experts("ends", ends.shape[0], group)
    num_sent = _last_row(ends, buffers)
    rows = buffers[:num_sent]
    visit = _apply_ragged if group.size() == 1 else partial(_visit_experts_ragged, group=group)
    return pad(visit(experts, rows, ends), (0, 0, 0, buffers.shape[0] - num_sent))


def _visit_experts_ragged(
    experts: Callable[[Tensor, Tensor], Tensor], rows: Tensor, ends: Tensor, *, group: dist.ProcessGroup
) -> Tensor:
    """The outputs (rows, d_out), back on this rank."""
    num_ranks = group.size()
    counts = ends.diff(prepend=ends.new_zeros(1)).view(num_ranks, -1)
    received_counts = Transfer(counts, [1] * num_ranks, [1] * num_ranks, group).wait()
    send, receive = torch.stack([counts, received_counts]).sum(dim=-1).tolist()
    order = _expert_major(received_counts, num_rows=sum(receive))
    received = Exchange(rows, send, receive, group).wait()
    local_ends = received_counts.sum(dim=0).cumsum(dim=0).int()
    outputs = _apply_ragged(experts, received.index_select(0, order), local_ends)
    return Exchange(outputs.index_select(0, order.argsort()), receive, send, group).wait()


def _expert_major(counts: Tensor, num_rows: int) -> Tensor:
    """The permutation (num_rows,) that sorts by expert what lies rank by rank, counts (ranks, experts)."""
    num_ranks, num_experts = counts.shape
    experts = torch.arange(num_experts, device=counts.device).repeat(num_ranks)
    return experts.repeat_interleave(counts.flatten(), output_size=num_rows).argsort(stable=True)


def _apply(experts: Callable[[Tensor], Tensor], buffers: Tensor) -> Tensor:
    return _check_outputs(experts(buffers), buffers)


def _apply_ragged(experts: Callable[[Tensor, Tensor], Tensor], rows: Tensor, ends: Tensor) -> Tensor:
    return _check_outputs(experts(rows, ends), rows)


def _check_outputs(outputs: Tensor, rows: Tensor) -> Tensor:
    if outputs.dim() != rows.dim() or outputs.shape[:-1] != rows.shape[:-1]:
        expected = "".join(f"{size}, " for size in rows.shape[:-1])
        raise ValueError(f"`experts` must return ({expected}d_out), but returned {tuple(outputs.shape)}.")
    return outputs


def _check_buffers(buffers: Tensor, shape: str, *, dims: int) -> None:
    if buffers.dim() != dims:
        raise ValueError(f"`buffers` must be {shape}, but is {tuple(buffers.shape)}.")


def _check_group(group: dist.ProcessGroup) -> None:
    if dist.get_rank(group) < 0:
        raise ValueError("`group` must have this process among its ranks.")


def _check_num_experts(name: str, num_experts: int, group: dist.ProcessGroup) -> None:
    if num_experts == 0 or num_experts % group.size():
        raise ValueError(
            f"`{name}` must have a multiple of the group's {group.size()} ranks as experts, "
            f"but has {num_experts}."
        )


def _check_ends(ends: Tensor) -> None:
    if ends.dtype != torch.int32:
        raise TypeError(f"`ends` must be torch.int32, but is {ends.dtype}.")
    if ends.dim() != 1:
        raise ValueError(f"`ends` must be (experts,), but is {tuple(ends.shape)}.")


def _last_row(ends: Tensor, buffers: Tensor) -> int:
    """ends[-1]; raises ValueError where `ends` cannot be positions in `buffers`."""
    positions: list[int] = [0, *ends.tolist()]
    if positions != sorted(positions) or positions[-1] > buffers.shape[0]:
        raise ValueError(
            f"`ends` must ascend from 0 to at most the {buffers.shape[0]} rows of `buffers`, "
            f"but is {positions[1:]}."
        )
    return positions[-1]

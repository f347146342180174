"""Expert parallelism that sends all slots of the experts to their rank and back, including empty slots.

With R ranks and E experts, rank r holds the experts r·E/R to (r+1)·E/R - 1. Two ranks and four experts, where
a2 are the rows of rank a for expert 2:

    rank a   a0 a1 a2 a3 ─┐ all-to-all ┌─ a0 b0 a1 b1 ── experts 0, 1 ─┐ all-to-all ┌─ a0 a1 a2 a3
    rank b   b0 b1 b2 b3 ─┘            └─ a2 b2 a3 b3 ── experts 2, 3 ─┘            └─ b0 b1 b2 b3

An expert's rows arrive in the order of the ranks: if rank 0 has the first groups of tokens, rank 1 the next
and so on, the groups arrive in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from mnmt_moe_ext.all_to_all import Exchange

Chunk = TypeVar("Chunk")
Sent = TypeVar("Sent")
Computed = TypeVar("Computed")
Returning = TypeVar("Returning")


def apply_experts(
    experts: Callable[[Tensor], Tensor], buffers: Tensor, *, group: dist.ProcessGroup, num_chunks: int = 1
) -> Tensor:
    """Apply the experts of all ranks to the buffers of all ranks, which have the same shape everywhere.

    The rows of each expert are split into chunks that are sent separately. While one chunk is computed, the
    next one arrives and the previous one returns:

        to the experts   0 1 2
        experts            0 1 2
        back                 0 1 2

    The backward pass does the same from the last chunk to the first, with two differences. The gradients of
    all outputs are sent at its start, and a chunk's input gradients must return before the chunk after the
    next is computed.
    Shapes depend on no value, and the host waits for no GPU.

    It can be differentiated once, with respect to `buffers` and whatever `experts` closes over. An expert's
    weights get their gradient from the rows of all ranks in the group. Whether `buffers` and the outputs of
    `experts` require a gradient, and whether the result is differentiated, must be the same on every rank of
    the group.

    Args:
        experts: Function that applies the experts of this rank, (E/R, R·chunk_rows, d) ->
            (E/R, R·chunk_rows, d_out), each expert to each of its rows. Within a chunk a rank's rows
            follow the previous rank's. It is called once per chunk.
        buffers: The rows of this rank for each expert, (E, rows, d), floating point, as `dispatch` returns
            them.
        group: The R ranks that share the experts, including this one. With one rank nothing is sent or
            split.
        num_chunks: Number of chunks. Their sizes differ by at most one; empty chunks are omitted.

    Returns:
        The experts' outputs (E, rows, d_out), where the rows were in `buffers`.

    Raises:
        ValueError: An argument has a wrong shape or value, or `experts` returned a wrong shape. Different
            shapes of `buffers` on the ranks are not noticed: the result is undefined or the exchange fails.
        ExchangeError: Another rank died, raised, or did not take part before the group's timeout. With NCCL,
            torch's own watchdog may end the process first.
    """
    if buffers.dim() != 3:
        raise ValueError(f"`buffers` must be (experts, rows, d), but is {tuple(buffers.shape)}.")
    check_group(group)
    check_num_experts("buffers", buffers.shape[0], group)
    check_num_chunks(num_chunks)
    if group.size() == 1:
        return _apply(experts, buffers)
    exchanges = overlapped(
        torch.split(buffers, _chunk_sizes(buffers.shape[1], num_chunks), dim=1),
        send=lambda chunk: _even_exchange(chunk, group),
        compute=lambda chunk: _apply(experts, _gather_experts(chunk.wait(), group.size())),
        send_back=lambda outputs: _even_exchange(_scatter_experts(outputs, group.size()), group),
    )
    return torch.cat([exchange.wait() for exchange in exchanges], dim=1)


def _chunk_sizes(rows: int, num_chunks: int) -> list[int]:
    num_chunks = max(1, min(num_chunks, rows))
    return [rows // num_chunks + (index < rows % num_chunks) for index in range(num_chunks)]


def overlapped(
    chunks: Iterable[Chunk],
    *,
    send: Callable[[Chunk], Sent],
    compute: Callable[[Sent], Computed],
    send_back: Callable[[Computed], Returning],
) -> list[Returning]:
    """Send each chunk, compute it and send it back, with the next chunk on its way during the computation.

    The order in which exchanges start and finish also lets them overlap in the backward pass: of the
    operators that are ready, autograd runs the last one first.
    """
    sent = map(send, chunks)
    pending = deque(islice(sent, 2))
    returning = []
    while pending:
        computed = compute(pending.popleft())
        pending.extend(islice(sent, 1))  # before what is computed, which is waited for last
        returning.append(send_back(computed))
    return returning


def _even_exchange(buffers: Tensor, group: dist.ProcessGroup) -> Exchange:
    shares = [buffers.shape[0] // group.size()] * group.size()
    return Exchange(buffers, send=shares, receive=shares, group=group)


def _gather_experts(received: Tensor, num_ranks: int) -> Tensor:
    """Reorder (ranks · local experts, chunk_rows, d) to (local experts, ranks · chunk_rows, d)."""
    return torch.unflatten(received, 0, (num_ranks, -1)).transpose(0, 1).flatten(1, 2)


def _scatter_experts(outputs: Tensor, num_ranks: int) -> Tensor:
    """Invert `_gather_experts`."""
    return torch.unflatten(outputs, 1, (num_ranks, -1)).transpose(0, 1).flatten(0, 1)


def _apply(experts: Callable[[Tensor], Tensor], buffers: Tensor) -> Tensor:
    return check_outputs(experts(buffers), buffers)


def check_outputs(outputs: Tensor, rows: Tensor) -> Tensor:
    """Return the outputs of the experts; raise ValueError if they have another number of rows than `rows`."""
    if outputs.dim() != rows.dim() or outputs.shape[:-1] != rows.shape[:-1]:
        expected = "".join(f"{size}, " for size in rows.shape[:-1])
        raise ValueError(f"`experts` must return ({expected}d_out), but returned {tuple(outputs.shape)}.")
    return outputs


def check_group(group: dist.ProcessGroup) -> None:
    """Raise ValueError if this process is not in the group."""
    if dist.get_rank(group) < 0:
        raise ValueError("`group` must have this process among its ranks.")


def check_num_experts(name: str, num_experts: int, group: dist.ProcessGroup) -> None:
    """Raise ValueError, naming the argument, if its experts cannot be divided among the ranks."""
    if num_experts == 0 or num_experts % group.size():
        raise ValueError(
            f"`{name}` must have a multiple of the group's {group.size()} ranks as experts, "
            f"but has {num_experts}."
        )


def check_num_chunks(num_chunks: int) -> None:
    """Raise ValueError if there is no chunk."""
    if num_chunks < 1:
        raise ValueError(f"`num_chunks` must be at least 1, but is {num_chunks}.")

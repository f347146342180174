"""Expert parallelism: each token's rows travel to the rank of their expert and back.

With R ranks and E experts, rank r holds the experts r·E/R to (r+1)·E/R - 1. Two ranks and four experts, where
a2 are the rows of rank a for expert 2:

    rank a   a0 a1 a2 a3 ─┐ all-to-all ┌─ a0 b0 a1 b1 ── experts 0, 1 ─┐ all-to-all ┌─ a0 a1 a2 a3
    rank b   b0 b1 b2 b3 ─┘            └─ a2 b2 a3 b3 ── experts 2, 3 ─┘            └─ b0 b1 b2 b3

An expert's rows arrive in the order of the ranks. So groups of tokens that are dealt to the ranks in order
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

    The rows of each expert are split into chunks that travel on their own. While one chunk is computed, the
    next one arrives and the one before goes back:

        to the experts   0 1 2
        experts            0 1 2
        back                 0 1 2

    The backward pass does the same from the last chunk to the first, with two differences. The gradients of
    all outputs leave at its start, and those of a chunk must be back before the next but one is computed.
    Shapes depend on no value, and the host waits for no GPU.

    It can be differentiated once, with respect to `buffers` and whatever `experts` closes over. An expert's
    weights get their gradient from the rows of all ranks in the group. Whether `buffers` and the outputs of
    `experts` require a gradient, and whether the result is differentiated, must be the same on every rank of
    the group.

    Args:
        experts: Function that applies the experts of this rank, (E/R, R·chunk_rows, d) ->
            (E/R, R·chunk_rows, d_out), each expert to each of its rows alone. Within a chunk a rank's rows
            follow those of the rank before. It is called once for every chunk.
        buffers: The rows of this rank for each expert, (E, rows, d), floating point, as `dispatch` returns
            them.
        group: The R ranks that share the experts, this one among them. With one rank nothing is sent or
            split.
        num_chunks: Number of chunks. Their sizes differ by at most one; empty ones are left out.

    Returns:
        The experts' outputs (E, rows, d_out), where the rows were in `buffers`.

    Raises:
        ValueError: An argument has a wrong shape or value, or `experts` returned a wrong shape. Different
            shapes of `buffers` on the ranks are not noticed: the result is undefined or the exchange fails.
        ExchangeError: Another rank died, raised, or did not take part before the group's timeout. With NCCL,
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
    return torch.cat([exchange.wait() for exchange in _exchange_chunks(experts, chunks, group)], dim=1)


def _chunk_sizes(rows: int, num_chunks: int) -> list[int]:
    num_chunks = max(1, min(num_chunks, rows))
    return [rows // num_chunks + (index < rows % num_chunks) for index in range(num_chunks)]


def _exchange_chunks(
    experts: Callable[[Tensor], Tensor], chunks: tuple[Tensor, ...], group: dist.ProcessGroup
) -> list[Exchange]:
    """Send chunks to their experts and back; return the exchanges of the outputs (E, chunk_rows, d_out).

    The order in which exchanges start and finish also lets them overlap in the backward pass: of the
    operators that are ready, autograd runs the last one first.
    """
    inputs = (_even_exchange(chunk, group) for chunk in chunks)
    pending = deque(islice(inputs, 2))
    outputs = []
    while pending:
        chunk = _apply(experts, _gather_experts(pending.popleft().wait(), group.size()))
        pending.extend(islice(inputs, 1))  # before the outputs, which are waited for last
        outputs.append(_even_exchange(_scatter_experts(chunk, group.size()), group))
    return outputs


def _even_exchange(buffers: Tensor, group: dist.ProcessGroup) -> Exchange:
    shares = [buffers.shape[0] // group.size()] * group.size()
    return Exchange(buffers, send=shares, receive=shares, group=group)


def _gather_experts(received: Tensor, num_ranks: int) -> Tensor:
    """Reorder (ranks · local experts, chunk_rows, d) to (local experts, ranks · chunk_rows, d)."""
    return torch.unflatten(received, 0, (num_ranks, -1)).transpose(0, 1).flatten(1, 2)


def _scatter_experts(outputs: Tensor, num_ranks: int) -> Tensor:
    """Invert `_gather_experts`."""
    return torch.unflatten(outputs, 1, (num_ranks, -1)).transpose(0, 1).flatten(0, 1)


def apply_experts_ragged(
    experts: Callable[[Tensor, Tensor], Tensor], buffers: Tensor, ends: Tensor, *, group: dist.ProcessGroup
) -> Tensor:
    """Apply the experts of all ranks to rows that lie expert by expert, any number for each.

    The ranks exchange their counts and read them on the host, since the sizes of the exchange and the inputs
    of `experts` depend on them. It is meant for evaluation, where no token is dropped. It can be
    differentiated like `apply_experts`; then the outputs of `experts` must depend on its input even if that
    has no rows.

    Args:
        experts: Function that applies the experts of this rank, ((n, d), local ends (E/R,) int32) -> (n,
            d_out), each expert to each of its rows alone. An expert's rows from a rank follow those from the
            rank before. n can be 0.
        buffers: The rows of this rank, (rows, d), floating point, as `dispatch` returns them for a ragged
            layout. The number of rows may differ between ranks.
        ends: The row after each expert's last, (E,) int32; rows from ends[-1] on are not sent.
        group: The R ranks that share the experts, this one among them. With one rank nothing is sent.

    Returns:
        The experts' outputs (rows, d_out), where the rows were in `buffers`; 0 from ends[-1] on.

    Raises:
        TypeError: `ends` is not int32.
        ValueError: An argument has a wrong shape or value, or `experts` returned a wrong shape.
        ExchangeError: Another rank died, raised, or did not take part before the group's timeout. With NCCL,
            torch's own watchdog may end the process first.
    """
    _check_buffers(buffers, "(rows, d)", dims=2)
    _check_group(group)
    _check_ends(ends)
    _check_num_experts("ends", ends.shape[0], group)
    num_sent = _last_row(ends, buffers)
    rows = buffers[:num_sent]
    apply = _apply_ragged if group.size() == 1 else partial(_exchange_ragged, group=group)
    return pad(apply(experts, rows, ends), (0, 0, 0, buffers.shape[0] - num_sent))


def _exchange_ragged(
    experts: Callable[[Tensor, Tensor], Tensor], rows: Tensor, ends: Tensor, *, group: dist.ProcessGroup
) -> Tensor:
    """Send rows to their experts and back; return the outputs (rows, d_out)."""
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
    """Return the permutation (num_rows,) that sorts rows by expert.

    The rows lie rank by rank, `counts` (ranks, experts) of them for each expert.
    """
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
    """Return ends[-1], or raise ValueError if `ends` cannot be positions in `buffers`."""
    positions: list[int] = [0, *ends.tolist()]
    if positions != sorted(positions) or positions[-1] > buffers.shape[0]:
        raise ValueError(
            f"`ends` must ascend from 0 to at most the {buffers.shape[0]} rows of `buffers`, "
            f"but is {positions[1:]}."
        )
    return positions[-1]

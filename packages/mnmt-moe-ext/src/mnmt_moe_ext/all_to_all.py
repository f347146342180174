"""The all-to-all exchange of rows between ranks: differentiable, and under way until it is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ExchangeError(RuntimeError):
    """An all-to-all between ranks failed, most often because another rank has died."""


class Transfer:
    """An all-to-all under way, of rows along the first dimension; not differentiable.

    Every rank of the group must begin its transfers in the same order.

    Args:
        rows: (sum(send), ...), the rows for rank 0 first, then those for rank 1, …
        send: The number of rows for each rank.
        receive: The number of rows from each rank.
        group: The ranks.

    Raises:
        ExchangeError: The transfer could not begin.
    """

    def __init__(self, rows: Tensor, send: Sequence[int], receive: Sequence[int], group: dist.ProcessGroup):
        self._group = group
        self._received = rows.new_empty((sum(receive), *rows.shape[1:]))
        try:
            self._work = dist.all_to_all_single(
                self._received, rows.contiguous(), list(receive), list(send), group=group, async_op=True
            )
        except RuntimeError as error:
            raise _failure(group, error) from error

    def wait(self) -> Tensor:
        """The received rows (sum(receive), ...), rank 0's first.

        On a GPU it is the current stream that waits, and not the host.

        Raises:
            ExchangeError: A rank has died or did not take part before the group's timeout.
        """
        try:
            self._work.wait()
        except RuntimeError as error:
            raise _failure(self._group, error) from error
        return self._received


def _failure(group: dist.ProcessGroup, error: RuntimeError) -> ExchangeError:
    reason = str(error).strip().partition("\n")[0]
    return ExchangeError(
        f"rank {dist.get_rank()}: the all-to-all with {group.size()} ranks failed; "
        f"another rank may have died ({reason})"
    )


class Exchange:
    """A differentiable all-to-all under way, of rows along the first dimension.

    In the backward pass `wait` begins the gradient's way back and the beginning waits for it. What autograd
    runs between the two, the gradient of whatever the forward pass ran between them, overlaps with it.

    It can be differentiated once, and repeatedly with retain_graph. Either on every rank of the group or on
    none, the rows must require a gradient and the result must be part of what is differentiated.

    Args:
        rows: (sum(send), ...), floating point, the rows for rank 0 first, then those for rank 1, …
        send: The number of rows for each rank.
        receive: The number of rows from each rank.
        group: The ranks.

    Raises:
        ExchangeError: The exchange could not begin.
    """

    def __init__(self, rows: Tensor, send: Sequence[int], receive: Sequence[int], group: dist.ProcessGroup):
        self._journey = _Journey(send, receive, group)
        self._departure: Tensor = _Begin.apply(rows, self._journey)  # type: ignore[no-untyped-call]

    def wait(self) -> Tensor:
        """The received rows (sum(receive), ...), rank 0's first; to be called once.

        Raises:
            ExchangeError: A rank has died or did not take part before the group's timeout.
        """
        received: Tensor = _End.apply(self._departure, self._journey)  # type: ignore[no-untyped-call]
        return received


class _Journey:
    """What the two ends of an exchange share; no tensor of the graph, which would then never be freed."""

    def __init__(self, send: Sequence[int], receive: Sequence[int], group: dist.ProcessGroup):
        self._send, self._receive, self._group = send, receive, group
        self._transfer: Transfer | None = None

    def begin(self, rows: Tensor) -> None:
        self._transfer = Transfer(rows, self._send, self._receive, self._group)

    def begin_backward(self, gradient: Tensor) -> None:
        self._transfer = Transfer(gradient, self._receive, self._send, self._group)

    def end(self) -> Tensor:
        transfer, self._transfer = self._transfer, None
        assert transfer is not None
        return transfer.wait()


class _Begin(Function):
    """Gives a scalar that ties the two ends together, since autograd must not touch rows still to come."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, journey: _Journey) -> Tensor:
        ctx.journey = journey
        journey.begin(rows)
        return rows.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.journey.end(), None


class _End(Function):
    @staticmethod
    def forward(ctx: Any, departure: Tensor, journey: _Journey) -> Tensor:
        ctx.journey = journey
        return journey.end()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.journey.begin_backward(gradient)
        return gradient.new_zeros(()), None

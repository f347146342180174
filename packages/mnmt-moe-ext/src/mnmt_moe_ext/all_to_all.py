"""The all-to-all exchange of rows between ranks, differentiable and asynchronous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ExchangeError(RuntimeError):
    """An all-to-all between ranks failed, most often because another rank died."""


class Transfer:
    """An asynchronous all-to-all of rows along the first dimension, without gradients.

    Every rank of the group must start its transfers in the same order.

    Args:
        rows: Rows to send, (sum(send), ...), in the order of their ranks.
        send: The number of rows for each rank.
        receive: The number of rows from each rank.
        group: The ranks.

    Raises:
        ExchangeError: The transfer could not start.
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
        """Wait for the received rows, (sum(receive), ...), in the order of their ranks.

        On a GPU the current stream waits, not the host.

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
    """An asynchronous all-to-all of rows along the first dimension, with gradients.

    In the backward pass `wait` starts the exchange of the gradient, and the constructor waits for it.
    Anything that autograd computes between the two overlaps with the exchange.

    It can be differentiated once, or several times with `retain_graph`. Whether the rows require a gradient,
    and whether the result is differentiated, must be the same on every rank of the group.

    Args:
        rows: Floating-point rows to send, (sum(send), ...), in the order of their ranks.
        send: The number of rows for each rank.
        receive: The number of rows from each rank.
        group: The ranks.

    Raises:
        ExchangeError: The exchange could not start.
    """

    def __init__(self, rows: Tensor, send: Sequence[int], receive: Sequence[int], group: dist.ProcessGroup):
        self._state = _ExchangeState(send, receive, group)
        self._token: Tensor = _Start.apply(rows, self._state)  # type: ignore[no-untyped-call]

    def wait(self) -> Tensor:
        """Wait for the received rows, (sum(receive), ...), in the order of their ranks; call this once.

        Raises:
            ExchangeError: A rank has died or did not take part before the group's timeout.
        """
        received: Tensor = _Finish.apply(self._token, self._state)  # type: ignore[no-untyped-call]
        return received


class _ExchangeState:
    """State that both ends of an exchange share.

    It holds no tensor of the graph, since the graph would then never be freed.
    """

    def __init__(self, send: Sequence[int], receive: Sequence[int], group: dist.ProcessGroup):
        self._send, self._receive, self._group = send, receive, group
        self._transfer: Transfer | None = None

    def start(self, rows: Tensor) -> None:
        self._transfer = Transfer(rows, self._send, self._receive, self._group)

    def start_backward(self, gradient: Tensor) -> None:
        self._transfer = Transfer(gradient, self._receive, self._send, self._group)

    def finish(self) -> Tensor:
        transfer, self._transfer = self._transfer, None
        assert transfer is not None
        return transfer.wait()


class _Start(Function):
    """Starts an exchange.

    Its result is a scalar that links the two ends in the graph: autograd must not touch rows that are still
    to come.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, state: _ExchangeState) -> Tensor:
        ctx.state = state
        state.start(rows)
        return rows.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.state.finish(), None


class _Finish(Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, state: _ExchangeState) -> Tensor:
        ctx.state = state
        return state.finish()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.state.start_backward(gradient)
        return gradient.new_zeros(()), None

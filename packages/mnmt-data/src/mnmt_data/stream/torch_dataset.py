"""A stream of batches as a torch data set for other trainers; the only module here that needs torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mnmt_data.errors import DataError, missing_extra
from mnmt_data.stream.batch import PAD, Batch
from mnmt_data.stream.batch_stream import BatchStream
from mnmt_data.stream.prefetch import Share

try:
    import torch
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError as missing:
    raise ImportError(f"BatchDataset {missing_extra('torch')}.") from missing

IGNORED = -100
"""Label of padding, which losses ignore."""


def model_inputs(batch: Batch) -> dict[str, torch.Tensor]:
    """Return a batch as inputs of Hugging Face's sequence-to-sequence models, which shift labels themselves.

    Returns:
        `input_ids` and `attention_mask`, 1 at tokens: (batch, src_len); `labels`, `IGNORED` at padding:
        (batch, tgt_len). All are int64.

    Raises:
        ValueError: If pairs have loss weights, which these models do not support.
    """
    if (batch.loss_weights != 1).any():
        raise ValueError(
            "the loss weights of the pairs would be ignored; give a `convert` that passes them on."
        )
    return {
        "input_ids": torch.from_numpy(batch.src),
        "attention_mask": torch.from_numpy((batch.src != PAD).astype(np.int64)),
        "labels": torch.from_numpy(np.where(batch.tgt == PAD, IGNORED, batch.tgt)),
    }


def share_of_this_process(*, accumulation: int = 1) -> Share:
    """Return the share of this rank, from `torch.distributed` if initialised, else from torchrun's variables.

    Args:
        accumulation: Pieces of each rank's part of a batch.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        rank, num_ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    else:
        rank, num_ranks = (int(os.environ.get(*name)) for name in (("RANK", "0"), ("WORLD_SIZE", "1")))
    return Share(rank=rank, num_ranks=num_ranks, accumulation=accumulation)


class BatchDataset(IterableDataset[Any]):
    """An endless data set of one rank's pieces of consecutive batches, for `DataLoader(batch_size=None)`.

    Items have the order of the stream, `share.accumulation` for each step, with any number of workers of the
    loader: worker k of n yields every n-th item from the k-th on. Each worker reads whole windows of batches,
    so that more than one or two repeat work.

    The data set keeps its position, from which iteration continues. `state_dict` and `load_state_dict` are
    for torchdata's `StatefulDataLoader`. The workers of a plain `DataLoader` are other processes, whose
    position is unknown here: `seek` to the trainer's step.

    Args:
        stream: The batches.
        share: The rank's part of each; by default `share_of_this_process()`.
        convert: Turns a `Batch` into an item.
    """

    def __init__(
        self,
        stream: BatchStream,
        share: Share | None = None,
        *,
        convert: Callable[[Batch], Any] = model_inputs,
    ) -> None:
        self.stream = stream
        self.share = share_of_this_process() if share is None else share
        self.convert = convert
        self._item = 0
        self._reader = (0, 1)
        """The worker at `_item`, and the number of workers; (0, 1) for all workers."""

    def seek(self, step: int) -> None:
        """Continue with the first item of a step, from 0."""
        self._item, self._reader = step * self.share.accumulation, (0, 1)

    def __iter__(self) -> Iterator[Any]:
        """Yield the items from the position on.

        Raises:
            DataError: If the position was saved with another number of workers, or a batch has fewer pairs
                than pieces.
        """
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        if self._reader == (0, 1):
            self._item += number
        elif self._reader != (number, workers):
            raise DataError(f"the saved position is of {self._reader[1]} workers, but there are {workers}.")
        self._reader = (number, workers)
        while True:
            step, piece = divmod(self._item, self.share.accumulation)
            batch = self.stream.share(step, self.share)[piece]
            if not len(batch.ids):
                raise DataError(f"step {step}: has fewer pairs than pieces; make `batch_tokens` larger.")
            self._item += workers
            yield self.convert(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return the position and the identity of the stream as plain values."""
        share = {"num_ranks": self.share.num_ranks, "accumulation": self.share.accumulation}
        return {"stream": self.stream.state(), "item": self._item, "reader": list(self._reader), **share}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at the position of a state of this data set, perhaps of another rank or number of ranks.

        The items of all ranks of a step are its batch, whatever their number. So after whole steps, other
        shares read the rest of the same batches.

        Raises:
            DataError: If the state is of another stream, or other shares would begin within a step.
        """
        self.stream.restore(state["stream"])
        number, workers = state["reader"]
        step, piece = divmod(state["item"], state["accumulation"])
        before, now = ((each["num_ranks"], each["accumulation"]) for each in (state, vars(self.share)))
        # One of several workers does not know how far the others are in a step of several pieces.
        if before != now and (piece or (workers > 1 and max(before[1], now[1]) > 1)):
            what = (
                f"the saved data set of {before[0]} ranks and `accumulation` {before[1]} may be within a step"
            )
            raise DataError(f"{what}; save it after a step, without workers, or `seek` to a step.")
        self._item = step * self.share.accumulation + piece
        self._reader = (number, workers)

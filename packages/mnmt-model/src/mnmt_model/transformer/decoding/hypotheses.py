"""Hypotheses of several sentences, and the sentence of each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Hypotheses:
    """Hypotheses of several sentences, a row each, and their cells in a table of sentences × hypotheses.

    In the table, all hypotheses of a sentence see one copy of its source.
    """

    sentences: Tensor
    """`(rows,)` int64, the sentence of each row."""
    cells: Tensor | None
    """`(rows,)` int64, the cell of each row in the table; None if the rows are the table."""
    batch: int
    """The number of sentences."""
    width: int
    """Columns of the table: the most hypotheses that a sentence has."""

    @classmethod
    def beams(cls, batch: int, beam: int, device: torch.device) -> Hypotheses:
        """Return `beam` hypotheses of every sentence, one sentence after the other."""
        sentences = torch.arange(batch, device=device).repeat_interleave(beam)
        return cls(sentences=sentences, cells=None, batch=batch, width=beam)

    def select(self, rows: Tensor) -> tuple[Tensor | None, Hypotheses]:
        """Select the given rows `(n,)`, which may repeat rows and leave rows out.

        Returns:
            The sentences that still have a row, or None if all do, and the rows, whose sentences are numbered
            anew.
        """
        remaining, sentences = torch.unique(self.sentences[rows], return_inverse=True)
        counts = sentences.bincount()
        width = int(counts.max()) if len(counts) else 0
        selected = Hypotheses(
            sentences=sentences, cells=_cells(sentences, counts, width), batch=len(remaining), width=width
        )
        return None if len(remaining) == self.batch else remaining, selected

    def table(self, x: Tensor) -> Tensor:
        """Lay `x (rows, features)` into the table `(batch, width, features)`, with zeros elsewhere."""
        shape = (self.batch, self.width, x.size(1))
        if self.cells is None:
            return x.view(shape)
        return x.new_zeros(self.batch * self.width, x.size(1)).index_copy_(0, self.cells, x).view(shape)

    def rows(self, table: Tensor) -> Tensor:
        """Take the rows `(rows, features)` out of a table `(batch, width, features)`."""
        flat = table.flatten(0, 1)
        return flat if self.cells is None else flat.index_select(0, self.cells)


def _cells(sentences: Tensor, counts: Tensor, width: int) -> Tensor | None:
    """Return each row's cell: behind the rows of its sentence that come before it."""
    places = torch.arange(len(sentences), device=sentences.device)
    order = sentences.argsort(stable=True)
    ranks = torch.empty_like(places)
    ranks[order] = places - (counts.cumsum(0) - counts)[sentences[order]]
    cells = sentences * width + ranks
    is_table = len(cells) == len(counts) * width and torch.equal(cells, places)
    return None if is_table else cells

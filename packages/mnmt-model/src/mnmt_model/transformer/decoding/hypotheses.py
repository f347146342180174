"""Which sentence each hypothesis is of."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Hypotheses:
    """Hypotheses of several sentences, a row each, and their places in a table of sentences × hypotheses.

    Laid into the table, all hypotheses of a sentence see one copy of its source.
    """

    sentences: Tensor
    """`(rows,)` int64, the sentence of each row."""
    cells: Tensor | None
    """`(rows,)` int64, the place of each row in the table; nothing if the rows are the table."""
    batch: int
    """Sentences."""
    width: int
    """Columns of the table: the most hypotheses that a sentence has."""

    @classmethod
    def beams(cls, batch: int, beam: int, device: torch.device) -> Hypotheses:
        """As many of every sentence, one sentence after the other."""
        sentences = torch.arange(batch, device=device).repeat_interleave(beam)
        return cls(sentences=sentences, cells=None, batch=batch, width=beam)

    def select(self, rows: Tensor) -> tuple[Tensor | None, Hypotheses]:
        """The given rows `(n,)`, which may repeat and leave out.

        Returns:
            The sentences that still have a row, which are counted anew, or nothing if all do; and the rows.
        """
        kept, sentences = torch.unique(self.sentences[rows], return_inverse=True)
        counts = sentences.bincount()
        width = int(counts.max()) if len(counts) else 0
        selected = Hypotheses(
            sentences=sentences, cells=_cells(sentences, counts, width), batch=len(kept), width=width
        )
        return None if len(kept) == self.batch else kept, selected

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
    """Each row's place: behind those of its sentence that come before it."""
    places = torch.arange(len(sentences), device=sentences.device)
    order = sentences.argsort(stable=True)
    ranks = torch.empty_like(places)
    ranks[order] = places - (counts.cumsum(0) - counts)[sentences[order]]
    cells = sentences * width + ranks
    is_table = len(cells) == len(counts) * width and torch.equal(cells, places)
    return None if is_table else cells

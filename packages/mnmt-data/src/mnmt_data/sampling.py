"""Which pair stands where in the stream: tasks in exact proportion, each task's rows in shuffled epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mnmt_data.draws import random_units, stream_key
from mnmt_data.mixture import Mixture
from mnmt_data.permutation import epoch_rows

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """The stream of examples as a pure function of the fields: any stretch is computed, none stored."""

    mixture: Mixture
    """The share of each task."""

    num_rows: Mapping[str, int]
    """{task: pairs it has}, for every task of positive weight."""

    seed: int
    """Of the choice of tasks and of the order of rows."""

    def tasks(self, start: int, count: int) -> Indices:
        """The tasks of positions `start` to `start + count`: (count,) indices into `mixture.tasks`."""
        return self.mixture.choose(random_units(stream_key(self.seed, "tasks"), start, count))

    def rows(self, task: str, start: int, count: int) -> Indices:
        """The rows that a task's draws `start` to `start + count` read: (count,).

        The order depends on seed, task and number of rows only, so it is the same in every mixture.
        """
        draws = np.arange(start, start + count, dtype=np.int64)
        return epoch_rows(draws, self.num_rows[task], stream_key(self.seed, "rows", task))

"""All ways in which damaged_segments.py reads prepared data; each returns what it read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from mnmt_data.cli.inspect import describe
from mnmt_data.store import PreparedData, open_prepared, shards
from mnmt_data.store.description import PreparedDescription
from mnmt_data.stream import MixingConfig, Mixture, SelectionConfig, eval_batches, open_stream
from mnmt_data.stream.replay import audit, describe_batch, open_recorded_stream, read_recorded_stream
from mnmt_data.stream.selection import select

TASKS = ("en-de", "de-en", "en-fr")

WAYS: Mapping[str, Mapping[str, int]] = {
    "small": {"SMALL": 2**28},
    "large": {"SMALL": 0},
    "shuffled": {"SMALL": 0, "DENSE_ROWS": 1},
    "shuffled, row by row": {"SMALL": 0, "READ_WHOLE": 0, "DENSE_ROWS": 2**30},
    "version 0.4": {"SMALL": 2**28},
    "version 0.4, large": {"SMALL": 0},
}
"""{way of reading: sizes of `mnmt_data.store.shards` that bring it about}."""


@contextmanager
def sizes_of(way: str) -> Iterator[None]:
    """Read shards in a way."""
    with patch.dict(vars(shards), WAYS[way]):
        yield


def scores(out: Path) -> dict[str, Path]:
    """Return the score files of a study."""
    return {name: out / f"{name}.parquet" for name in ("base", "tuned")}


def read_sizes(out: Path) -> object:
    """Open the data."""
    return asdict(open_prepared(out / "data").description)


def read_stream(out: Path) -> object:
    """Read an epoch of batches, and batches of another rank from further on."""
    stream, _ = open_recorded_stream(read_recorded_stream(out / "run"))
    return [batch for step in range(60) for batch in _arrays(stream.batch(step))]


def read_selected(out: Path) -> object:
    """Read batches of selected data."""
    config = MixingConfig(selection=SelectionConfig(keep=0.5))
    data = open_prepared(out / "data")
    stream = open_stream(data, Mixture({"en-de": 1.0}), config, batch_tokens=500, seed=2)
    return [batch for step in range(10) for batch in _arrays(stream.batch(step))]


def read_held_out(out: Path) -> object:
    """Read the batches of dev and test sets, and their text."""
    data = open_prepared(out / "data")
    parts: list[object] = []
    for split in ("dev", "test"):
        for task in TASKS:
            for batch in eval_batches(data.shard(split, task), batch_tokens=800):
                parts += _arrays(batch)
            parts += [data.text(split, task), data.groups(split, task) is None]
    return parts


def read_rows(out: Path) -> object:
    """Read few rows of each shard, far apart."""
    data = open_prepared(out / "data")
    parts: list[object] = []
    for task in TASKS:
        shard = data.shard("train", task)
        rows = np.arange(len(shard) - 1, 0, -37)
        parts += [side.values for side in shard.gather(rows)] + [*shard.lengths(rows)]
    return parts


def read_unsized(out: Path) -> object:
    """Read shards without a look at the sizes of files."""
    data = PreparedData(folder=out / "data", description=PreparedDescription.read(out / "data"))
    parts: list[object] = []
    for task in TASKS:
        for src, tgt in data.shard("train", task).blocks(300):
            parts += [src.values, src.offsets, tgt.values, tgt.offsets]
    return parts


def read_inspected(out: Path) -> object:
    """Describe the data, as `inspect` does."""
    return describe(open_prepared(out / "data"), samples=3)


def read_replayed(out: Path) -> object:
    """Compute again what a run read."""
    stream, data = open_recorded_stream(read_recorded_stream(out / "run"))
    return audit(stream, 7), describe_batch(stream, data, 7, samples=5)


def read_scores(out: Path) -> object:
    """Select by the scores."""
    data = open_prepared(out / "data")
    selection = select(data, "en-de", **scores(out), out=out / "selected.npy")
    return [selection.order, selection.scores]


def read_every_byte(out: Path) -> object:
    """Verify everything."""
    open_prepared(out / "data").verify()
    return None


READERS: tuple[Callable[[Path], object], ...] = (
    read_sizes,
    read_stream,
    read_selected,
    read_held_out,
    read_rows,
    read_unsized,
    read_inspected,
    read_replayed,
    read_scores,
    read_every_byte,
)


def _arrays(batch: Any) -> list[object]:
    return [batch.src, batch.tgt, batch.tasks, batch.loss_weights, batch.ids]


def digest(value: object) -> str:
    """Return a hash of what was read."""
    state = blake2b(digest_size=16)
    for part in value if isinstance(value, list) else [value]:
        state.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return state.hexdigest()

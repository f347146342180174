"""Log-probabilities of the pairs of a shard under a trained model, for data selection."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store import (
    Ragged,
    ScoreFile,
    ScoresInfo,
    atomic_file,
    open_prepared,
    score_table,
    scores_schema,
)
from mnmt_data.stream import batch_by_tokens, check_not_empty
from mnmt_model.checkpoints import newest, weights_checksum
from mnmt_model.errors import RunError
from mnmt_model.runs.load import load_run
from mnmt_model.runs.losses import pair_nats
from mnmt_model.runs.run_data import check_vocabulary, open_data
from mnmt_model.transformer.translation_model import TranslationModel

PART_PAIRS = 2**16
"""Pairs of a part: an interrupted command continues with the first missing part."""


def write_log_probs(
    run: Path,
    data: Path | None = None,
    *,
    split: str = "train",
    task: str,
    out: Path,
    batch_tokens: int = 4096,
    part_pairs: int = PART_PAIRS,
    on_pairs: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Write -log p(target | source) of every pair of a shard, in its order, under a run's newest model.

    The file is an `mnmt_data.store.ScoreFile`. It appears when all pairs are scored; until then its parts are
    beside it, and an interrupted command continues with them. A current file is not written again.

    Args:
        run: Folder of the run.
        data: Folder of prepared data with the run's vocabulary; the run's own by default.
        split: Split of the task.
        task: Task of the pairs.
        out: Parquet file to write.
        batch_tokens: Source and target tokens of a batch, padding included, or one longer pair.
            It does not change the scores.
        part_pairs: Pairs of a part.
        on_pairs: Called after each part with the numbers of finished and of all pairs.

    Raises:
        RunError: If the run has no checkpoint or another vocabulary, or an argument is out of range.
        DataError: If the data have no such shard, or it holds no pairs.
    """
    if batch_tokens < 1:
        raise RunError(f"`batch_tokens` must be at least 1, but is {batch_tokens}")
    loaded = load_run(run)
    prepared = open_prepared(data) if data else open_data(loaded.folder)
    if task not in prepared.evaluated:
        raise RunError(f"`task` must be one of {', '.join(prepared.evaluated)}, but is {task!r}")
    check_vocabulary(loaded.folder, prepared)
    shard = prepared.shard(split, task)
    check_not_empty(shard)
    info = ScoresInfo(
        run=loaded.record.run,
        step=loaded.progress.step,
        weights=weights_checksum(newest(run)),
        split=split,
        task=task,
        fingerprint=prepared.fingerprint,
    )
    if _is_current(out, info, len(shard)):
        return
    parts = _parts(out.with_name(out.name + ".parts"), len(shard), part_pairs)
    token_bytes = prepared.vocab.token_bytes
    for path, rows in parts.items():
        if not _is_current(path, info, len(rows)):
            src, tgt = shard.gather(np.arange(rows.start, rows.stop))
            nats = shard_nats(loaded.model.translation_model, src, tgt, batch_tokens=batch_tokens)
            _write(path, info, [score_table(nats, tgt.lengths, _text_bytes(tgt, token_bytes), info)])
        on_pairs(rows.stop, len(shard))
    _write(out, info, map(pq.read_table, parts))
    shutil.rmtree(out.with_name(out.name + ".parts"))


@torch.inference_mode()
def shard_nats(
    model: TranslationModel, src: Ragged, tgt: Ragged, *, batch_tokens: int
) -> NDArray[np.float32]:
    """Return `(pairs,)` -log p(target | source) in nats, `</s>` included.

    Args:
        model: The model, in evaluation mode.
        src: Token ids of the sources.
        tgt: Token ids of the targets.
        batch_tokens: Source and target tokens of a batch, padding included, or one longer pair.
    """
    nats = np.empty(len(src), dtype=np.float32)
    for rows in batch_by_tokens(src.lengths, tgt.lengths, batch_tokens=batch_tokens):
        padded = torch.from_numpy(src.padded(rows)), torch.from_numpy(tgt.padded(rows))
        nats[rows] = pair_nats(model, *padded).numpy()
    return nats


def _parts(folder: Path, pairs: int, size: int) -> dict[Path, range]:
    """Return {file: its rows}, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = (range(start, min(start + size, pairs)) for start in range(0, pairs, size))
    return {folder / f"{rows.start}-{rows.stop}.parquet": rows for rows in parts}


def _text_bytes(tgt: Ragged, token_bytes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `(pairs,)` UTF-8 bytes of each target's text, without the space before its first token."""
    sums: NDArray[np.int64] = np.add.reduceat(token_bytes[tgt.values], tgt.offsets[:-1])
    return np.maximum(sums - 1, 0)


def _is_current(path: Path, info: ScoresInfo, pairs: int) -> bool:
    """Return whether the file exists, with all scores of the same pairs under the same model."""
    try:
        file = ScoreFile.open(path)
    except DataError:
        return False
    return file.info == info and file.pairs == pairs


def _write(path: Path, info: ScoresInfo, tables: Iterable[pa.Table]) -> None:
    """Write the tables into one file."""
    schema = scores_schema(info)
    options = {"use_dictionary": ["tokens"], "write_page_checksum": True}
    with atomic_file(path) as file, pq.ParquetWriter(file, schema, **options) as writer:
        for table in tables:
            writer.write_table(table)

"""Score files: a model's log-probability of each pair of a shard.

A score file is Parquet with one row for each pair, in the order of the shard: `nats`,
-log p(target | source), and `tokens`, the target's length. `mnmt-model log-probs` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mnmt_data.errors import DataError

Rows = NDArray[np.int64]

BLOCK_ROWS = 2**20
"""Rows read at a time."""

_INFO = b"mnmt"


@dataclass(frozen=True, kw_only=True)
class ScoresInfo:
    """The model and the pairs of a score file."""

    run: str
    """Name of the run."""

    step: int
    """Training step of the checkpoint."""

    weights: str
    """SHA-256 of its weights."""

    split: str
    task: str

    fingerprint: str
    """Fingerprint of the prepared data."""


def scores_schema(info: ScoresInfo) -> pa.Schema:
    """Return the columns of a score file, with `info` as metadata.

    `nats` is -log p(target | source), `tokens` the target's tokens with `</s>`, `bytes` its text's in UTF-8.
    Nats per token compare pairs under one vocabulary, nats per byte also under different ones.
    """
    numbers = [pa.field(name, pa.int32()) for name in ("tokens", "bytes")]
    scores = [pa.field(name, pa.float32()) for name in ("nats", "nats_per_token", "nats_per_byte")]
    return pa.schema([*scores, *numbers], metadata={_INFO: json.dumps(asdict(info))})


def score_table(nats: NDArray[np.floating], tokens: Rows, text_bytes: Rows, info: ScoresInfo) -> pa.Table:
    """Return the rows of a score file, computed from nats, tokens and bytes of the pairs: (pairs,) each."""
    columns = {
        "nats": nats,
        "nats_per_token": nats / np.maximum(tokens, 1),
        "nats_per_byte": nats / np.maximum(text_bytes, 1),
        "tokens": tokens,
        "bytes": text_bytes,
    }
    return pa.table(columns).cast(scores_schema(info))


@dataclass(frozen=True, kw_only=True)
class ScoreFile:
    """A model's scores of the pairs of a shard."""

    path: Path
    info: ScoresInfo
    pairs: int

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the description of a score file.

        Raises:
            DataError: If it is missing or not a score file.
        """
        with _explain(path), pq.ParquetFile(path) as file:
            info = ScoresInfo(**json.loads(file.schema_arrow.metadata[_INFO]))
            return cls(path=path, info=info, pairs=file.metadata.num_rows)

    def per_token(self) -> Iterator[NDArray[np.float64]]:
        """Yield log-probabilities of the targets in nats per token, a block of pairs at a time.

        Raises:
            DataError: If the file is damaged.
        """
        pairs = 0
        with _explain(self.path), pq.ParquetFile(self.path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(BLOCK_ROWS, columns=["nats", "tokens"]):
                nats, tokens = (batch.column(name).to_numpy(zero_copy_only=False) for name in (0, 1))
                pairs += len(batch)
                yield -nats.astype(np.float64) / np.maximum(tokens, 1)
        if pairs != self.pairs:
            raise DataError(f"{self.path}: must score {self.pairs} pairs, not {pairs}; score them again.")

    def nats_and_tokens(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return -log p(target | source) in nats, and the target's tokens, of every pair: (pairs,) each.

        Raises:
            DataError: If the file is damaged.
        """
        with _explain(self.path):
            table = pq.read_table(self.path, columns=["nats", "tokens"], page_checksum_verification=True)
            return table["nats"].to_numpy().astype(np.float64), table["tokens"].to_numpy().astype(np.int64)


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged file into a DataError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such score file; `mnmt-model log-probs` writes them.") from None
    except (pa.ArrowInvalid, KeyError, TypeError, ValueError):
        what = "not a score file, or a damaged one; give one that `mnmt-model log-probs` wrote"
        raise DataError(f"{path}: {what}.") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path}: cannot be read as a score file ({reason}); score the pairs again."
        ) from None

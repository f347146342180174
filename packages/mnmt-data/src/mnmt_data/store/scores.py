"""Scores of training pairs from other tools: one .npy file beside each segment, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file

Scores = NDArray[np.float32]


def score_path(segment: Path, name: str) -> Path:
    """Return the path of a score of the pairs of a segment: `00000.bicleaner.npy`."""
    return segment.with_suffix(f".{name}.npy")


def write_scores(segment: Path, scores: Mapping[str, Scores]) -> None:
    """Write {score: (pairs,)} of the pairs of a segment."""
    for name, values in scores.items():
        with atomic_file(score_path(segment, name)) as file:
            np.save(file, values.astype(np.float32))


def read_scores(path: Path) -> Scores:
    """Map a score of the pairs of a segment: (pairs,).

    Raises:
        DataError: If the file is missing or broken.
    """
    try:
        scores: Scores = np.load(path, mmap_mode="r")
    except (OSError, EOFError, ValueError, TokenError) as error:
        raise DataError(f"{path}: cannot be read ({error}); remove it and prepare again.") from None
    return scores

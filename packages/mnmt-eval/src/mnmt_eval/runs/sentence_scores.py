"""Metrics' statistics of every sentence, stored beside a run's translations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import atomic_file


@dataclass(frozen=True, kw_only=True)
class SentenceScores:
    """A metric's statistics of every sentence, with everything that they depend on."""

    statistics: NDArray[np.float64]
    """(sentences, k): what the metric needs of each sentence to score any set of them."""

    metric: str
    """The metric's signature."""

    step: int
    """The step of the model that translated."""

    search: str
    """The signature of the search and of which sentences were translated."""

    translations: str
    """The checksum of the translations."""

    text: str
    """The checksum of sources and references."""


def scores_path(folder: Path, testset: str, task: str, metric: str) -> Path:
    """Return the path of a run's statistics of a test set."""
    return folder / "scores" / f"{testset}.{task}.{metric}.npz"


def write_scores(path: Path, scores: SentenceScores) -> None:
    """Write the statistics as a file that appears complete or not at all."""
    path.parent.mkdir(exist_ok=True)
    with atomic_file(path) as file:
        np.savez_compressed(
            file,
            statistics=scores.statistics,
            metric=np.array(scores.metric),
            step=np.array(scores.step),
            search=np.array(scores.search),
            translations=np.array(scores.translations),
            text=np.array(scores.text),
        )


def read_scores(path: Path) -> SentenceScores | None:
    """Read what `write_scores` wrote; return None if the file is missing or damaged."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return SentenceScores(
                statistics=np.asarray(arrays["statistics"], dtype=np.float64),
                metric=str(arrays["metric"]),
                step=int(arrays["step"]),
                search=str(arrays["search"]),
                translations=str(arrays["translations"]),
                text=str(arrays["text"]),
            )
    except Exception:  # whatever numpy, zipfile and zlib make of damaged bytes
        return None

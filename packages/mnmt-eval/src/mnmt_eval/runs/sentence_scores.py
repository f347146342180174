"""Per-sentence statistics of metrics, kept beside a run's translations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import atomic_file


@dataclass(frozen=True, kw_only=True)
class SentenceScores:
    """What a metric found in each sentence, with all that it depends on."""

    statistics: NDArray[np.float64]
    """(sentences, k): what the metric needs of each sentence to score any set of them."""

    metric: str
    """The metric's signature."""

    step: int
    """Of the model that translated."""

    search: str
    """Signature of the search and of which sentences were translated."""

    translations: str
    """Checksum of the translations."""

    text: str
    """Checksum of sources and references."""


def scores_path(folder: Path, testset: str, task: str, metric: str) -> Path:
    """Where a run's statistics of a test set are."""
    return folder / "scores" / f"{testset}.{task}.{metric}.npz"


def write_scores(path: Path, scores: SentenceScores) -> None:
    """Write the statistics, as a file that appears whole."""
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
    """What `write_scores` wrote; None where there is nothing, or nothing that can be read."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return SentenceScores(
                statistics=np.asarray(kept["statistics"], dtype=np.float64),
                metric=str(kept["metric"]),
                step=int(kept["step"]),
                search=str(kept["search"]),
                translations=str(kept["translations"]),
                text=str(kept["text"]),
            )
    except Exception:  # whatever numpy, zipfile and zlib make of damaged bytes
        return None

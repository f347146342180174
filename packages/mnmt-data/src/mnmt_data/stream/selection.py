"""Data selection: order pairs by a model's gain on them from trusted text (Wang et al. 2018)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError
from mnmt_data.store.atomic_file import atomic_file, checksum, write_json
from mnmt_data.store.prepared import PreparedData
from mnmt_data.store.score_file import ScoreFile

Scores = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class SelectedShare:
    """A share of the pairs."""

    share: float
    pairs: int

    lowest: float
    """Lowest score among them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """The pairs of a shard in order."""

    order: Rows
    """(pairs,) rows, best first; ties by row."""

    scores: Scores
    """(pairs,) by row: in nats per token, or scores from another tool."""

    def best(self, share: float) -> SelectedShare:
        """Return the number of pairs in a share of the best, and the lowest score among them."""
        pairs = max(1, round(share * len(self.order)))
        return SelectedShare(share=share, pairs=pairs, lowest=float(self.scores[self.order[pairs - 1]]))


def select(data: PreparedData, task: str, *, base: Path | None, tuned: Path | None, out: Path) -> Selection:
    """Order the training pairs of a task, and write the order.

    A pair's score is `(log p_tuned(y|x) - log p_base(y|x)) / |y|`, or `log p(y|x) / |y|` if one file is
    given. `out` is an array of int64 rows that can be mapped; beside it are written `NAME.scores.npy`, the
    scores, and `NAME.json`, their origin and the checksum of the order.

    Args:
        data: The data that were scored.
        task: The task.
        base: Scores under the model trained on all pairs.
        tuned: Scores under that model, tuned on trusted pairs.
        out: File of the order.

    Raises:
        DataError: If a score file is missing, is of other pairs, or a score is not a finite number.
        ValueError: If neither file is given.
    """
    files = _open_files(base, tuned)
    for file in files.values():
        _check(file, data, task)
    scores = pair_scores(base=base, tuned=tuned)
    origin = {"score": "contrast" if len(files) == 2 else "plain"}
    return _write_order(out, scores, origin | {name: asdict(file.info) for name, file in files.items()})


def select_by(data: PreparedData, task: str, name: str, *, out: Path) -> Selection:
    """Order the training pairs of a task by a score from another tool, and write the order.

    Args:
        data: The data, prepared with the score.
        task: The task.
        name: The score, of `[data.scores]`.
        out: File of the order; scores and origin are written beside it, as by `select`.

    Raises:
        DataError: If the data have no such score, or a file of it is missing or broken.
    """
    scores = np.concatenate(list(data.scores(task, name)))
    return _write_order(out, scores, {"score": name, "fingerprint": data.fingerprint})


def _write_order(out: Path, scores: Scores, origin: dict[str, Any]) -> Selection:
    """Write scores, rows by score, the scores' origin, and a checksum of the order."""
    out.parent.mkdir(parents=True, exist_ok=True)
    order = best_first(scores)
    for path, values in ((out.with_suffix(".scores.npy"), scores), (out, order)):
        with atomic_file(path) as file:
            np.save(file, values)
    write_json(out.with_suffix(".json"), {**origin, "sha256": checksum(out)})
    return Selection(order=order, scores=scores)


def pair_scores(*, base: Path | None, tuned: Path | None) -> Scores:
    """Return the score of every pair (see `select`): (pairs,).

    Raises:
        DataError: If a file is missing, the two are of different pairs, or a score is not a finite number.
        ValueError: If neither file is given.
    """
    files = list(_open_files(base, tuned).values())
    if len({(f.info.split, f.info.task, f.info.fingerprint, f.pairs) for f in files}) > 1:
        raise DataError(f"{files[0].path}: is of other pairs than {files[1].path}; score the same with both.")
    scores = np.zeros(files[0].pairs, dtype=np.float32)
    for file, sign in zip(files, (1, -1), strict=False):
        _add(file, sign, scores)
    return scores


def best_first(scores: Scores) -> Rows:
    """Return rows by descending score, ties in order of rows: (pairs,).

    Args:
        scores: (pairs,) finite.
    """
    return np.argsort(-scores, kind="stable")


def _open_files(base: Path | None, tuned: Path | None) -> dict[str, ScoreFile]:
    """Open the given files: `tuned` first, then `base`, which is subtracted if both are given."""
    paths = {"tuned": tuned, "base": base}
    files = {name: ScoreFile.open(path) for name, path in paths.items() if path is not None}
    if not files:
        raise ValueError("`base` or `tuned` must be given.")
    return files


def _check(file: ScoreFile, data: PreparedData, task: str) -> None:
    if (file.info.split, file.info.task) != ("train", task):
        raise DataError(
            f"{file.path}: scores {file.info.split} of {file.info.task}, but must score train of {task}."
        )
    pairs = len(data.shard("train", task))
    if file.info.fingerprint != data.fingerprint or file.pairs != pairs:
        raise DataError(f"{file.path}: scores other data than {data.folder} ({pairs:,} pairs); score these.")


def _add(file: ScoreFile, sign: int, scores: Scores) -> None:
    end = 0
    for block in file.per_token():
        start, end = end, end + len(block)
        scores[start:end] += sign * block
        wrong = np.flatnonzero(~np.isfinite(scores[start:end]))
        if wrong.size:
            row = start + int(wrong[0])
            raise DataError(
                f"{file.path}: row {row}: its score is {scores[row]}, but must be a finite number."
            )

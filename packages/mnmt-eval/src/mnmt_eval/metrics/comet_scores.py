"""COMET scores that someone has computed already."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError


class CometScores:
    """A file of COMET scores."""

    def __init__(self, path: Path, *, model: str | None) -> None:
        """Say where they are.

        Args:
            path: The file, see `read_comet_scores`.
            model: The model that gave them, if known.

        Raises:
            EvalError: If there is no such file.
        """
        if not path.is_file():
            raise EvalError(f"{path}: no such file of COMET scores.")
        self._path = path
        self._model = model or "unstated"

    @cached_property
    def settings(self) -> dict[str, str]:
        """For the signature: the model, and the first digits of the file's SHA-256."""
        return {"model": self._model, "scores": sha256(self._path.read_bytes()).hexdigest()[:12]}

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str] | None, sources: Sequence[str]
    ) -> list[float]:
        """The scores of `hypotheses`; see `read_comet_scores`."""
        return read_comet_scores(self._path, hypotheses)


def names_outputs(path: Path) -> bool:
    """Whether a file of scores holds the outputs that were scored, so that it may be of several systems."""
    with path.open("rb") as file:
        return file.read(1) == b"{"


def read_comet_scores(path: Path, hypotheses: Sequence[str]) -> list[float]:
    """The scores of `hypotheses`.

    Args:
        path: A score a line; or what `comet-score --to_json` wrote, which holds the outputs that were scored,
            so that the system meant is found among several, and scores of other outputs are refused.
        hypotheses: A system's output.

    Raises:
        EvalError: If the file cannot be read, or its scores are not those of `hypotheses`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvalError(f"{path}: cannot be read: {error}.") from None
    scores = _from_json(path, text, hypotheses) if text.startswith("{") else _from_lines(path, text)
    if len(scores) != len(hypotheses):
        raise EvalError(
            f"{path}: must have a score for each of {len(hypotheses)} sentences, but has {len(scores)}."
        )
    return scores


def as_comet_reads(line: str) -> str:
    """A line as `comet-score` sees it, which would end it at a carriage return."""
    return line.replace("\r", " ").strip()


def _from_lines(path: Path, text: str) -> list[float]:
    scores = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            scores.append(float(line))
        except ValueError:
            raise EvalError(f"{path}:{number}: must be a score, but is {line!r}.") from None
    return scores


def _from_json(path: Path, text: str, hypotheses: Sequence[str]) -> list[float]:
    wanted = [as_comet_reads(line) for line in hypotheses]
    try:
        systems: dict[str, list[dict[str, Any]]] = json.loads(text)
        for segments in systems.values():
            if [segment["mt"] for segment in segments] == wanted:
                return [float(segment["COMET"]) for segment in segments]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EvalError(f"{path}: not what `comet-score --to_json` writes.") from None
    raise EvalError(
        f"{path}: must hold scores of this output, but holds those of {', '.join(systems) or 'none'}."
    )

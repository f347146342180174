"""COMET, with scores from a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import CometConfig
from mnmt_eval.metrics.protocol import MeanMetric, make_signature


class Comet(MeanMetric):
    """The mean of COMET's scores (Rei et al. 2020), read from a file.

    unbabel-comet and this package cannot share an environment: it needs numpy below 2.
    """

    def __init__(self, config: CometConfig, *, num_references: int = 1) -> None:
        """Check the file.

        Args:
            config: The file, and the model that computed its scores.
            num_references: 1, or 0 for a model that takes none.

        Raises:
            EvalError: If no file is named, or it does not exist.
        """
        if num_references > 1:
            raise EvalError(f"comet: must have at most 1 reference a sentence, but has {num_references}.")
        super().__init__(num_references=num_references)
        if config.scores is None:
            raise EvalError("comet: must have `scores`, a file such as `comet-score --to_json` writes.")
        if not config.scores.is_file():
            raise EvalError(f"{config.scores}: no such file of COMET scores.")
        self._path, self._model = config.scores, config.model or "unstated"

    @property
    def name(self) -> str:
        """`comet`."""
        return "comet"

    @property
    def signature(self) -> str:
        """The model, and the first digits of the file's SHA-256."""
        digest = sha256(self._path.read_bytes()).hexdigest()[:12]
        return make_signature(nrefs=self._num_references, model=self._model, scores=digest)

    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        return read_comet_scores(self._path, hypotheses)


def contains_outputs(path: Path) -> bool:
    """Return whether a file of scores contains the scored outputs, so that it may be of several systems."""
    with path.open("rb") as file:
        return file.read(1) == b"{"


def read_comet_scores(path: Path, hypotheses: Sequence[str]) -> list[float]:
    """Return the scores of `hypotheses`.

    Args:
        path: A file with a score a line; or what `comet-score --to_json` wrote. That contains the scored
            outputs, so that the right system is found among several, and scores of other outputs are refused.
        hypotheses: A system's output.

    Raises:
        EvalError: If the file cannot be read, or its scores are not those of `hypotheses`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvalError(f"{path}: cannot be read: {error}.") from None
    scores = _parse_json(path, text, hypotheses) if text.startswith("{") else _parse_lines(path, text)
    if len(scores) != len(hypotheses):
        raise EvalError(
            f"{path}: must have a score for each of {len(hypotheses)} sentences, but has {len(scores)}."
        )
    return scores


def _parse_lines(path: Path, text: str) -> list[float]:
    scores = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            scores.append(float(line))
        except ValueError:
            raise EvalError(f"{path}:{number}: must be a score, but is {line!r}.") from None
    return scores


def _parse_json(path: Path, text: str, hypotheses: Sequence[str]) -> list[float]:
    outputs = [_as_comet_reads(line) for line in hypotheses]
    try:
        systems: dict[str, list[dict[str, Any]]] = json.loads(text)
        for segments in systems.values():
            if [segment["mt"] for segment in segments] == outputs:
                return [float(segment["COMET"]) for segment in segments]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EvalError(f"{path}: not what `comet-score --to_json` writes.") from None
    raise EvalError(
        f"{path}: must hold scores of this output, but holds those of {', '.join(systems) or 'none'}."
    )


def _as_comet_reads(line: str) -> str:
    """Return a line as `comet-score` sees it, which would end it at a carriage return."""
    return line.replace("\r", " ").strip()

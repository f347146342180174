"""COMET, with scores from files."""

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
    """The mean of COMET's scores (Rei et al. 2020), read from files.

    unbabel-comet and this package cannot share an environment: it needs numpy below 2.
    """

    def __init__(self, config: CometConfig, *, num_references: int = 1) -> None:
        """Check the files.

        Args:
            config: The files, and the model that computed their scores.
            num_references: 1, or 0 for a model that takes none.

        Raises:
            EvalError: If no file is named, or one does not exist.
        """
        if num_references > 1:
            raise EvalError(f"comet: must have at most 1 reference a sentence, but has {num_references}.")
        super().__init__(num_references=num_references)
        if not config.scores:
            raise EvalError("comet: must have `scores`, a file that `comet-score --to_json` wrote.")
        for path in config.scores:
            if not path.is_file():
                raise EvalError(f"{path}: no such file of COMET scores.")
        self._paths, self._model = config.scores, config.model or "unstated"

    @property
    def name(self) -> str:
        """`comet`."""
        return "comet"

    @property
    def signature(self) -> str:
        """The model, and the first digits of the files' SHA-256."""
        digest = sha256(b"".join(path.read_bytes() for path in self._paths)).hexdigest()[:12]
        return make_signature(nrefs=self._num_references, model=self._model, scores=digest)

    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        return read_comet_scores(self._paths, hypotheses)


def read_comet_scores(paths: Sequence[Path], hypotheses: Sequence[str]) -> list[float]:
    """Return the scores of `hypotheses`.

    Args:
        paths: Files that `comet-score --to_json` wrote. They contain the scored outputs, so that the right
            system is found among several, and scores of other outputs are refused.
        hypotheses: A system's output.

    Raises:
        EvalError: If a file cannot be read, or none holds scores of `hypotheses`.
    """
    outputs = [_as_comet_reads(line) for line in hypotheses]
    names: list[str] = []
    for path in paths:
        try:
            systems: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
            for segments in systems.values():
                if [segment["mt"] for segment in segments] == outputs:
                    return [float(segment["COMET"]) for segment in segments]
        except OSError as error:
            raise EvalError(f"{path}: cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise EvalError(f"{path}: not what `comet-score --to_json` writes.") from None
        names += systems
    raise EvalError(
        f"{paths[0]}: must hold scores of this output, but holds those of {', '.join(names) or 'none'}."
    )


def _as_comet_reads(line: str) -> str:
    """Return a line as `comet-score` sees it, which would end it at a carriage return."""
    return line.replace("\r", " ").strip()

"""COMET, with scores from a file or from `comet-score` in another environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import CometConfig
from mnmt_eval.metrics.protocol import MeanMetric, make_signature

_DEFAULT_MODEL = "Unbabel/wmt22-comet-da"
_OPTIONS = ("--gpus", "0", "--batch_size", "16", "--quiet", "--only_system")
_PRINT_VERSION = "from importlib.metadata import version; print(version('unbabel-comet'))"


class Comet(MeanMetric):
    """The mean of COMET's scores (Rei et al. 2020), read from a file or computed in another environment.

    unbabel-comet 2.2 and this package cannot share one: it needs transformers below 5 and numpy below 2.
    """

    def __init__(self, config: CometConfig, *, num_references: int = 1) -> None:
        """Choose the file, or the Python to run.

        Args:
            config: The source of the scores.
            num_references: 1, or 0 for a model that takes none.

        Raises:
            EvalError: If neither is named, or it does not exist.
        """
        if num_references > 1:
            raise EvalError(f"comet: must have at most 1 reference a sentence, but has {num_references}.")
        super().__init__(num_references=num_references)
        self._source = _score_source(config)

    @property
    def name(self) -> str:
        """`comet`."""
        return "comet"

    @property
    def signature(self) -> str:
        """The model, and unbabel-comet's version or the file's checksum."""
        return make_signature(nrefs=self._num_references, **self._source.settings)

    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        return self._source.score(hypotheses, references[0] if references else None, sources)


class CometScores:
    """A file of COMET scores."""

    def __init__(self, path: Path, *, model: str | None) -> None:
        """Check that the file exists.

        Args:
            path: The file, see `read_comet_scores`.
            model: The model that computed the scores, if known.

        Raises:
            EvalError: If there is no such file.
        """
        if not path.is_file():
            raise EvalError(f"{path}: no such file of COMET scores.")
        self._path = path
        self._model = model or "unstated"

    @cached_property
    def settings(self) -> dict[str, str]:
        """The signature's settings: the model, and the first digits of the file's SHA-256."""
        return {"model": self._model, "scores": sha256(self._path.read_bytes()).hexdigest()[:12]}

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str] | None, sources: Sequence[str]
    ) -> list[float]:
        """Return the scores of `hypotheses`; see `read_comet_scores`."""
        return read_comet_scores(self._path, hypotheses)


class CometCommand:
    """`comet-score`, run by the Python of another environment."""

    def __init__(self, python: Path, *, model: str | None) -> None:
        """Check that the Python exists.

        Args:
            python: An interpreter that has unbabel-comet.
            model: The model; by default `Unbabel/wmt22-comet-da`.

        Raises:
            EvalError: If there is no such Python.
        """
        if not python.is_file():
            raise EvalError(f"{python}: no Python here; name that of an environment with unbabel-comet.")
        self._python = str(python)
        self._model = model or _DEFAULT_MODEL

    @cached_property
    def settings(self) -> dict[str, str]:
        """The signature's settings: the model, and unbabel-comet's version.

        Raises:
            EvalError: If it is not installed there.
        """
        return {"model": self._model, "version": f"unbabel-comet-{self._run('-c', _PRINT_VERSION).strip()}"}

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str] | None, sources: Sequence[str]
    ) -> list[float]:
        """Return the score of each sentence.

        Raises:
            EvalError: If there are no sources, or the command fails.
        """
        if not sources:
            raise EvalError("comet: must have the sources, but has none.")
        texts = {"--sources": sources, "--translations": hypotheses, "--references": references}
        with TemporaryDirectory() as folder:
            arguments = ["--model", self._model, *_OPTIONS]
            for option, sentences in texts.items():
                if sentences is not None:
                    arguments += [option, str(_write_lines(Path(folder) / option.strip("-"), sentences))]
            scores = Path(folder) / "scores.json"
            self._run("-m", "comet.cli.score", *arguments, "--to_json", str(scores))
            return read_comet_scores(scores, hypotheses)

    def _run(self, *arguments: str) -> str:
        try:
            process = subprocess.run(
                [self._python, *arguments], check=False, capture_output=True, text=True, encoding="utf-8"
            )
        except OSError as error:
            raise EvalError(f"{self._python}: cannot be run: {error.strerror}.") from None
        if process.returncode:
            complaint = process.stderr.strip().rpartition("\n")[-1] or f"exit status {process.returncode}"
            raise EvalError(f"comet: {self._python} failed: {complaint}")
        return process.stdout


def _score_source(config: CometConfig) -> CometScores | CometCommand:
    if config.scores:
        return CometScores(config.scores, model=config.model)
    if config.python:
        return CometCommand(config.python, model=config.model)
    raise EvalError(
        "comet: must have `scores`, a file, or `python`, that of an environment with unbabel-comet."
    )


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


def _write_lines(path: Path, sentences: Sequence[str]) -> Path:
    lines = "".join(f"{_as_comet_reads(line)}\n" for line in sentences)
    path.write_text(lines, encoding="utf-8", newline="\n")
    return path

"""`comet-score` in an environment of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.comet_scores import as_comet_reads, read_comet_scores

_DEFAULT_MODEL = "Unbabel/wmt22-comet-da"
_PRINT_VERSION = "from importlib.metadata import version; print(version('unbabel-comet'))"


class CometCommand:
    """`comet-score`, run by the Python of another environment."""

    def __init__(self, python: Path, *, model: str | None, gpus: int, batch_sentences: int) -> None:
        """Say how to run it.

        Args:
            python: An interpreter that has unbabel-comet.
            model: The model; `comet-score`'s own choice if none is named.
            gpus: GPUs to use.
            batch_sentences: Sentences scored at a time.

        Raises:
            EvalError: If there is no such Python.
        """
        if not python.is_file():
            raise EvalError(f"{python}: no Python here; name that of an environment with unbabel-comet.")
        self._python = str(python)
        self._model = model or _DEFAULT_MODEL
        self._options = [
            "--gpus",
            str(gpus),
            "--batch_size",
            str(batch_sentences),
            "--quiet",
            "--only_system",
        ]

    @cached_property
    def settings(self) -> dict[str, str]:
        """For the signature: the model, and unbabel-comet's version.

        Raises:
            EvalError: If it is not installed there.
        """
        return {"model": self._model, "version": f"unbabel-comet-{self._run('-c', _PRINT_VERSION).strip()}"}

    def score(
        self, hypotheses: Sequence[str], references: Sequence[str] | None, sources: Sequence[str]
    ) -> list[float]:
        """The score of each sentence.

        Raises:
            EvalError: If there are no sources, or the command fails.
        """
        if not sources:
            raise EvalError("comet: must have the sources, but has none.")
        texts = {"--sources": sources, "--translations": hypotheses, "--references": references}
        with TemporaryDirectory() as folder:
            arguments = ["--model", self._model, *self._options]
            for option, sentences in texts.items():
                if sentences is not None:
                    arguments += [option, str(_write(Path(folder) / option.strip("-"), sentences))]
            scores = Path(folder) / "scores.json"
            self._run("-m", "comet.cli.score", *arguments, "--to_json", str(scores))
            return read_comet_scores(scores, hypotheses)

    def _run(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [self._python, *arguments], check=False, capture_output=True, text=True, encoding="utf-8"
            )
        except OSError as error:
            raise EvalError(f"{self._python}: cannot be run: {error.strerror}.") from None
        if done.returncode:
            complaint = done.stderr.strip().rpartition("\n")[-1] or f"exit status {done.returncode}"
            raise EvalError(f"comet: {self._python} failed: {complaint}")
        return done.stdout


def _write(path: Path, sentences: Sequence[str]) -> Path:
    path.write_text(
        "".join(f"{as_comet_reads(line)}\n" for line in sentences), encoding="utf-8", newline="\n"
    )
    return path

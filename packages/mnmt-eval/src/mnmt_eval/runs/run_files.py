"""Files that scoring stores in a run's folder: translations, and metrics' statistics of every sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mnmt_data.store import checksum, write_json
from mnmt_eval.errors import EvalError
from mnmt_eval.runs.texts import ReferenceText
from mnmt_eval.translate.lines import number_lines
from mnmt_eval.translate.outputs import FileOutput, record_path
from mnmt_eval.translate.translation import Translation

RUN = "run.json"
"""The record that mnmt-model writes; a folder that has it is a run."""

EXPERTS = "experts"
"""The folder in a run where mnmt-model writes the choices of experts."""

CHUNK = 1024
"""The number of sentences that are translated and then written together."""

SENTENCES = "sentences"
"""The last key of a signature: `sentences:200`, or `sentences:all`."""

TranslateLines = Callable[[Sequence[str]], Sequence[Translation]]


@dataclass(frozen=True, kw_only=True)
class Description:
    """The content of `translations/TESTSET.TASK.json`: how the translations beside it were made."""

    step: int
    search: str
    key: str
    """A checksum of every setting that changes the translations."""
    sha256: str
    """The checksum of the translations."""


@dataclass(frozen=True, kw_only=True)
class StoredTranslations:
    """`translations/TESTSET.TASK.txt` of a run, a line a sentence, and `.json` with how it was made."""

    folder: Path
    text: ReferenceText
    step: int
    """The step of the model that translates."""
    search: str
    """The signature of the search and of the translated sentences."""

    @property
    def path(self) -> Path:
        """The file of complete translations."""
        return translations_path(self.folder, self.text.testset, self.text.task)

    def get(
        self, translate: TranslateLines, *, on_existing: Callable[[int], object] = lambda lines: None
    ) -> list[str]:
        """Return the stored translations if their settings are the same; else translate, chunk by chunk.

        Each chunk is on the disk once it is translated, and chunks start at the same sentences whether or not
        there was an interruption, so an interrupted run ends with the same lines.

        Args:
            translate: A function that translates lines.
            on_existing: A function that is called with the number of sentences that need no translating.

        Raises:
            EvalError: If another process translates the same text for the same run.
        """
        lines = self._read_complete()
        self._remove_partial_files(but=self._partial if lines is None else None)
        if lines is None:
            self._translate(translate, on_existing)
            return self._finish()
        on_existing(len(lines))
        return lines

    def _read_complete(self) -> list[str] | None:
        description = read_description(self.folder, self.text.testset, self.text.task)
        if description is None or description.key != self._key or not self.path.is_file():
            return None
        content = self.path.read_bytes()
        return _lines(content) if _sha256(content) == description.sha256 else None

    def _translate(self, translate: TranslateLines, on_existing: Callable[[int], object]) -> None:
        """Translate the lines that the partial file lacks."""
        with closing(FileOutput(self._partial, "text", {"key": self._key})) as output:
            on_existing(output.lines)
            lines = output.skip_written(number_lines(self.text.src, target=self.text.target))
            while chunk := list(islice(lines, CHUNK)):
                translations = translate([line.text for line in chunk])
                output.write(list(zip(chunk, translations, strict=True)))

    def _finish(self) -> list[str]:
        """Rename the partial file; a kill between the two files leaves it complete under its old name."""
        content = self._partial.read_bytes()
        description = Description(step=self.step, search=self.search, key=self._key, sha256=_sha256(content))
        write_json(_description_path(self.path), asdict(description))
        self._partial.replace(self.path)
        record_path(self._partial).unlink()
        return _lines(content)

    def _remove_partial_files(self, *, but: Path | None) -> None:
        """Remove partial files of the same test set that cannot be resumed, and their records."""
        resumable = (but, record_path(but)) if but and record_path(but).is_file() else ()
        for path in self.path.parent.glob(f".{self.path.stem}.*.partial*"):
            if path not in resumable:
                path.unlink()

    @property
    def _key(self) -> str:
        """A checksum of every setting that changes the translations."""
        settings = json.dumps([self.step, self.search, self.text.task, *self.text.src])
        return _sha256(settings.encode())[:16]

    @property
    def _partial(self) -> Path:
        return self.path.with_name(f".{self.path.stem}.{self._key}.partial")


def scored_sentences(signature: str | None) -> int | None:
    """Return the number of scored sentences that a signature states; None for the whole test set."""
    name, _, count = (signature or "").rpartition("|")[2].partition(":")
    return int(count) if name == SENTENCES and count.isdecimal() else None


def translations_path(folder: Path, testset: str, task: str) -> Path:
    """Return the path of a run's translations of a test set."""
    return folder / "translations" / f"{testset}.{task}.txt"


def read_description(folder: Path, testset: str, task: str) -> Description | None:
    """Read how a run's translations of a test set were made; return None if no file says so."""
    path = _description_path(translations_path(folder, testset, task))
    try:
        return Description(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def check_translations(folder: Path, testset: str, task: str) -> None:
    """Refuse translations that have changed since the record beside them was written.

    Raises:
        EvalError: If their checksum is not the recorded one.
    """
    path = translations_path(folder, testset, task)
    description = read_description(folder, testset, task)
    if description is not None and checksum(path) != description.sha256:
        record = _description_path(path).name
        raise EvalError(f"{path}: is not the file that {record} describes; run `mnmt-eval score` again.")


def _description_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8").split("\n")[:-1]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, kw_only=True)
class SentenceScores:
    """A metric's statistics of every sentence, with everything that they depend on; see `write_record`."""

    statistics: NDArray[np.float64]
    """(sentences, k); sums of them score any set of sentences."""
    metric: str
    step: int
    """The step of the model that translated."""
    search: str
    """The signature of the search and of the translated sentences."""
    translations: str
    """The checksum of the translations."""
    text: str
    """The checksum of sources and references."""


def scores_path(folder: Path, testset: str, task: str, metric: str) -> Path:
    """Return the path of a run's statistics of a test set."""
    return folder / "scores" / f"{testset}.{task}.{metric}.npz"

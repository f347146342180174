"""A run's translations of a test set: kept in its folder, and taken up where an interruption left them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnmt_data.store import write_json
from mnmt_eval.runs.texts import ParallelText

CHUNK = 1024
"""Sentences translated between one time that translations are written and the next."""

SENTENCES = "sentences"
"""What the last part of a signature tells: `sentences:200`, or `sentences:all`."""

TranslateLines = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class KeptTranslations:
    """`translations/TESTSET.TASK.txt` of a run, a line a sentence, and `.json`: how it was made."""

    folder: Path
    """The run's."""

    text: ParallelText
    step: int
    """Of the model that translates."""

    search: str
    """Signature of the search and of which sentences are translated."""

    @property
    def path(self) -> Path:
        """Where complete translations are."""
        return translations_path(self.folder, self.text.testset, self.text.task)

    def get(
        self, translate: TranslateLines, *, on_kept: Callable[[int], object] = lambda lines: None
    ) -> list[str]:
        """The translations: those kept, if they were made exactly so; else made now, chunk by chunk.

        Each chunk is on the disk once it is translated, and chunks start at the same sentences whether or not
        there was an interruption, so an interrupted run ends with the same lines. No other process may do so
        at the same time.

        Args:
            translate: Translates lines.
            on_kept: Called with the number of sentences that need no translating.
        """
        if (kept := self._complete()) is not None:
            self._discard_begun()
            on_kept(len(kept))
            return kept
        self._discard_begun(but=self._partial)
        done = self._begun()
        on_kept(len(done))
        for start in range(len(done), len(self.text.src), CHUNK):
            lines = list(translate(self.text.src[start : start + CHUNK]))
            self._append(lines)
            done += lines
        self._finish(done)
        return done

    def _complete(self) -> list[str] | None:
        description = read_description(self.folder, self.text.testset, self.text.task)
        if description is None or description.get("key") != self._key or not self.path.is_file():
            return None
        content = self.path.read_bytes()
        if hashlib.sha256(content).hexdigest() != description.get("sha256"):
            return None
        return content.decode("utf-8").split("\n")[:-1]

    def _begun(self) -> list[str]:
        """Lines of whole chunks; what comes after them is cut off the file."""
        if not self._partial.is_file():
            return []
        lines = self._partial.read_bytes().split(b"\n")[:-1]
        whole = lines if len(lines) == len(self.text.src) else lines[: len(lines) // CHUNK * CHUNK]
        with self._partial.open("r+b") as file:
            file.truncate(sum(len(line) + 1 for line in whole))
        return [line.decode("utf-8") for line in whole]

    def _append(self, lines: Sequence[str]) -> None:
        self.path.parent.mkdir(exist_ok=True)
        with self._partial.open("ab") as file:
            file.write(_bytes(lines))
            file.flush()
            os.fsync(file.fileno())

    def _finish(self, lines: Sequence[str]) -> None:
        """Give the translations their name; a kill between the two files leaves the partial one, complete."""
        self.path.parent.mkdir(exist_ok=True)
        if not self._partial.exists():  # there are no sentences
            self._append([])
        checksum = hashlib.sha256(_bytes(lines)).hexdigest()
        description = {"step": self.step, "search": self.search, "key": self._key, "sha256": checksum}
        write_json(_description_path(self.path), description)
        self._partial.replace(self.path)

    def _discard_begun(self, *, but: Path | None = None) -> None:
        """Remove what was begun of the same test set, with other settings or to no end."""
        for path in self.path.parent.glob(f".{self.path.stem}.*.partial"):
            if path != but:
                path.unlink()

    @property
    def _key(self) -> str:
        """Of all that decides what the translations are."""
        made_from = json.dumps([self.step, self.search, self.text.task, *self.text.src])
        return hashlib.sha256(made_from.encode()).hexdigest()[:16]

    @property
    def _partial(self) -> Path:
        return self.path.with_name(f".{self.path.stem}.{self._key}.partial")


def scored_sentences(signature: str | None) -> int | None:
    """How many sentences of a test set a run was scored on, as its signature says; None for all of them."""
    name, _, count = (signature or "").rpartition("|")[2].partition(":")
    return int(count) if name == SENTENCES and count.isdecimal() else None


def translations_path(folder: Path, testset: str, task: str) -> Path:
    """Where a run's translations of a test set are."""
    return folder / "translations" / f"{testset}.{task}.txt"


def read_description(folder: Path, testset: str, task: str) -> dict[str, object] | None:
    """How a run's translations of a test set were made; None where nothing says so."""
    path = _description_path(translations_path(folder, testset, task))
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return description if isinstance(description, dict) else None


def _description_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _bytes(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8")

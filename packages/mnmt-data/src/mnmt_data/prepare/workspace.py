"""The folder where data are prepared, until it is whole and takes its place."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnmt_data.store.atomic_file import remove_temporaries, write_json
from mnmt_data.store.prepared import DESCRIPTION


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A partial data folder, whose `work` holds what only the stages need.

    A stage that has finished something leaves a mark, a small JSON file written after all that it speaks of.
    """

    folder: Path

    @property
    def work(self) -> Path:
        """Cleaned text, choices and marks; gone when the data are whole."""
        return self.folder / "work"

    def open(self, identity: list[str | int]) -> bool:
        """Make the folder, or enters one that was begun for the same inputs, settings and version.

        Returns:
            Whether it was begun before.
        """
        begun = self.mark("identity")
        if begun is not None and begun == identity:
            remove_temporaries(self.folder)
            return True
        self.remove()
        for name in ("parts", "chosen", "encoded"):
            (self.work / name).mkdir(parents=True)
        for name in ("text", "shards"):
            (self.folder / name).mkdir()
        self.set_mark("identity", identity)
        return False

    def remove(self) -> None:
        """Throws everything away."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def mark(self, name: str) -> Any:
        """What a mark says; None if it is not there."""
        path = self.work / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def set_mark(self, name: str, content: Any) -> None:
        """Leave a mark."""
        write_json(self.work / f"{name}.json", content)

    def part(self, source: str, number: int) -> Path:
        """Where a part of a source is."""
        return self.work / "parts" / f"{source}.{number:06}.arrow"

    def chosen(self, split: str, task: str) -> Path:
        """Where the rows chosen for a split are."""
        return self.work / "chosen" / f"{split}.{task}.npy"

    def is_described(self) -> bool:
        """Whether the data are whole, and only have to take their place."""
        return (self.folder / DESCRIPTION).is_file()

    def publish(self, folder: Path) -> None:
        """Take the place of `folder`, which is there, old or new, but for the moment between two renames."""
        shutil.rmtree(self.work, ignore_errors=True)
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        self.folder.rename(folder)
        shutil.rmtree(old, ignore_errors=True)

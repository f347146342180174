"""Folders of WMT's submissions: systems, references and sources of many language pairs.

Three layouts are known, below a folder with `system-outputs`, `references` and `sources`:

- `system-outputs/PAIR/SYSTEM.txt`, `references/PAIR.NAME.txt`, `sources/PAIR.txt`: WMT since 2024, and
  mt-metrics-eval.
- `TESTSET.PAIR.hyp.SYSTEM.TGT`, `TESTSET.PAIR.ref.NAME.TGT`, `TESTSET.PAIR.src.SRC`: WMT 2021 to 2023.
- `TESTSET.SYSTEM.PAIR`, `TESTSET-SRCTGT-ref.TGT`, `TESTSET-SRCTGT-src.SRC`: WMT before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OUTPUTS = "system-outputs"

_PAIR = r"[a-z]{2,3}\w*-[a-z]{2,3}\w*"
_NAMES = (
    re.compile(rf"(?P<testset>.+)\.(?P<task>{_PAIR})\.hyp\.(?P<system>.+)\.[^.]+"),
    re.compile(rf"(?P<testset>[^.]+)\.(?P<system>.+)\.(?P<task>{_PAIR})"),
)


@dataclass(frozen=True, kw_only=True)
class SubmittedText:
    """The submissions of one language pair, with the text that they translate."""

    testset: str
    task: str
    systems: dict[str, Path]
    """{system: its translations}, without references that were submitted as systems."""
    references: tuple[Path, ...]
    """Every reference that the folder has; none if it has none."""
    source: Path | None


def read_submissions(folder: Path) -> list[SubmittedText] | None:
    """Return the language pairs of a folder in WMT's layout; None if it is something else.

    Args:
        folder: The folder with `system-outputs`, that folder itself, or a part of it.
    """
    root = next((place.parent for place in (folder, *folder.parents) if place.name == OUTPUTS), folder)
    inside = folder if root != folder else folder / OUTPUTS
    if not inside.is_dir():
        return None
    systems: dict[tuple[str, str], dict[str, Path]] = {}
    for path in sorted(inside.rglob("*")):
        if path.is_file() and (name := _parse(path, root)) is not None:
            testset, task, system = name
            systems.setdefault((testset, task), {})[system] = path
    return [_submitted(root, testset, task, each) for (testset, task), each in systems.items()]


def _parse(path: Path, root: Path) -> tuple[str, str, str] | None:
    """Return test set, language pair and system of a submission; None of other files."""
    for pattern in _NAMES:
        if match := pattern.fullmatch(path.name):
            return match["testset"], match["task"], match["system"]
    if path.suffix == ".txt" and re.fullmatch(_PAIR, path.parent.name):
        return root.name, path.parent.name, path.stem
    return None


def _submitted(root: Path, testset: str, task: str, systems: dict[str, Path]) -> SubmittedText:
    references = dict(_texts(root / "references", "ref", testset, task))
    sources = dict(_texts(root / "sources", "src", testset, task))
    return SubmittedText(
        testset=testset,
        task=task,
        systems={name: path for name, path in systems.items() if name not in references},
        references=tuple(references.values()),
        source=next(iter(sources.values()), None),
    )


def _texts(folder: Path, kind: str, testset: str, task: str) -> Iterator[tuple[str, Path]]:
    """Yield names and paths of a pair's references (`ref`), or of its source (`src`)."""
    names = re.compile(
        rf"{re.escape(task)}(?:\.(?P<name>[^.]+))?\.txt"
        rf"|{re.escape(testset)}\.{re.escape(task)}\.{kind}(?:\.(?P<label>.+))?\.[^.]+"
        rf"|{re.escape(testset)}-{re.escape(task.replace('-', ''))}-{kind}\.[^.]+"
    )
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (match := names.fullmatch(path.name)):
            yield match["name"] or match["label"] or kind, path
